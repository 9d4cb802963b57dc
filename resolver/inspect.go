package resolver

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// StateFinding is what [InspectState] says of one directory of the state.
type StateFinding struct {
	Path string
	// Err is what is wrong with it, nil when nothing is.
	Err error
	// Note describes what is whole, or left behind.
	Note string
	// Repairable tells that a start mends it from what else there is, or, where it is
	// Foreign, once it is set aside.
	Repairable bool
	// Foreign tells that it is a whole checkpoint of another log, which a start refuses.
	Foreign bool
	// Offset is that of a whole checkpoint, -1 else.
	Offset int64
}

// InspectState reads all files of a partition's checkpoints in dir, which no process has
// open, and changes nothing. name is the log's, start and end are the bounds of its
// records. Files outside of checkpoints are made anew by each start. The error says
// that reading itself failed.
func InspectState(fs vfs.FS, dir, name string, partition int, start, end int64) (out []StateFinding, err error) {
	p := newPartition(&Node{opts: Options{FS: fs, Dir: dir, LogName: name, Logger: slog.New(slog.DiscardHandler)}}, partition)
	c := &p.ckpt
	names, err := fs.List(c.path(dirCheckpoints))
	if err != nil && !isNotExist(err) && !misplaced(err) {
		return nil, err
	}
	if misplaced(err) && start == 0 {
		return []StateFinding{{Path: c.path(dirCheckpoints), Err: fmt.Errorf("%w: a file is where a directory must be", statefiles.ErrDamaged), Repairable: true, Offset: -1}}, nil
	}
	for _, dir := range []string{dirKeys, dirSegments, dirSpool} {
		if info, err := fs.Stat(c.path(dir)); err == nil && !info.IsDir() {
			out = append(out, StateFinding{Path: c.path(dir), Err: fmt.Errorf("%w: a file is where a directory must be", statefiles.ErrDamaged), Repairable: true, Offset: -1})
		}
	}
	if isNotExist(err) && start == 0 && end > 0 {
		// Each start makes the directory before anything is recorded.
		return []StateFinding{{Path: c.path(dirCheckpoints), Err: fmt.Errorf("%w: the directory is missing, and the log has records", statefiles.ErrDamaged), Repairable: true, Offset: -1}}, nil
	}
	slices.Sort(names)
	for _, n := range names {
		switch {
		case strings.HasPrefix(n, tmpPrefix):
			out = append(out, StateFinding{Path: c.path(dirCheckpoints, n), Note: "a checkpoint that was not finished; a start removes it", Offset: -1})
		case strings.HasPrefix(n, foreignPrefix):
			out = append(out, StateFinding{Path: c.path(dirCheckpoints, n), Note: "of another log, set aside by muster repair; move it to where it belongs, or remove it", Offset: -1})
		case strings.HasPrefix(n, damagedPrefix):
			out = append(out, StateFinding{Path: c.path(dirCheckpoints, n), Note: "set aside as damaged by an earlier start; it may be removed", Offset: -1})
		}
	}
	offsets, err := c.list()
	if err != nil {
		return nil, err
	}
	whole := false
	for _, offset := range offsets {
		f := StateFinding{Path: c.path(dirCheckpoints, checkpointName(offset)), Offset: -1}
		if _, f.Err = p.candidate(offset, start, end); environment(f.Err) {
			return nil, f.Err
		}
		if f.Err == nil {
			whole = true
			f.Offset, f.Note = offset, fmt.Sprintf("the state before record %d", offset)
		}
		f.Foreign = errors.Is(f.Err, errOtherLog)
		f.Repairable = f.Foreign || errors.Is(f.Err, statefiles.ErrDamaged)
		out = append(out, f)
	}
	if !whole && start > 0 {
		for i := range out {
			out[i].Repairable = false
		}
		out = append(out, StateFinding{Path: c.path(dirCheckpoints), Err: noCheckpoint(start), Offset: -1})
	}
	return out, nil
}

// InspectHistory tells what is wrong with a history that has stored the records of a
// partition below stored, beside the state in dir, once what is damaged or foreign of
// that is set aside; the other arguments are those of [InspectState]. behind tells that
// it lacks rows, which a start makes anew from the log.
func InspectHistory(fs vfs.FS, dir, name string, partition int, start, end, stored int64) (behind bool, err error) {
	p := newPartition(&Node{opts: Options{FS: fs, Dir: dir, LogName: name, Logger: slog.New(slog.DiscardHandler)}}, partition)
	offsets, err := p.ckpt.list()
	if err != nil {
		return false, err
	}
	var f manifest
	for _, offset := range slices.Backward(offsets) {
		if c, err := p.promising(offset, start, end); err == nil {
			f = c.manifest
			break
		}
	}
	from := f.historyFrom()
	return stored < from, feed.CheckPosition(stored, from, start, end)
}

// foreignPrefix begins the name of a checkpoint of another log that was set aside.
const foreignPrefix = "foreign-"

// SetForeignAside gives the whole checkpoints of other logs in a partition's state other
// names, so that the rest is used. They stay: they are somebody's. The arguments are
// those of [InspectState].
func SetForeignAside(fs vfs.FS, dir, name string, partition int, start, end int64) error {
	p := newPartition(&Node{opts: Options{FS: fs, Dir: dir, LogName: name, Logger: slog.New(slog.DiscardHandler)}}, partition)
	offsets, err := p.ckpt.list()
	if err != nil {
		return err
	}
	for _, offset := range offsets {
		if _, err := p.candidate(offset, start, end); !errors.Is(err, errOtherLog) {
			continue
		}
		from := p.ckpt.path(dirCheckpoints, checkpointName(offset))
		to := p.ckpt.path(dirCheckpoints, foreignPrefix+checkpointName(offset))
		if _, err := fs.Stat(to); err == nil {
			return fmt.Errorf("%s is of another log, and so is %s from before: move that away first", from, to)
		}
		if err := fs.Rename(from, to); err != nil {
			return err
		}
		if err := statefiles.SyncDir(fs, p.ckpt.path(dirCheckpoints)); err != nil {
			return err
		}
	}
	return nil
}
