package checkpoint

import (
	"errors"
	"fmt"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// Candidate is a checkpoint that the state may be loaded from. The zero value is
// the empty state, from which the whole log is replayed.
type Candidate struct {
	Manifest
	IDs []eventlog.RecordID // of the newest records, the oldest first
}

// NoneWhole is the error where no checkpoint can be loaded and the log, which starts at
// start, lacks its beginning. faults say what is wrong with the checkpoints that there are.
func NoneWhole(start int64, faults ...error) error {
	err := fmt.Errorf("no checkpoint to start from, and the log starts at %d: restore a backup, or name with --checkpoints where other nodes leave theirs", start)
	for _, fault := range faults {
		err = fmt.Errorf("%w; %w", err, fault) // in one line, as errors.Join is not
	}
	return err
}

// Whole reads what a checkpoint says of itself and compares its files with
// that.
func (c *Dir) Whole(offset, start, end int64) (Candidate, error) {
	x, err := c.Promising(offset, start, end)
	if err != nil {
		return x, err
	}
	return x, c.Verify(x.Manifest)
}

// CheckSpool says what is wrong with the rows that a whole checkpoint has for history. Their
// files were damaged before it took them, or were never right. A start rebuilds them from
// the log once it needs them.
func (c *Dir) CheckSpool(f Manifest) error {
	for _, s := range f.Spool {
		if err := feed.CheckFile(c.FS, c.Path(DirCheckpoints, Name(f.Next), DirSpool, s.File), s.From, s.To); err != nil {
			return err
		}
	}
	return nil
}

// Promising is Whole before the files are compared. An error that does not wrap
// statefiles.ErrDamaged says that the start is to be refused.
func (c *Dir) Promising(offset, start, end int64) (x Candidate, err error) {
	x.Manifest, x.IDs, err = c.ReadManifest(offset)
	switch {
	case errors.Is(err, statefiles.ErrNewer), errors.Is(err, statefiles.ErrOlder):
		return x, err
	case errors.Is(err, ErrOtherLog):
		// A whole one belongs to another log, and is not to be thrown away.
		if damage := c.Verify(x.Manifest); damage != nil {
			return x, damage
		}
		return x, c.Advise(err, start)
	case offset > end && x.Version != 0 && x.Next != offset && x.Next <= end:
		return x, err // a whole manifest under a name that is not its own
	case offset > end:
		// Whether it can be read or not: a checkpoint is never ahead of its log.
		return x, fmt.Errorf("the log ends at %d, before the checkpoint at %d: records are missing. Put the log back that belongs to this state (its files, or its topic in Kafka), or restore a backup", end, offset)
	case err != nil:
		return x, err
	case offset < start:
		return x, fmt.Errorf("%w: checkpoint %d is older than the log, which starts at %d", statefiles.ErrDamaged, offset, start)
	}
	return x, nil
}

// Likely is the manifest that the state is loaded from unless files behind it turn out
// to be damaged.
func (c *Dir) Likely(start, end int64) (Manifest, error) {
	offsets, err := c.List()
	if err != nil {
		return Manifest{}, err
	}
	for i := len(offsets) - 1; i >= 0; i-- {
		x, err := c.Promising(offsets[i], start, end)
		if err == nil || !errors.Is(err, statefiles.ErrDamaged) {
			return x.Manifest, err
		}
	}
	if start > 0 {
		return Manifest{}, NoneWhole(start)
	}
	return Manifest{}, nil
}

// SetAside gives damaged checkpoints another name, so that they are neither loaded
// nor counted. The newest one is kept to be looked into.
func (c *Dir) SetAside(offsets []int64) error {
	if len(offsets) == 0 {
		return nil
	}
	fs, dir := c.FS, c.Path(DirCheckpoints)
	err := c.RemoveSetAside()
	if err != nil {
		return err
	}
	for i, o := range offsets {
		from := fs.PathJoin(dir, Name(o))
		if i < len(offsets)-1 {
			err = fs.RemoveAll(from)
		} else {
			err = fs.Rename(from, fs.PathJoin(dir, DamagedPrefix+Name(o)))
		}
		if err != nil {
			return err
		}
	}
	return statefiles.SyncDir(fs, dir)
}
