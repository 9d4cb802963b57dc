package backup

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/dirlock"
)

// Options say what is copied where.
type Options struct {
	FS     vfs.FS
	Dir    string // the data directory
	Bucket blobtree.Bucket
	URL    string // of Bucket
	Rand   io.Reader
	Now    func() time.Time
	// Throttle is that of package blobtree; nil is as fast as it goes.
	Throttle func(ctx context.Context, bytes int) error
	// Log is the directory of what is left of the log that was backed up, for [Restore];
	// empty for none.
	Log string
	// Parallel is how many files are read or sent at once; 0 is the default of package
	// blobtree.
	Parallel int
	// History says why the history of a directory that no process has is no copy of the rows
	// of its log, and what to do; nil for none is not to look. It is asked where the log lacks
	// its beginning.
	History func(ctx context.Context, dir string, log file.Checked) error

	// logs is how a log is checked; nil is [file.Check]. Tests have logs that are none.
	logs func(fsys vfs.FS, dir string) (file.Checked, error)
}

// ErrInUse means that a process has the data directory.
var ErrInUse = errors.New("the data directory is in use")

const (
	prefix = "backup"
	// pieceBytes is small, because history's file changes in places.
	pieceBytes = 16 << 20
	fileLock   = "LOCK"
)

func (o *Options) set() (*blobtree.Set, error) {
	return blobtree.NewSet(o.Bucket, prefix, blobtree.Options{FS: o.FS, Rand: o.Rand, PieceBytes: pieceBytes, Throttle: o.Throttle, Parallel: o.Parallel})
}

// about is what a manifest says of a backup.
type about struct {
	// Log is the identity of the log, in hexadecimal.
	Log string `json:"log"`
	// Ends are the offsets behind the last records, by partition. Those of a stopped
	// directory are not looked up.
	Ends []int64 `json:"ends,omitempty"`
}

// Done describes a backup that was made.
type Done struct {
	Name string
	blobtree.Sent
	// Reread is what was read again of it when it was made, by [Place.Make]; RereadErr is why
	// not all of that could be read. The backup counts either way.
	Reread    blobtree.Reread
	RereadErr error
	// Unnoted is why the data directory does not know of the backup, which is made; see
	// [FileMade]. nil is none.
	Unnoted error
}

// Make backs the directory up. No process may have it.
func Make(ctx context.Context, o Options) (done Done, err error) {
	if _, err := o.FS.Stat(o.Dir); err != nil {
		return done, fmt.Errorf("data directory: %w", err)
	}
	if err := CheckWhole(o.FS, o.Dir); err != nil {
		return done, err
	}
	lock, err := o.lock()
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if _, err := o.FS.Stat(o.FS.PathJoin(o.Dir, "log.json")); err == nil {
		return done, fmt.Errorf("the log of %s is in Kafka, and its history in ClickHouse: back those up. Its state is made from the log, and kept for other nodes with --checkpoints", o.Dir)
	}
	id, err := o.logID()
	if err != nil {
		return done, err
	}
	set, err := o.set()
	if err != nil {
		return done, err
	}
	var there int
	if done.Name, there, err = o.name(ctx, set, o.Dir, id); err != nil {
		return done, err
	}
	files, err := o.files()
	if err != nil {
		return done, err
	}
	log, err := o.checkLog()
	if err != nil {
		return done, NotMade(err)
	}
	sources := blobtree.Sources(o.FS, o.Dir, files)
	if trimmed(log) {
		if err := checkState(o.FS, o.Dir, sources); err != nil {
			return done, err
		}
		if o.History != nil {
			if err := o.History(ctx, o.Dir, log); err != nil {
				return done, NotMade(err)
			}
		}
	}
	if done.Sent, err = set.PutSources(ctx, done.Name, about{Log: id}, sources, nil); err == nil {
		done.Unnoted = o.noteMade(o.Dir, id, done.Name, there)
	}
	return done, err
}

// sameLog refuses a place that has backups of another log.
func sameLog(ctx context.Context, set *blobtree.Set, have []string, id string) error {
	for _, name := range slices.Backward(have) {
		m, err := set.Manifest(ctx, name)
		if errors.Is(err, blobtree.ErrDamaged) {
			continue
		}
		if err != nil {
			return err
		}
		var a about
		if err := json.Unmarshal(m.Meta, &a); err != nil {
			return fmt.Errorf("backup %s: %w", name, err)
		}
		if a.Log != id {
			return fmt.Errorf("there are backups of another data directory (of the log %s, this is %s): name another place with --to", a.Log, id)
		}
		return nil
	}
	return nil
}

func (o *Options) lock() (io.Closer, error) {
	lock, err := dirlock.Lock(o.FS, o.FS.PathJoin(o.Dir, fileLock))
	var held *dirlock.HeldError
	if errors.As(err, &held) {
		return nil, fmt.Errorf("%w: %w; stop it first", ErrInUse, err)
	}
	return lock, err
}

// logID reads the identity of the log out of its meta file (docs/formats.md).
func (o *Options) logID() (string, error) {
	path := o.FS.PathJoin(o.Dir, "log", "meta")
	f, err := o.FS.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s is no data directory with a log: %w", o.Dir, err)
	}
	b := make([]byte, 32)
	_, err = io.ReadFull(f, b)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	if string(b[:8]) != "MUSTRMTA" {
		return "", fmt.Errorf("%s is not the meta file of a log", path)
	}
	return hex.EncodeToString(b[16:24]), nil
}

// owned are the names in a data directory that a backup may have.
var owned = []string{"log", "state", "history.duckdb", "history.duckdb.wal", "history.json", "moved.json"}

// files lists what belongs to a backup.
func (o *Options) files() ([]string, error) {
	all, err := blobtree.Files(o.FS, o.Dir)
	return slices.DeleteFunc(all, func(path string) bool {
		names := strings.Split(path, "/")
		if !slices.Contains(owned, names[0]) {
			return true
		}
		return names[0] == "state" && (len(names) < 5 || !isCheckpoint(names[:4]))
	}), err
}
