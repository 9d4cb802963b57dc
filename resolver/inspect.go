package resolver

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// StateFinding is what [InspectState] says of one directory of the state.
type StateFinding struct {
	Path string
	// Err is what is wrong with it, nil when nothing is.
	Err error
	// Note describes what is whole, or left behind.
	Note string
	// Repairable tells that a start mends it from what else there is.
	Repairable bool
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
	if err != nil && !isNotExist(err) {
		return nil, err
	}
	slices.Sort(names)
	for _, n := range names {
		switch {
		case strings.HasPrefix(n, tmpPrefix):
			out = append(out, StateFinding{Path: c.path(dirCheckpoints, n), Note: "a checkpoint that was not finished; a start removes it", Offset: -1})
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
		_, f.Err = p.candidate(offset, start, end)
		if f.Err == nil {
			whole = true
			f.Offset, f.Note = offset, fmt.Sprintf("the state before record %d", offset)
		}
		f.Repairable = errors.Is(f.Err, errDamaged)
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
