package datacheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/cmd/muster/internal/engine"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/resolver/statecheck"
)

// DeepOptions configure [Report.Deep].
type DeepOptions struct {
	// Temp is the directory in which one for files is made, and removed in the end; empty
	// is the system's for such.
	Temp string
	// Skip are records to pass over, by partition, as a start does.
	Skip map[int][]int64
	// Note is called with the progress; it may be nil.
	Note func(text string)
	Now  func() time.Time // for the pace of notes
}

// noteEvery is the pause between two notes.
const noteEvery = 10 * time.Second

const remedyDeep = "muster repair --deep sets it aside and rebuilds it from the log"

// Stale is what Deep found to be other than what the log makes, and muster repair --deep
// sets aside.
type Stale struct {
	// Checkpoints are offsets, by partition.
	Checkpoints map[int][]int64
	History     bool
}

// Any reports that there is something.
func (s Stale) Any() bool { return s.History || len(s.Checkpoints) > 0 }

// Deep replays the log of a directory that [Directory] has reported on, to a state and a
// history of its own, and adds to the report where those in the directory differ. The
// caller holds the lock since then. The error says that it could not be done.
func (r *Report) Deep(ctx context.Context, dir string, o DeepOptions) (err error) {
	logDir := filepath.Join(dir, "log")
	if !r.logWhole {
		r.add(Note, logDir, "it is not replayed, as it is not whole", "")
		return nil
	}
	temp, err := os.MkdirTemp(o.Temp, "muster-check-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	for i := range r.Ends {
		if o.Note != nil {
			o.Note(fmt.Sprintf("replaying the %d records of partition %d in %s", r.Ends[i]-r.Starts[i], i, temp))
		}
		if err := r.deepPartition(ctx, dir, filepath.Join(temp, fmt.Sprintf("p%d", i)), i, o); err != nil {
			return fmt.Errorf("replay the log: %w", err)
		}
	}
	return nil
}

func (r *Report) deepPartition(ctx context.Context, dir, temp string, i int, o DeepOptions) (err error) {
	fsys, logDir := vfs.Default, filepath.Join(dir, "log")
	if err := os.MkdirAll(temp, 0o700); err != nil {
		return err
	}
	opts := duckdb.Options{TempDir: filepath.Join(temp, "spill")}
	var rebuilt *duckdb.Rebuilt
	defer func() {
		if rebuilt != nil {
			err = errors.Join(err, rebuilt.Close())
		}
	}()
	var noted time.Time
	audit := statecheck.AuditOptions{
		FS: fsys, Dir: filepath.Join(dir, "state"), Temp: temp, LogName: r.Log, Partition: i, Start: r.Starts[i], End: r.Ends[i], Skip: o.Skip[i],
		Read: func(ctx context.Context, from int64, fn func(int64, []byte) error) error {
			if r.inspected != nil {
				if rebuilt, err = duckdb.NewRebuilt(filepath.Join(temp, engine.HistoryFile), opts, i, from); err != nil {
					return err
				}
			}
			return file.Replay(ctx, fsys, logDir, r.logID, i, from, r.Ends[i], fn)
		},
		Progress: func(next int64) {
			if o.Note == nil || next%1024 != 0 {
				return
			}
			if now := o.Now(); noted.IsZero() {
				noted = now
			} else if now.Sub(noted) >= noteEvery {
				noted = now
				o.Note(fmt.Sprintf("replayed the records of partition %d below %d of %d", i, next, r.Ends[i]))
			}
		},
	}
	if r.inspected != nil {
		audit.Rows = func(ctx context.Context, rows *query.Batch) error { return rebuilt.Append(ctx, rows) }
	}
	found, err := statecheck.Audit(ctx, audit)
	if err != nil {
		return err
	}
	if !found.Replayed {
		r.add(Note, logDir, fmt.Sprintf("partition %d is not replayed: it was trimmed, and there is no checkpoint to begin with", i), "")
		return nil
	}
	r.add(Whole, filepath.Join(logDir, fmt.Sprintf("p%d", i)), fmt.Sprintf("records %d to %d were replayed", found.From, r.Ends[i]), "")
	for _, f := range found.Findings {
		switch {
		case f.Err == nil:
			r.add(Whole, f.Path, f.Note, "")
		case f.Repairable:
			if r.Stale.Checkpoints == nil {
				r.Stale.Checkpoints = map[int][]int64{}
			}
			r.Stale.Checkpoints[i] = append(r.Stale.Checkpoints[i], f.Offset)
			r.addAside(f.Path, f.Err.Error(), remedyDeep)
		default:
			r.add(Lost, f.Path, f.Err.Error(), remedyBackup)
		}
	}
	if r.inspected == nil {
		return nil
	}
	path := filepath.Join(dir, engine.HistoryFile)
	to := min(r.inspected.Positions[i], r.Ends[i])
	if to <= found.From {
		return nil
	}
	c, err := rebuilt.Compare(ctx, path, i, found.From, to, found.Erased)
	switch {
	case err != nil:
		return err
	case c.Same:
		r.add(Whole, path, fmt.Sprintf("its %d events of records %d to %d, and what belongs to them, are what the log makes", c.Rows, found.From, to), "")
	default:
		text := fmt.Sprintf("it is not what the log makes: it has %d rows of %s instead of %d, and differs at record %d first", c.Rows, c.Table, c.Want, c.Offset)
		if r.Starts[i] > 0 {
			r.add(Lost, path, text+", and the log was trimmed", remedyBackup)
			return nil
		}
		r.Stale.History = true
		r.addAside(path, text, remedyDeep)
	}
	return nil
}

// SetAside sets aside what is foreign or stale.
func (r *Report) SetAside(dir string, now time.Time) error {
	state := filepath.Join(dir, "state")
	for _, path := range r.Foreign {
		if err := statecheck.SetForeignAside(vfs.Default, path); err != nil {
			return err
		}
	}
	for i := range r.Ends {
		if err := statecheck.SetStaleAside(vfs.Default, state, i, r.Stale.Checkpoints[i]); err != nil {
			return err
		}
	}
	if r.Stale.History {
		return duckdb.SetAside(filepath.Join(dir, engine.HistoryFile), now)
	}
	return nil
}
