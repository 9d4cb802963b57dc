package backup

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
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
	// turn is which share of the objects is read again next; -1 before the first backup.
	turn int
}

// OpenPlace opens the place of o.Bucket. o.Dir is not used.
func OpenPlace(o Options) (*Place, error) {
	set, err := o.set()
	return &Place{o, set, -1}, err
}

// Check is why the place takes no backup of the data directory now, as far as that can be told
// without its files. log is the identity of its log.
func (p *Place) Check(ctx context.Context, data string, log uint64) error {
	_, _, err := p.o.name(ctx, p.set, data, logName(log))
	return err
}

// Make stores a running directory. A backup that is cut off is none. One that was made has a
// share of what it names read again, since it relies upon what earlier ones sent.
func (p *Place) Make(ctx context.Context, r Running) (done Done, err error) {
	p.set.Forget() // the place may have been emptied since
	name, there, err := p.o.name(ctx, p.set, r.Dir, logName(r.Log))
	if err != nil {
		return done, err
	}
	done.Name = name
	if r.Trimmed {
		if err := checkState(p.o.FS, r.Dir, r.Sources); err != nil {
			return done, err
		}
	}
	sources := slices.Clone(r.Sources)
	done.Sent, err = p.set.PutSources(ctx, done.Name, about{logName(r.Log), r.Ends}, r.Sources, func(reused func(path string) bool) ([]blobtree.Source, error) {
		if err := r.Check(ctx, p.o.Throttle, reused); err != nil {
			return nil, NotMade(err)
		}
		last, err := r.Last()
		sources = append(sources, last...)
		return last, err
	})
	if err != nil {
		return done, err
	}
	done.Unnoted = p.o.noteMade(r.Dir, logName(r.Log), name, there)
	if p.turn < 0 {
		p.turn = there // a start, or another command, continues where the one before was
	}
	if done.Reread, done.RereadErr = p.set.Reread(ctx, name, p.turn, sources); done.RereadErr == nil {
		p.turn++
	}
	return done, nil
}

// Damage says of each object that was read again and is damaged what it is and what happens,
// and whether all of them are whole again.
func (d *Done) Damage() (lines []string, mended bool) {
	mended = true
	for _, x := range d.Reread.Damaged {
		line := fmt.Sprintf("%v. It was sent again, so the backups that have it are whole: look at the storage", x.Err)
		if x.Unmended != nil {
			mended = false
			line = fmt.Sprintf("%v. It was not sent again: %v. Backup %s, and those before that share the object, cannot be restored", x.Err, x.Unmended, d.Name)
			if x.File != "" {
				line += ". The next backup sends it again if " + x.File + " still has that content"
			}
		}
		lines = append(lines, line)
	}
	return lines, mended
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
