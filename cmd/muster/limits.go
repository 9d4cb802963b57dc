package main

import (
	"fmt"
	"syscall"
)

const (
	// fileReserve is how many open files are left to the store, to history and to
	// connections that the service itself makes; half of all where there are few.
	fileReserve = 1000
	// leastFiles is the least limit of open files that the service starts with.
	leastFiles = 256
)

// fitConnections is how many of the connections wanted fit a limit of open files.
func fitConnections(wanted int, limit uint64) (int, error) {
	if limit < leastFiles {
		return 0, fmt.Errorf("the limit of open files (RLIMIT_NOFILE) is %d; serve needs at least %d, and %d for --max-connections %d: raise it with ulimit -n, LimitNOFILE= of systemd or --ulimit nofile= of Docker",
			limit, leastFiles, uint64(wanted)+fileReserve, wanted)
	}
	return int(min(uint64(wanted), limit-min(fileReserve, limit/2))), nil
}

// limitConnections makes connections fit the limit of open files, whose soft value
// the Go runtime has raised to the hard one, and says so if they did not.
func (c *serveConfig) limitConnections() error {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("the limit of open files is unknown: %w", err)
	}
	fits, err := fitConnections(c.ingest.Connections, files.Cur)
	if err != nil {
		return err
	}
	if fits < c.ingest.Connections {
		c.log.Warn("fewer connections than --max-connections are served, because the limit of open files (RLIMIT_NOFILE) is low; raise it or lower the flag",
			"connections", fits, "max-connections", c.ingest.Connections, "files", files.Cur)
		c.ingest.Connections = fits
	}
	return nil
}
