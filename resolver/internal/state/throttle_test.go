package state

import (
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// slowFS is a file system in memory on which each write takes a while. It notes what files are
// said to be for, and makes what compactions write wait until hold is closed, unless it is nil.
type slowFS struct {
	vfs.FS
	takes time.Duration
	hold  chan struct{}
	mu    sync.Mutex
	seen  map[vfs.DiskWriteCategory]bool
}

func (s *slowFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	s.mu.Lock()
	s.seen[c] = true
	s.mu.Unlock()
	if s.hold != nil && c == compactionCategory {
		<-s.hold
	}
	f, err := s.FS.Create(name, c)
	return slowFile{f, s.takes}, err
}

type slowFile struct {
	vfs.File
	takes time.Duration
}

func (f slowFile) Write(b []byte) (int, error) {
	time.Sleep(f.takes)
	return f.File.Write(b)
}

// TestTablesThrottled: what compactions and checkpoints write of tables is written with pauses,
// unless somebody waits for it, compactions are behind, or the store closes; nothing else is.
func TestTablesThrottled(t *testing.T) {
	const writes, takes = 30, 100 * time.Microsecond
	worked := writes * takes
	for name, c := range map[string]struct {
		category vfs.DiskWriteCategory
		before   func(d *Disk)
		pauses   time.Duration
	}{
		// Three writes are as long as it works in one go.
		"compaction":   {compactionCategory, func(*Disk) {}, writes / 3 * tableRatio * 3 * takes},
		"checkpoint":   {flushCategory, func(*Disk) {}, writes / 3 * tableRatio * 3 * takes},
		"waited for":   {compactionCategory, func(d *Disk) { d.Urgent() }, 0},
		"waited":       {compactionCategory, func(d *Disk) { d.Urgent()() }, writes / 3 * tableRatio * 3 * takes},
		"behind":       {compactionCategory, func(d *Disk) { d.behind.Store(true) }, 0},
		"behind once":  {compactionCategory, func(d *Disk) { d.behind.Store(true); d.behind.Store(false) }, writes / 3 * tableRatio * 3 * takes},
		"closing":      {compactionCategory, (*Disk).Close, 0},
		"another file": {vfs.WriteCategoryUnspecified, func(*Disk) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewDisk(slog.New(slog.DiscardHandler))
				c.before(d)
				fs := storeFS{&slowFS{FS: vfs.NewMem(), takes: takes, seen: map[vfs.DiskWriteCategory]bool{}}, d, "state"}
				begun := time.Now()
				f, err := fs.Create("000001.sst", c.category)
				if err != nil {
					t.Fatal(err)
				}
				for range writes {
					if _, err := f.Write([]byte("block")); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(begun); took != worked+c.pauses {
					t.Errorf("%d writes took %v, expected %v of work and %v of pauses", writes, took, worked, c.pauses)
				}
			})
		})
	}
}

// TestLongestPause: a pause does not grow with what others kept a compaction waiting.
func TestLongestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := storeFS{&slowFS{FS: vfs.NewMem(), takes: time.Second, seen: map[vfs.DiskWriteCategory]bool{}}, NewDisk(slog.New(slog.DiscardHandler)), "state"}
		f, err := fs.Create("000001.sst", compactionCategory)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := f.Write([]byte("block")); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took != time.Second+tablePause {
			t.Errorf("a write of a second took %v", took)
		}
	})
}

// TestCategories: Pebble's compactions and flushes are those that are known by their category.
func TestCategories(t *testing.T) {
	fs := &slowFS{FS: vfs.NewMem(), seen: map[vfs.DiskWriteCategory]bool{}}
	s, err := OpenOn(NewDisk(slog.New(slog.DiscardHandler)), fs, "state", 1<<20, quiet{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, value := range []string{"one", "two"} {
		if err := s.DB.Set([]byte("key"), []byte(value), pebble.NoSync); err != nil {
			t.Fatal(err)
		}
		if err := s.DB.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if fs.seen[compactionCategory] {
		t.Fatal("something else than a compaction has its category")
	}
	if !fs.seen[flushCategory] {
		t.Errorf("a flush has another category than %q: %v", flushCategory, fs.seen)
	}
	if err := s.DB.Compact(t.Context(), []byte("a"), []byte("z"), false); err != nil {
		t.Fatal(err)
	}
	if !fs.seen[compactionCategory] {
		t.Errorf("a compaction has another category than %q: %v", compactionCategory, fs.seen)
	}
}

// TestCompactionsBehind: compactions are behind once many tables have to be merged, and no
// more when they are.
func TestCompactionsBehind(t *testing.T) {
	fs := &slowFS{FS: vfs.NewMem(), seen: map[vfs.DiskWriteCategory]bool{}, hold: make(chan struct{})}
	d := NewDisk(slog.New(slog.DiscardHandler))
	s, err := OpenOn(d, fs, "state", 1<<20, quiet{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	flush := func() {
		t.Helper()
		for _, key := range []string{"a", "m", "z"} { // tables that overlap
			if err := s.DB.Set([]byte(key), []byte("value"), pebble.NoSync); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Flush(s.DB); err != nil {
			t.Fatal(err)
		}
	}
	for n := 1; n <= manyRuns; n++ {
		if flush(); d.behind.Load() != (n == manyRuns) {
			t.Errorf("after %d tables compactions are behind: %v", n, d.behind.Load())
		}
	}
	close(fs.hold)
	if err := s.DB.Compact(t.Context(), []byte("a"), []byte("zz"), false); err != nil {
		t.Fatal(err)
	}
	if flush(); d.behind.Load() {
		t.Error("all tables are merged, and compactions are still behind")
	}
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(string, ...any) {}

// urgentFS notes whether compactions pause while files are made.
type urgentFS struct {
	vfs.FS
	disk           *Disk
	urgent, paused int
}

func (u *urgentFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if u.disk.urgent.Load() > 0 {
		u.urgent++
	} else {
		u.paused++
	}
	return u.FS.Create(name, c)
}

// TestOpeningIsNotThrottled: a compaction that begins while the store is opened does not
// pause, since the start waits for it; afterwards it does.
func TestOpeningIsNotThrottled(t *testing.T) {
	t.Parallel()
	u := &urgentFS{FS: vfs.NewMem(), disk: NewDisk(slog.New(slog.DiscardHandler))}
	s, err := OpenOn(u.disk, u, "state", 1<<20, NewPebbleLogger(slog.New(slog.DiscardHandler)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if u.urgent == 0 || u.paused > 0 || u.disk.urgent.Load() != 0 {
		t.Errorf("%d files made without pauses, %d with; %d urgent callers are left", u.urgent, u.paused, u.disk.urgent.Load())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
