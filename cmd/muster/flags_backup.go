package main

import (
	"time"

	"github.com/musterhq/muster/cmd/muster/internal/cli"
)

// backupConfig is the flags of serve about backups of the running service.
type backupConfig struct {
	to       string // the URL of a place; empty without a schedule
	interval time.Duration
	rate     int64 // bytes a second, 0 without bound
}

// leastBackupInterval keeps the names of backups, which are by the second, apart.
const leastBackupInterval = time.Second

// addBackupFlags adds the flags; read reads them once they are parsed.
func addBackupFlags(f *cli.Flags) (read func() (backupConfig, error)) {
	to := f.String("backup-to", "", "`URL` of the storage for scheduled backups: file:///DIRECTORY or s3://BUCKET/PREFIX?region=REGION; without it only muster backup makes backups")
	interval := f.Duration("backup-interval", time.Hour, "`TIME` between backups with --backup-to")
	rate := f.Size("backup-rate", 32<<20, "maximum `BYTES` per second that a backup of the running server reads; 0: unlimited")
	f.Range("backup-interval", int64(leastBackupInterval), int64(366*mostTime))
	f.ZeroOrRange("backup-rate", 64<<10, mostBytes)
	return func() (backupConfig, error) {
		return backupConfig{*to, *interval, int64(*rate)}, nil
	}
}
