package checkpoint

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/blobtree/blobtest"
	"github.com/musterhq/muster/resolver/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is storage and a disk.
type world struct {
	t   testing.TB
	b   *blobtest.Bucket
	fs  vfs.FS
	now time.Time
}

func newWorld(t testing.TB) *world {
	return &world{t, blobtest.New(), vfs.NewMem(), time.Unix(1_700_000_000, 0)}
}

// node is a process of the log.
func (w *world) node(log string) *Store {
	w.t.Helper()
	s, err := New(Options{Bucket: w.b, Log: log, FS: w.fs, Rand: rand.Reader, Now: func() time.Time { return w.now }})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// checkpoint makes a directory that stands for the checkpoint at an offset. Each
// has a file of its own and shares one with its neighbour.
func (w *world) checkpoint(offset int64) string {
	w.t.Helper()
	dir := fmt.Sprint("local/", offset)
	for path, text := range map[string]string{"MANIFEST": fmt.Sprint("state at ", offset), "pebble/a.sst": fmt.Sprint("shared", offset/2), "keys/b": "the same"} {
		full := w.fs.PathJoin(dir, path)
		if err := w.fs.MkdirAll(w.fs.PathDir(full), 0o755); err != nil {
			w.t.Fatal(err)
		}
		f, err := w.fs.Create(full, vfs.WriteCategoryUnspecified)
		if err != nil {
			w.t.Fatal(err)
		}
		_, err = f.Write([]byte(text))
		if err := errors.Join(err, f.Close()); err != nil {
			w.t.Fatal(err)
		}
	}
	return dir
}

func (w *world) upload(s *Store, offset int64) {
	w.t.Helper()
	if err := s.Upload(context.Background(), 0, w.checkpoint(offset), offset, 7); err != nil {
		w.t.Fatal(err)
	}
}

// newest fetches, checks what came and returns its offset.
func (w *world) newest(s *Store, have int64) (int64, error) {
	w.t.Helper()
	dir := "fetched"
	offset, err := s.Newest(context.Background(), 0, dir, have)
	if err != nil || offset < 0 {
		if _, e := w.fs.Stat(dir); e == nil {
			w.t.Errorf("something was left in the directory: %d %v", offset, err)
		}
		return offset, err
	}
	defer func() { _ = w.fs.RemoveAll(dir) }()
	f, err := w.fs.Open(w.fs.PathJoin(dir, "MANIFEST"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 100)
	n, _ := f.Read(b)
	if want := fmt.Sprint("state at ", offset); string(b[:n]) != want {
		w.t.Errorf("at %d came %q", offset, b[:n])
	}
	if files, err := blobtree.Files(w.fs, dir); err != nil || len(files) != 3 {
		w.t.Errorf("%v %v", files, err)
	}
	return offset, nil
}

func (w *world) expect(s *Store, have, want int64) {
	w.t.Helper()
	if got, err := w.newest(s, have); err != nil || got != want {
		w.t.Errorf("newest above %d is %d, want %d: %v", have, got, want, err)
	}
}

func (w *world) manifests() (offsets []int64) {
	for _, key := range w.b.Keys("p0/manifests/") {
		v, ok := parseVersion(strings.TrimSuffix(strings.TrimPrefix(key, "p0/manifests/"), ".json"))
		if !ok {
			w.t.Fatal(key)
		}
		offsets = append(offsets, v.offset)
	}
	return offsets
}

// TestNewestIsFound by any node, if it has none as new; partitions are apart.
func TestNewestIsFound(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("log"), w.node("log")
	w.expect(b, -1, -1)
	w.upload(a, 10)
	w.upload(a, 20)
	w.expect(b, -1, 20)
	w.expect(b, 19, 20)
	w.expect(b, 20, -1)
	w.expect(b, 21, -1)
	for p, want := range []int64{20, -1} {
		dir := fmt.Sprint("part", p)
		if got, err := b.NewestPart(context.Background(), p, dir, 10, []string{"MANIFEST"}); err != nil || got != want {
			t.Errorf("the newest of partition %d is at %d, want %d: %v", p, got, want, err)
		}
		if files, err := w.fs.List(dir); want >= 0 && (err != nil || !slices.Equal(files, []string{"MANIFEST"})) || want < 0 && err == nil {
			t.Errorf("partition %d: %v %v", p, files, err)
		}
	}
	if got, err := b.NewestPart(context.Background(), 0, "part", 20, []string{"MANIFEST"}); err != nil || got != -1 {
		t.Errorf("nothing is newer: %d %v", got, err)
	}
	if got, err := b.Newest(context.Background(), 1, "other", -1); err != nil || got != -1 {
		t.Errorf("partition 1: %d %v", got, err)
	}
	if st := b.Stats(); st.FetchedBytes == 0 {
		t.Errorf("%+v", st)
	}
}

// TestFetchBeginsAnew: what a kill left of a checkpoint that was being fetched does not get
// into the next one.
func TestFetchBeginsAnew(t *testing.T) {
	w := newWorld(t)
	s := w.node("log")
	w.upload(s, 10)
	if _, err := vfs.Clone(w.fs, w.fs, "local/10", "fetched"); err != nil {
		t.Fatal(err)
	}
	if err := w.fs.Rename("fetched/pebble/a.sst", "fetched/pebble/of-another.sst"); err != nil {
		t.Fatal(err)
	}
	w.expect(s, -1, 10)
}

// TestTwoAreKept: the newest two, whichever node uploaded them; of a node that is
// late only what may still be of use is stored.
func TestTwoAreKept(t *testing.T) {
	w := newWorld(t)
	a, late := w.node("log"), w.node("log")
	for _, step := range []struct {
		by     *Store
		offset int64
		want   []int64
	}{
		{a, 10, []int64{10}},
		{a, 20, []int64{10, 20}},
		{a, 30, []int64{20, 30}},
		{late, 15, []int64{20, 30}},
		{late, 25, []int64{25, 30}},
		{late, 25, []int64{25, 30}},
		{a, 40, []int64{30, 40}},
	} {
		w.upload(step.by, step.offset)
		if got := w.manifests(); !slices.Equal(got, step.want) {
			t.Fatalf("after %d: %v, want %v", step.offset, got, step.want)
		}
	}
	if st := late.Stats(); st.Sent != 3 { // one checkpoint, of which it had a file
		t.Errorf("the late node sent %+v", st)
	}
	// What no manifest names goes after a day; the first look was at the first
	// Upload.
	w.now = w.now.Add(collectEvery)
	w.b.Advance(keepFiles + time.Second)
	before := len(w.b.Keys("p0/files/"))
	w.upload(a, 50)
	if got := len(w.b.Keys("p0/files/")); got >= before || a.Stats().Removed == 0 {
		t.Errorf("%d files, then %d", before, got)
	}
	w.expect(late, -1, 50)
}

// TestDamagedBlobMakesTheOlderOneTaken, and with none that is whole there is none.
func TestDamagedBlobMakesTheOlderOneTaken(t *testing.T) {
	start := newWorld(t)
	a := start.node("log")
	start.upload(a, 10)
	old := start.b.Keys("p0/")
	start.upload(a, 20)
	for _, key := range start.b.Keys("p0/") {
		if slices.Contains(old, key) {
			continue
		}
		for _, missing := range []bool{false, true} {
			w := &world{t, start.b.Clone(), start.fs, start.now}
			if missing {
				_ = w.b.Delete(context.Background(), key)
			} else {
				w.b.Damage(key)
			}
			w.expect(w.node("log"), -1, 10)
			w.expect(w.node("log"), 10, -1)
			// And what comes next is not kept from being stored.
			w.upload(w.node("log"), 30)
			w.expect(w.node("log"), -1, 30)
		}
	}
	for _, key := range start.b.Keys("p0/manifests/") {
		start.b.Damage(key)
	}
	start.expect(start.node("log"), -1, -1)
}

// TestOtherLogIsRefused: a place belongs to one log.
func TestOtherLogIsRefused(t *testing.T) {
	w := newWorld(t)
	w.upload(w.node("topic a"), 10)
	other := w.node("topic b")
	for _, have := range []int64{-1, 10, 50} {
		if _, err := w.newest(other, have); !errors.Is(err, node.ErrForeignCheckpoints) || !strings.Contains(err.Error(), "topic a") {
			t.Errorf("have %d: %v", have, err)
		}
	}
	if _, err := other.NewestPart(context.Background(), 0, "part", -1, []string{"MANIFEST"}); !errors.Is(err, node.ErrForeignCheckpoints) {
		t.Error(err)
	}
	if err := other.Upload(context.Background(), 0, w.checkpoint(50), 50, 1); !errors.Is(err, node.ErrForeignCheckpoints) {
		t.Error(err)
	}
	if got := w.manifests(); !slices.Equal(got, []int64{10}) {
		t.Error(got)
	}
}

// TestReplacedWhileReadIsReadAgain: what is being fetched may be thinned out and
// its files collected; then the newer one is fetched.
func TestReplacedWhileReadIsReadAgain(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("log"), w.node("log")
	w.upload(a, 10)
	w.b.Advance(2 * keepFiles)
	for _, kind := range []string{"get p0/manifests/", "get p0/files/"} {
		var met atomic.Bool
		uploaded := make(chan struct{}) // several files are read at once: none before that
		first := w.manifests()[0]
		w.b.Before = func(op blobtest.Op) error {
			switch what := op.Kind + " " + op.Key; {
			case !strings.HasPrefix(what, kind):
			case met.CompareAndSwap(false, true):
				w.now = w.now.Add(collectEvery)
				w.upload(a, first+10)
				w.upload(a, first+20)
				w.upload(a, first+30)
				w.b.Advance(2 * keepFiles)
				w.now = w.now.Add(collectEvery)
				w.upload(a, first+40)
				close(uploaded)
			case strings.HasPrefix(what, "get p0/files/"):
				<-uploaded
			}
			return nil
		}
		w.expect(b, -1, first+40)
		w.b.Before = nil
		if !met.Load() {
			t.Errorf("%s did not happen", kind)
		}
	}
	// Not for ever.
	n := int64(1000)
	busy := false
	w.b.Before = func(op blobtest.Op) error {
		if op.Kind == "get" && strings.HasPrefix(op.Key, "p0/manifests/") && !busy {
			busy = true
			defer func() { busy = false }()
			w.upload(a, n)
			w.upload(a, n+1)
			n += 2
		}
		return nil
	}
	if _, err := w.newest(b, -1); !errors.Is(err, errReplaced) {
		t.Error(err)
	}
}

// TestNoAnswerIsAnError, never "there is none".
func TestNoAnswerIsAnError(t *testing.T) {
	w := newWorld(t)
	w.upload(w.node("log"), 10)
	down := errors.New("down")
	for step := 0; ; step++ {
		var n atomic.Int32 // several pieces are read at once
		w.b.Before = func(blobtest.Op) error {
			if int(n.Add(1)) > step {
				return down
			}
			return nil
		}
		got, err := w.newest(w.node("log"), -1)
		if err == nil {
			if step < 5 || got != 10 {
				t.Errorf("%d after %d steps", got, step)
			}
			return
		}
		if !errors.Is(err, down) {
			t.Fatalf("step %d: %v", step, err)
		}
		n.Store(0)
		if got, err := w.node("log").NewestPart(context.Background(), 0, fmt.Sprint("part", step), -1, []string{"MANIFEST"}); err == nil && got != 10 || err != nil && !errors.Is(err, down) {
			t.Fatalf("step %d: the newest is at %d: %v", step, got, err)
		}
	}
}

// TestB3CrashAtEveryStepOfUpload: whichever operation fails, or is the last of
// the process, a node that comes finds a whole checkpoint, no older than before,
// and can upload.
func TestB3CrashAtEveryStepOfUpload(t *testing.T) {
	start := newWorld(t)
	a := start.node("log")
	start.upload(a, 10)
	start.upload(a, 20)
	start.upload(a, 30)
	start.b.Advance(2 * keepFiles) // so that all of it is stored again, and there is garbage
	crash := errors.New("crash")
	for step := 0; ; step++ {
		w := &world{t, start.b.Clone(), start.fs, start.now}
		var mu sync.Mutex // several files are put at once
		n, all := 0, 0
		w.b.Before = func(blobtest.Op) error {
			mu.Lock()
			defer mu.Unlock()
			if all++; n >= step {
				return crash
			}
			n++
			return nil
		}
		err := w.node("log").Upload(context.Background(), 0, w.checkpoint(40), 40, 7)
		w.b.Before = nil
		if err != nil && !errors.Is(err, crash) {
			t.Fatalf("step %d: %v", step, err)
		}
		got, e := w.newest(w.node("log"), -1)
		if e != nil || got != 40 && (err == nil || got != 30) {
			t.Fatalf("step %d (%v): newest is %d: %v", step, err, got, e)
		}
		w.upload(w.node("log"), 50)
		w.expect(w.node("log"), -1, 50)
		if all == step && err == nil {
			if step < 15 {
				t.Errorf("only %d steps", step)
			}
			return
		}
	}
}
