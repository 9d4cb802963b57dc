package blobtree_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/blobtree/blobtest"
)

// rereadWorld is a set that keeps all, with a version v of pieces of 16 bytes.
type rereadWorld struct {
	t  *testing.T
	fs vfs.FS
	b  *blobtest.Bucket
	s  *blobtree.Set
	// read are the pieces that were read; fails is the error of reading them.
	read  map[string]int
	fails error
}

func newRereadWorld(t *testing.T, pieces int) *rereadWorld {
	w := &rereadWorld{t: t, fs: vfs.NewMem(), b: blobtest.New(), read: map[string]int{}}
	w.b.Before = func(op blobtest.Op) error {
		if op.Kind != "get" || !strings.HasPrefix(op.Key, "set/files/") {
			return nil
		}
		w.read[op.Key]++
		return w.fails
	}
	var text strings.Builder
	for i := range pieces {
		fmt.Fprintf(&text, "piece %10d", i)
	}
	tree{"d/a": text.String(), "d/same": text.String(), "empty": ""}.write(t, w.fs, "one")
	w.s = newSet(t, w.b, w.fs, func(o *blobtree.Options) { o.Keep, o.Parallel = 0, 1 })
	w.put("v")
	return w
}

func (w *rereadWorld) put(name string) {
	w.t.Helper()
	w.s.Forget()
	if _, err := w.s.Put(context.Background(), name, nil, "one", nil); err != nil {
		w.t.Fatal(err)
	}
}

func (w *rereadWorld) reread(turn int) (blobtree.Reread, error) {
	return w.s.Reread(context.Background(), "v", turn, blobtree.Sources(w.fs, "one", []string{"d/a", "d/same", "empty"}))
}

// all takes two hundred turns, and returns what was damaged.
func (w *rereadWorld) all() (damaged []blobtree.Damage) {
	w.t.Helper()
	for turn := range 200 {
		out, err := w.reread(1000 + turn)
		if err != nil {
			w.t.Fatal(err)
		}
		damaged = append(damaged, out.Damaged...)
	}
	return damaged
}

// TestB2RereadReadsAll: two hundred turns read each object once, or, where there are few, one
// at a time.
func TestB2RereadReadsAll(t *testing.T) {
	for _, pieces := range []int{1, 7, 1000} {
		w := newRereadWorld(t, pieces)
		most := 0
		for turn := range 200 {
			out, err := w.reread(turn)
			if err != nil || out.Objects == 0 || out.Bytes != 16*int64(out.Objects) || len(out.Damaged) > 0 {
				t.Fatalf("%d pieces, turn %d: %+v %v", pieces, turn, out, err)
			}
			most = max(most, out.Objects)
		}
		if len(w.read) != pieces || most > 1+5*pieces/200 {
			t.Errorf("%d pieces: %d were read, at most %d at a time", pieces, len(w.read), most)
		}
		for key, n := range w.read {
			if pieces == 1000 && n > 3 { // a turn without a piece reads the next one
				t.Errorf("%s was read %d times", key, n)
			}
		}
	}
	w := newRereadWorld(t, 0)
	if out, err := w.reread(3); err != nil || out.Objects != 0 {
		t.Errorf("%+v %v", out, err)
	}
}

// TestB2RereadMends: an object whose bytes are others, that is missing or that the disk cannot
// read is found and stored again, under its name.
func TestB2RereadMends(t *testing.T) {
	for what, damage := range map[string]func(w *rereadWorld, key string){
		"another byte": func(w *rereadWorld, key string) { w.b.Damage(key) },
		"missing":      func(w *rereadWorld, key string) { _ = w.b.Delete(t.Context(), key) },
		"cut off":      func(w *rereadWorld, key string) { _ = w.b.Put(t.Context(), key, strings.NewReader("piece")) },
		"unreadable": func(w *rereadWorld, key string) {
			before := w.b.Before
			w.b.Before = func(op blobtest.Op) error {
				if op.Kind == "put" && op.Key == key {
					w.b.Before = before
				} else if op.Kind == "get" && op.Key == key {
					return syscall.EIO
				}
				return before(op)
			}
		},
	} {
		w := newRereadWorld(t, 50)
		key := w.b.Keys("set/files/")[20]
		damage(w, key)
		damaged := w.all()
		if len(damaged) != 1 || damaged[0].Key != key || damaged[0].File != "d/a" || damaged[0].Err == nil || damaged[0].Unmended != nil {
			t.Fatalf("%s: %+v", what, damaged)
		}
		if err := fetch(w.s, "v", w.fs, "new"); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestB2RereadWhatCannotBeMended: what its file has not any more stays damaged, and is stored
// again once a version has the content.
func TestB2RereadWhatCannotBeMended(t *testing.T) {
	w := newRereadWorld(t, 50)
	was := readTree(t, w.fs, "one")
	key := w.b.Keys("set/files/")[20]
	w.b.Damage(key)
	tree{"d/a": strings.Repeat("x", len(was["d/a"]))}.write(t, w.fs, "one")
	damaged := w.all()
	if len(damaged) == 0 || damaged[0].Key != key || damaged[0].Unmended == nil {
		t.Fatalf("%+v", damaged)
	}
	if err := fetch(w.s, "v", w.fs, "new"); !errors.Is(err, blobtree.ErrDamaged) {
		t.Error(err)
	}
	was.write(t, w.fs, "one")
	w.put("w")
	if err := errors.Join(fetch(w.s, "v", w.fs, "old"), fetch(w.s, "w", w.fs, "newer")); err != nil {
		t.Error(err)
	}
	w.b.Damage("set/manifests/v.json")
	if out, err := w.reread(0); err != nil || len(out.Damaged) != 1 || out.Damaged[0].Key != "set/manifests/v.json" || out.Damaged[0].Unmended == nil {
		t.Errorf("%+v %v", out, err)
	}
}

// TestB2RereadOfStorageThatIsDown damages nothing.
func TestB2RereadOfStorageThatIsDown(t *testing.T) {
	w := newRereadWorld(t, 50)
	w.fails = errors.New("no answer")
	if out, err := w.reread(0); !errors.Is(err, w.fails) || len(out.Damaged) > 0 {
		t.Errorf("%+v %v", out, err)
	}
	w.fails = nil
	if damaged := w.all(); len(damaged) > 0 {
		t.Errorf("%+v", damaged)
	}
}
