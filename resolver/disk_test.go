package resolver

import (
	"github.com/musterhq/muster/resolver/internal/checkpoint"

	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver/internal/state"
)

// scarceFS is a file system that is full while full is set.
type scarceFS struct {
	vfs.FS
	full *atomic.Bool
	// room are the bytes of tables that are written nevertheless.
	room *atomic.Int64
}

func newScarceFS(fs vfs.FS) scarceFS { return scarceFS{fs, new(atomic.Bool), new(atomic.Int64)} }

func (s scarceFS) err() error {
	if s.full.Load() {
		return &os.PathError{Op: "write", Path: "disk", Err: syscall.ENOSPC}
	}
	return nil
}

func (s scarceFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := s.err(); err != nil && s.room.Load() <= 0 {
		return nil, err
	}
	f, err := s.FS.Create(name, c)
	if err != nil {
		return nil, err
	}
	return &scarceFile{f, s, name}, nil
}

func (s scarceFS) Link(from, to string) error {
	if err := s.err(); err != nil {
		return err
	}
	return s.FS.Link(from, to)
}

type scarceFile struct {
	vfs.File
	fs   scarceFS
	name string
}

func (f *scarceFile) Write(b []byte) (int, error) {
	if err := f.fs.err(); err != nil && (!strings.HasSuffix(f.name, ".sst") || f.fs.room.Add(-int64(len(b))) < 0) {
		return 0, err
	}
	return f.File.Write(b)
}

// TestFullDiskHoldsCheckpointsUp: while there is no space for the state, events are
// taken up to the bound on what changed in memory, reads go on and nothing is left of
// checkpoints that were begun; with space again they are written, and hold everything.
func TestFullDiskHoldsCheckpointsUp(t *testing.T) {
	f := newFixture(t)
	disk := newScarceFS(f.fs)
	start := func() *Node {
		t.Helper()
		n, err := Open(context.Background(), f.options(func(o *Options) {
			o.FS, o.CheckpointInterval, o.GenerationBytes, o.MaxBacklog = disk, 10*time.Millisecond, 256<<10, 5
			o.End = func(why string) { t.Errorf("the process ends: %s", why) }
		}))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	n := start()
	if _, err := n.Command(context.Background(), testAccount, CommandBootstrap, testBootstrap(DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	sent := 0
	sendWithin := func(patience time.Duration) error {
		env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount}
		if err := n.stamp(&env); err != nil {
			t.Fatal(err)
		}
		e := ev("external_id", fmt.Sprint("person ", sent))
		e.Attributes = fmt.Appendf(nil, `{"a":%q}`, strings.Repeat("x", 4000))
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var out Outcome
		err := n.Submit(ctx, testAccount, appendEvents(env.Append(nil), []eventlog.Event{e}), &out)
		if !errors.Is(err, ErrOverloaded) {
			sent++ // stored, though perhaps not applied in time
		}
		return err
	}
	send := func() error { return sendWithin(time.Minute) }
	stats := func() Stats { return n.Stats()[0] }
	for range 2 {
		for range 10 {
			if err := send(); err != nil {
				t.Fatal(err)
			}
		}
		eventually.Holds(t, "a checkpoint", func() bool { return stats().LastCheckpoint == stats().Applied })
		last := stats().LastCheckpoint
		disk.full.Store(true)
		taken := 0
		eventually.Holds(t, "events are refused", func() bool {
			err := sendWithin(200 * time.Millisecond) // some wait for space
			if err == nil {
				taken++
			}
			return errors.Is(err, ErrOverloaded)
		})
		if taken < 10 || n.Err() != nil || !stats().DiskFull || stats().LastCheckpoint != last {
			t.Fatalf("%d were taken, %v, %+v", taken, n.Err(), stats())
		}
		if c, err := viewed(context.Background(), n, testAccount); err != nil || c == 0 {
			t.Fatal(c, err)
		}
		disk.full.Store(false)
		eventually.Holds(t, "events are taken again", func() bool { return send() == nil })
		eventually.Holds(t, "a checkpoint", func() bool { return stats().LastCheckpoint == stats().Applied && !stats().DiskFull })
	}
	// A stop on a full disk leaves no checkpoint, and no half of one.
	disk.full.Store(true)
	if err := send(); err != nil {
		t.Fatal(err)
	}
	f.close(t, n)
	disk.full.Store(false)
	names, err := f.fs.List("state/p0/checkpoints")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, checkpoint.TmpPrefix) {
			t.Errorf("%s is left", name)
		}
	}
	f.openLog(t)
	n = start()
	if got := stats().Profiles; got != int64(sent) {
		t.Errorf("%d profiles, want %d", got, sent)
	}
	f.close(t, n)
}

// TestStoreWaitsForSpace: Pebble's manifest waits for space, tables are tried again,
// and a store that is closed without space ends without calling for the process's end.
func TestStoreWaitsForSpace(t *testing.T) {
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprint(again), func(t *testing.T) {
			fs := newScarceFS(vfs.NewMem())
			var said lockedBuffer
			d := state.NewDisk(slog.New(slog.NewTextHandler(&said, nil)))
			s, err := state.OpenOn(d, fs, "live", 1<<20, newPebbleLogger(discard()).ending(func(why string) { t.Errorf("the process ends: %s", why) }), nil)
			if err != nil {
				t.Fatal(err)
			}
			key, value := []byte("key"), bytes.Repeat([]byte("v"), 1000)
			if err := s.DB.Set(key, value, pebble.NoSync); err != nil {
				t.Fatal(err)
			}
			fs.full.Store(true)
			fs.room.Store(1 << 20) // the table is written, the manifest is not
			if err := d.Flush(s.DB); !state.IsFull(err) {
				t.Fatal(err)
			}
			if v, closer, err := s.DB.Get(key); err != nil || !bytes.Equal(v, value) {
				t.Fatal(err)
			} else {
				closer.Close()
			}
			if !d.Full() || strings.Count(said.String(), "is full") != 1 {
				t.Errorf("full: %v, said %s", d.Full(), said.String())
			}
			if again {
				fs.full.Store(false)
				eventually.Holds(t, "the store writes again", func() bool { return !d.Full() })
				if err := d.Flush(s.DB); err != nil {
					t.Fatal(err)
				}
			}
			d.Close()
			if err := s.DB.Close(); err != nil {
				t.Fatal(err)
			}
			if !again && d.StoreErr() == nil {
				t.Error("a store whose writes were dropped counts as whole")
			}
		})
	}
}

// lockedBuffer takes log lines from several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
