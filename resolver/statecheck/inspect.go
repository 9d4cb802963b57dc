package statecheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// Finding is the result of [Inspect] for one directory of the state.
type Finding struct {
	Path string
	// Err is the damage, nil when there is none.
	Err error
	// Note describes what is whole, or left behind.
	Note string
	// Repairable tells that a start mends it from what else there is, or, where it is
	// Foreign, once it is set aside.
	Repairable bool
	// Foreign says that it is a whole checkpoint of another log, which a start refuses.
	Foreign bool
	// Offset is that of a whole checkpoint, -1 else.
	Offset int64
}

// Inspect reads all files of a partition's checkpoints in dir, which no process has
// open, and changes nothing. name is the log's, start and end are the bounds of its
// records. Files outside of checkpoints are rebuilt by each start. record reads a record of the
// log, nil where it cannot be read; it may be nil. The error says that reading itself failed.
func Inspect(fs vfs.FS, dir, name string, partition int, start, end int64, record func(offset int64) ([]byte, error)) (out []Finding, err error) {
	p := checkpoints(fs, dir, name, partition)
	c := p
	names, err := fs.List(c.Path(checkpoint.DirCheckpoints))
	if err != nil && !statefiles.IsNotExist(err) && !statefiles.IsMisplaced(err) {
		return nil, err
	}
	if statefiles.IsMisplaced(err) && start == 0 {
		return []Finding{{Path: c.Path(checkpoint.DirCheckpoints), Err: fmt.Errorf("%w: a file is where a directory must be", statefiles.ErrDamaged), Repairable: true, Offset: -1}}, nil
	}
	for _, dir := range []string{checkpoint.DirKeys, checkpoint.DirSegments, checkpoint.DirSpool} {
		misplaced, err := c.Misplaced(c.Path(dir))
		if err != nil {
			return nil, err
		}
		if misplaced {
			out = append(out, Finding{Path: c.Path(dir), Err: fmt.Errorf("%w: a file is where a directory must be", statefiles.ErrDamaged), Repairable: true, Offset: -1})
		}
	}
	if statefiles.IsNotExist(err) && start == 0 && end > 0 {
		// Each start makes the directory before anything is recorded.
		return []Finding{{Path: c.Path(checkpoint.DirCheckpoints), Err: fmt.Errorf("%w: the directory is missing, and the log has records", statefiles.ErrDamaged), Repairable: true, Offset: -1}}, nil
	}
	slices.Sort(names)
	for _, n := range names {
		switch {
		case strings.HasPrefix(n, checkpoint.TmpPrefix):
			out = append(out, Finding{Path: c.Path(checkpoint.DirCheckpoints, n), Note: "a checkpoint that was not finished; a start removes it", Offset: -1})
		case strings.HasPrefix(n, checkpoint.ForeignPrefix):
			out = append(out, Finding{Path: c.Path(checkpoint.DirCheckpoints, n), Note: "of another log, set aside by muster repair; move it to where it belongs, or remove it", Offset: -1})
		case strings.HasPrefix(n, checkpoint.DamagedPrefix):
			out = append(out, Finding{Path: c.Path(checkpoint.DirCheckpoints, n), Note: "set aside as damaged by an earlier start; it may be removed", Offset: -1})
		}
	}
	offsets, err := c.List()
	if err != nil {
		return nil, err
	}
	whole := false
	for _, offset := range offsets {
		f := Finding{Path: c.Path(checkpoint.DirCheckpoints, checkpoint.Name(offset)), Offset: -1}
		var x checkpoint.Candidate
		x, f.Err = p.Whole(offset, start, end)
		if f.Err == nil && record != nil && offset > start {
			before, err := record(offset - 1)
			if err != nil {
				return nil, err
			}
			if before != nil {
				f.Err = p.Advise(x.CheckLog(before), start)
			}
		}
		rebuilt := true // what is damaged, from what else there is
		if f.Err == nil {
			whole = true
			f.Offset, f.Note = offset, fmt.Sprintf("the state before record %d", offset)
			f.Err, rebuilt = p.CheckSpool(x.Manifest), start == 0
		}
		if statefiles.IsEnvironment(f.Err) {
			return nil, f.Err
		}
		f.Foreign = errors.Is(f.Err, checkpoint.ErrOtherLog)
		f.Repairable = f.Foreign || rebuilt && errors.Is(f.Err, statefiles.ErrDamaged)
		out = append(out, f)
	}
	if !whole && start > 0 {
		for i := range out {
			out[i].Repairable = false
		}
		out = append(out, Finding{Path: c.Path(checkpoint.DirCheckpoints), Err: checkpoint.NoneWhole(start), Offset: -1})
	}
	return out, nil
}

// History returns the fault of a history that has stored the records of a
// partition below stored, beside the state in dir, once what is damaged or foreign of
// that is set aside; the other arguments are those of [Inspect]. behind says that
// it lacks rows, which a start rebuilds from the log.
func History(fs vfs.FS, dir, name string, partition int, start, end, stored int64) (behind bool, err error) {
	p := checkpoints(fs, dir, name, partition)
	offsets, err := p.List()
	if err != nil {
		return false, err
	}
	var f checkpoint.Manifest
	for _, offset := range slices.Backward(offsets) {
		if c, err := p.Promising(offset, start, end); err == nil {
			f = c.Manifest
			break
		}
	}
	from := f.HistoryFrom()
	return stored < from, feed.CheckPosition(stored, from, start, end)
}

// SetForeignAside gives a checkpoint that [Inspect] found to be of another log another name,
// so that the rest is used. It stays: that log may need it.
func SetForeignAside(fs vfs.FS, path string) error {
	dir := fs.PathDir(path)
	to := fs.PathJoin(dir, checkpoint.ForeignPrefix+fs.PathBase(path))
	if _, err := fs.Stat(to); err == nil {
		return fmt.Errorf("%s is of another log, and so is %s from before: move that away first", path, to)
	}
	if err := fs.Rename(path, to); err != nil {
		return err
	}
	return statefiles.SyncDir(fs, dir)
}
