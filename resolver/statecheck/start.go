// Package statecheck looks at the state's files while no process has them open: whether a
// start can use them, what is damaged, and whether they are what their log makes. It
// changes nothing but names of directories that are set aside.
package statecheck

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/feed"
)

// Start looks, without changing anything, whether a partition of the log with
// this name and these bounds can be opened from the state in dir: the error is
// that of node.Open where a checkpoint is of a newer build, of another log, or beyond the end
// of the log, or where there is none and the log lacks its beginning. stored asks
// history for its position; nil leaves that to node.Open. What is damaged is no reason to
// refuse.
func Start(fsys vfs.FS, dir, logName string, partition int, start, end int64, stored func() (int64, error)) error {
	p := checkpoints(fsys, dir, logName, partition)
	f, err := p.Likely(start, end)
	if err != nil {
		return fmt.Errorf("partition %d: %w", partition, err)
	}
	if stored == nil {
		return nil
	}
	have, err := stored()
	if err != nil {
		return err
	}
	return feed.CheckPosition(have, f.HistoryFrom(), start, end)
}

// checkpoints are those of a partition in the state's directory, which follow from the log
// with the name.
func checkpoints(fs vfs.FS, dir, logName string, partition int) *checkpoint.Dir {
	return &checkpoint.Dir{FS: fs, Root: checkpoint.Partition(fs, dir, partition), Log: logName}
}
