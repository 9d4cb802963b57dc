package node

import (
	"github.com/musterhq/muster/resolver/internal/checkpoint"

	"errors"
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// CheckStart looks, without changing anything, whether a partition of the log with
// this name and these bounds can be opened from the state in dir: the error is
// [Open]'s where a checkpoint is of a newer build, of another log, or beyond the end
// of the log, or where there is none and the log lacks its beginning. stored asks
// history for its position; nil leaves that to Open. What is damaged is no reason to
// refuse.
func CheckStart(fsys vfs.FS, dir, logName string, partition int, start, end int64, stored func() (int64, error)) error {
	p := newPartition(&Node{opts: Options{FS: fsys, Dir: dir, LogName: logName, Logger: slog.New(slog.DiscardHandler)}}, partition)
	f, err := p.likely(start, end)
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

// likely is the manifest that the state is loaded from unless files behind it turn out
// to be damaged.
func (p *partition) likely(start, end int64) (checkpoint.Manifest, error) {
	offsets, err := p.ckpt.List()
	if err != nil {
		return checkpoint.Manifest{}, err
	}
	for i := len(offsets) - 1; i >= 0; i-- {
		c, err := p.promising(offsets[i], start, end)
		if err == nil || !errors.Is(err, statefiles.ErrDamaged) {
			return c.Manifest, err
		}
	}
	if start > 0 {
		return checkpoint.Manifest{}, noCheckpoint(start)
	}
	return checkpoint.Manifest{}, nil
}
