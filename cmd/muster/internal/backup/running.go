package backup

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"time"

	"github.com/musterhq/muster/internal/blobtree"
)

// Running is a data directory that a process has: its files at one instant.
type Running struct {
	// Dir is the data directory, for errors and for [FileMade].
	Dir string
	// Trimmed is set where the log lacks its beginning: a checkpoint that is damaged
	// makes the backup fail then, since nothing else has the state.
	Trimmed bool
	// Log is the identity of the log.
	Log uint64
	// Ends are the offsets behind the last records of Sources, by partition.
	Ends []int64
	// Sources are the files, by their paths in the data directory.
	Sources []blobtree.Source
	// Check compares the checksums of the records in the log among Sources, when they are
	// stored; its error is why there is no backup. reused reports whether the file of a
	// path was stored whole by the backup before, and has not changed.
	Check func(ctx context.Context, throttle func(ctx context.Context, bytes int) error, reused func(path string) bool) error
	// Last names files to store when the others are, see [blobtree.Set.PutSources].
	Last func() ([]blobtree.Source, error)
}

// Place is where backups of one running service go. It remembers what it sent, so that
// files which have not changed are not read again. Its backups are made one at a time.
type Place struct {
	o   Options
	set *blobtree.Set
}

// OpenPlace opens the place of o.Bucket. o.Dir is not used.
func OpenPlace(o Options) (*Place, error) {
	set, err := o.set()
	return &Place{o, set}, err
}

// Make stores a running directory. A backup that is cut off is none.
func (p *Place) Make(ctx context.Context, r Running) (done Done, err error) {
	p.set.Forget() // the place may have been emptied since
	if done.Name, err = p.o.name(ctx, p.set, r.Dir, logName(r.Log)); err != nil {
		return done, err
	}
	if r.Trimmed {
		if err := checkState(p.o.FS, r.Dir, r.Sources); err != nil {
			return done, err
		}
	}
	done.Sent, err = p.set.PutSources(ctx, done.Name, about{logName(r.Log), r.Ends}, r.Sources, func(reused func(path string) bool) ([]blobtree.Source, error) {
		if err := r.Check(ctx, p.o.Throttle, reused); err != nil {
			return nil, notBackedUp(err)
		}
		return r.Last()
	})
	if err == nil {
		done.Unnoted = p.o.noteMade(r.Dir, logName(r.Log), done.Name)
	}
	return done, err
}

// logName is the identity of a log as its meta file has it, in hexadecimal.
func logName(id uint64) string {
	return hex.EncodeToString(binary.LittleEndian.AppendUint64(nil, id))
}

// Newest is when the newest backup there was made, the zero time when there is none.
func (p *Place) Newest(ctx context.Context) (time.Time, error) {
	have, err := names(ctx, p.set)
	if err != nil || len(have) == 0 {
		return time.Time{}, err
	}
	return TimeOf(have[len(have)-1]), nil
}
