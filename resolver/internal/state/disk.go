package state

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disk is the space for a partition's files. Its methods may be called on nil,
// which is a disk that is never full.
type Disk struct {
	log *slog.Logger
	// store is set while Pebble finds no space, checkpoint while a checkpoint does.
	store, Checkpoint atomic.Bool
	// running is set once Pebble is open: from then on it waits for space.
	running atomic.Bool
	// dropped is set when a write of Pebble's was given up at the end: what its files
	// hold then is no state.
	dropped atomic.Bool
	// damage is the first damage to Pebble's files that was found while they were in use.
	damage atomic.Pointer[error]
	// urgent counts the callers that wait for compactions, behind is set while compactions
	// have much to do: see throttle.go.
	urgent  atomic.Int32
	behind  atomic.Bool
	closing chan struct{}
	closes  sync.Once
	said    atomic.Int64 // when the log was last told, in Unix seconds
}

// NewDisk is a disk that has space, as far as is known.
func NewDisk(log *slog.Logger) *Disk { return &Disk{log: log, closing: make(chan struct{})} }

// IsFull reports whether the error is that of a full file system or of a quota used up.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Full reports whether there was no space at the last try.
func (d *Disk) Full() bool { return d != nil && (d.store.Load() || d.Checkpoint.Load()) }

// StoreErr is why Pebble cannot write at present, nil if it can.
func (d *Disk) StoreErr() error {
	if d == nil || !d.store.Load() && !d.dropped.Load() {
		return nil
	}
	return fmt.Errorf("the state's store waits for space: %w", syscall.ENOSPC)
}

// sayEvery is how often a log line says that the disk is full.
const sayEvery = 60

// Note remembers that a try has failed, and logs it once in a while.
func (d *Disk) Note(flag *atomic.Bool, err error) {
	flag.Store(true)
	now, said := time.Now().Unix(), d.said.Load() // for the pace of lines only
	if now-said >= sayEvery && d.said.CompareAndSwap(said, now) {
		d.log.Error("the file system of the state is full: no checkpoint is written until there is space again, and once too much has changed in memory events are refused; reads continue. Free space elsewhere on it, remove nothing in the data directory", "error", err)
	}
}

// Clear remembers that a try has gone well.
func (d *Disk) Clear(flag *atomic.Bool) {
	if flag.CompareAndSwap(true, false) && !d.Full() && d.said.Swap(0) != 0 {
		d.log.Info("there is space for the state again")
	}
}

// Close ends all waiting for space.
func (d *Disk) Close() { d.closes.Do(func() { close(d.closing) }) }

// pause waits for a time. It returns false at once when the disk is closed.
func (d *Disk) pause(length time.Duration) bool {
	t := time.NewTimer(length)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-d.closing:
		return false
	}
}

// noteDamage remembers the first damage to Pebble's files.
func (d *Disk) noteDamage(err error) {
	if d != nil {
		d.damage.CompareAndSwap(nil, &err)
	}
}

// Flush is db.Flush, which tries for ever on a full disk and where files are gone, but
// returns then.
func (d *Disk) Flush(db *pebble.DB) error {
	if d == nil {
		return db.Flush()
	}
	flushed, err := db.AsyncFlush()
	if err != nil {
		return err
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-flushed:
			d.noteRuns(db)
			return d.StoreErr()
		case <-look.C:
			if damage := d.damage.Load(); damage != nil {
				return *damage
			}
			if err := d.StoreErr(); err != nil {
				return err
			}
		}
	}
}

// spacePause is how long Pebble's writes wait before they are tried again.
const spacePause = 500 * time.Millisecond

// storeFS is the file system below Pebble. Pebble takes no error in its manifest:
// it ends the process, since it does not know what was written. It tries again what
// failed in a table, but without a pause. So on a full disk a write to a table fails
// after a pause, which frees what was written of it, and any other write waits until
// there is space. Only the goroutine that writes a checkpoint waits for either.
type storeFS struct {
	vfs.FS
	disk *Disk
	dir  string // of Pebble; elsewhere errors are the caller's
}

func (s storeFS) waits(name string) bool {
	return s.disk.running.Load() && s.PathDir(name) == s.dir
}

func (s storeFS) isTable(name string) bool {
	n := len(name)
	return n > 4 && name[n-4:] == ".sst" || n > 5 && name[n-5:] == ".blob"
}

// try does something until there is space for it, or as often as it may wait.
func (s storeFS) try(name string, do func() error) error {
	for {
		err := do()
		if !IsFull(err) {
			return err
		}
		if !s.waits(name) {
			return err
		}
		s.disk.Note(&s.disk.store, err)
		if !s.disk.pause(spacePause) || s.isTable(name) {
			return err
		}
	}
}

// Create implements [vfs.FS].
func (s storeFS) Create(name string, c vfs.DiskWriteCategory) (f vfs.File, err error) {
	err = s.try(name, func() error {
		f, err = s.FS.Create(name, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	if f = (&storeFile{f, s, name}); c == compactionCategory || c == flushCategory {
		f = &throttledFile{File: f, disk: s.disk, since: time.Now()}
	}
	return f, nil
}

// Rename implements [vfs.FS].
func (s storeFS) Rename(from, to string) error {
	return s.try(to, func() error { return s.FS.Rename(from, to) })
}

// Link implements [vfs.FS].
func (s storeFS) Link(from, to string) error {
	return s.try(to, func() error { return s.FS.Link(from, to) })
}

type storeFile struct {
	vfs.File
	fs   storeFS
	name string
}

// Write implements [vfs.File].
func (f *storeFile) Write(b []byte) (n int, err error) {
	err = f.fs.try(f.name, func() error {
		some, err := f.File.Write(b[n:])
		n += some
		return err
	})
	if IsFull(err) && f.fs.waits(f.name) && !f.fs.isTable(f.name) {
		// The partition ends, and its store is rebuilt from a checkpoint at the
		// next start.
		f.fs.disk.dropped.Store(true)
		return len(b), nil
	}
	return n, err
}

// Sync implements [vfs.File].
func (f *storeFile) Sync() error { return f.synced(f.File.Sync()) }

// SyncData implements [vfs.File].
func (f *storeFile) SyncData() error { return f.synced(f.File.SyncData()) }

func (f *storeFile) synced(err error) error {
	if err == nil && f.fs.waits(f.name) && !f.fs.disk.dropped.Load() {
		f.fs.disk.Clear(&f.fs.disk.store)
	}
	return err
}
