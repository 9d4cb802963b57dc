package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/blobtree"
)

// fileRestoring marks a directory that is being restored.
const fileRestoring = "RESTORING"

// ErrNotWhole means that a directory has only a part of a backup.
var ErrNotWhole = errors.New("the data directory is not whole")

// CheckWhole refuses a directory in which a restore was cut off.
func CheckWhole(fsys vfs.FS, dir string) error {
	_, err := fsys.Stat(fsys.PathJoin(dir, fileRestoring))
	switch {
	case err == nil:
		return fmt.Errorf("%w: a restore to %s was cut off. Run muster restore again", ErrNotWhole, dir)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

// Backup describes a backup.
type Backup struct {
	Name  string
	Files int
	Bytes int64
	Err   error // why it cannot be read, nil when it can
	// Records is how many the left log had behind the backup's.
	Records int64
	// Trimmed reports whether the log that was restored lacks its beginning: what is damaged
	// of the state or of history is then not made from it.
	Trimmed bool
}

// List describes the backups, oldest first.
func List(ctx context.Context, o Options) ([]Backup, error) {
	set, err := o.set()
	if err != nil {
		return nil, err
	}
	have, err := names(ctx, set)
	if err != nil {
		return nil, err
	}
	var out []Backup
	for _, name := range have {
		b := Backup{Name: name}
		if m, err := set.Manifest(ctx, name); err != nil {
			b.Err = err
		} else {
			b.Files, b.Bytes = len(m.Files), m.Bytes()
		}
		out = append(out, b)
	}
	return out, nil
}

// Restore makes the directory what it was at a backup, the newest one when name
// is empty. The directory must be empty, not there, or that of a restore that was
// cut off. Every byte is checked. With o.Log, another log than the one that was backed up
// is refused before the backup is fetched.
func Restore(ctx context.Context, o Options, name string) (done Backup, err error) {
	set, err := o.set()
	if err != nil {
		return done, err
	}
	have, err := names(ctx, set)
	switch {
	case err != nil:
		return done, err
	case len(have) == 0:
		return done, errors.New("there is no backup; name the place that was given to muster backup --to")
	case name == "":
		name = have[len(have)-1]
	case !slices.Contains(have, name):
		return done, fmt.Errorf("there is no backup %q; the newest is %s, see --list", name, have[len(have)-1])
	}
	m, err := set.Manifest(ctx, name)
	if err != nil {
		return done, fmt.Errorf("backup %s: %w. Another one may be whole, see --list", name, err)
	}
	if err := o.FS.MkdirAll(o.Dir, 0o700); err != nil {
		return done, fmt.Errorf("data directory: %w", err)
	}
	lock, err := o.lock()
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := o.clear(); err != nil {
		return done, err
	}
	var left *leftLog
	if o.Log != "" {
		if left, err = o.openLeftLog(ctx, set, m); err != nil {
			return done, err
		}
		defer left.close()
	}
	if err := set.Fetch(ctx, m, o.Dir); err != nil {
		return done, fmt.Errorf("backup %s: %w%s", name, err, remedy(err))
	}
	var log file.Checked
	var records int64
	if left != nil {
		if log, records, err = o.continueLog(left.Checked); err != nil {
			return done, err
		}
	}
	if err := errors.Join(o.FS.Remove(o.FS.PathJoin(o.Dir, fileRestoring)), o.sync(o.Dir)); err != nil {
		return done, err
	}
	if o.Log == "" {
		if log, err = o.checkLog(); err != nil {
			return done, fmt.Errorf("backup %s was restored, but it is of a log that was damaged already: %w. To restore an older backup to another directory, see --list, and --log for what is left of the log", name, err)
		}
	}
	return Backup{Name: name, Files: len(m.Files), Bytes: m.Bytes(), Records: records, Trimmed: trimmed(log)}, nil
}

// remedy is what to do about damage to what is stored: backups share objects.
func remedy(err error) string {
	if !errors.Is(err, blobtree.ErrDamaged) {
		return ""
	}
	return ". Restore a backup without this object, see --list. If the service still runs, or its directory is whole, remove the object: the next backup sends it again"
}

// clear marks the directory and removes what an earlier restore left in it.
func (o *Options) clear() error {
	names, err := o.FS.List(o.Dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	again := slices.Contains(names, fileRestoring)
	for _, n := range names {
		if n != fileLock && n != fileRestoring && !(again && slices.Contains(owned, n)) {
			return fmt.Errorf("%s is not empty, it has %s: name a new directory with --data", o.Dir, n)
		}
	}
	f, err := o.FS.Create(o.FS.PathJoin(o.Dir, fileRestoring), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close(), o.sync(o.Dir), o.sync(o.FS.PathDir(o.Dir))); err != nil {
		return err
	}
	for _, n := range owned {
		if err := o.FS.RemoveAll(o.FS.PathJoin(o.Dir, n)); err != nil {
			return err
		}
	}
	return o.sync(o.Dir)
}

func (o *Options) sync(dir string) error {
	if dir == "" {
		dir = "."
	}
	d, err := o.FS.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
