package contest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/pause"
)

const (
	diskBytes = 32 << 20 // written ahead, as a log's segment is, so that a sync changes no metadata
	diskWrite = 16 << 10
	diskPause = time.Millisecond
)

// Disk is what a log that does nothing else waits for: writes into space that was written
// before, each synced, one after the other with a pause of 1 ms between them.
type Disk struct {
	Syncs     int `json:"syncs"`
	Latencies     // of one write with its sync
}

// measureDisk measures the disk of a directory for a time. It leaves no file behind.
func measureDisk(ctx context.Context, dir string, length time.Duration) (d Disk, err error) {
	fs := vfs.Default
	path := fs.PathJoin(dir, "disk")
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return d, fmt.Errorf("the disk: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), fs.Remove(path)) }()
	block := make([]byte, diskWrite)
	for range diskBytes / diskWrite {
		if _, err := f.Write(block); err != nil {
			return d, fmt.Errorf("the disk: %w", err)
		}
	}
	if err := f.Sync(); err != nil {
		return d, fmt.Errorf("the disk: %w", err)
	}
	for i := range block {
		block[i] = byte(i)
	}
	var times []time.Duration
	for begin, at := time.Now(), int64(0); time.Since(begin) < length; at = (at + diskWrite) % diskBytes {
		one := time.Now()
		if _, err := f.WriteAt(block, at); err != nil {
			return d, fmt.Errorf("the disk: %w", err)
		}
		if err := f.SyncData(); err != nil {
			return d, fmt.Errorf("the disk: %w", err)
		}
		times = append(times, time.Since(one))
		if err := pause.For(ctx, diskPause); err != nil {
			return d, err
		}
	}
	return Disk{Syncs: len(times), Latencies: latenciesOf(times)}, nil
}
