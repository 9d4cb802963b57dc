package resolver

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// CheckStart looks, without changing anything, whether a partition whose log has these
// bounds can be opened from the state in dir: the error is [Open]'s where its newest
// checkpoint is of a newer build, or is beyond the end of the log, or is missing.
// stored asks history for its position; nil leaves that to Open. Damage to files that a checkpoint names is
// found by Open alone.
func CheckStart(fsys vfs.FS, dir string, partition int, start, end int64, stored func() (int64, error)) error {
	p := newPartition(&Node{opts: Options{FS: fsys, Dir: dir, Logger: slog.New(slog.DiscardHandler)}}, partition)
	var f manifest
	switch _, err := fsys.Stat(p.ckpt.path(dirCheckpoints)); {
	case errors.Is(err, fs.ErrNotExist):
		if start > 0 {
			return noCheckpoint(start)
		}
	case err != nil:
		return fmt.Errorf("partition %d: %w", partition, err)
	default:
		if f, _, err = p.newest(start, end); err != nil {
			return fmt.Errorf("partition %d: %w", partition, err)
		}
	}
	if stored == nil {
		return nil
	}
	have, err := stored()
	if err != nil {
		return err
	}
	from := f.Next
	if len(f.Spool) > 0 {
		from = f.Spool[0].From
	}
	return checkStored(have, from, end)
}
