package blobtree_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/blobtree/blobtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const keep = 24 * time.Hour

func newSet(t testing.TB, b blobtree.Bucket, fs vfs.FS, change func(*blobtree.Options)) *blobtree.Set {
	t.Helper()
	o := blobtree.Options{FS: fs, Rand: rand.Reader, Keep: keep, PieceBytes: 16}
	if change != nil {
		change(&o)
	}
	s, err := blobtree.NewSet(b, "set", o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type tree map[string]string

func (f tree) write(t testing.TB, fs vfs.FS, dir string) {
	t.Helper()
	for path, text := range f {
		full := fs.PathJoin(dir, path)
		if err := fs.MkdirAll(fs.PathDir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := fs.Create(full, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, err = out.Write([]byte(text))
		if err := errors.Join(err, out.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func readTree(t testing.TB, fs vfs.FS, dir string) tree {
	t.Helper()
	files, err := blobtree.Files(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	out := tree{}
	for _, path := range files {
		f, err := fs.Open(fs.PathJoin(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, info.Size())
		if len(b) > 0 {
			if _, err := f.ReadAt(b, 0); err != nil {
				t.Fatal(err)
			}
		}
		out[path] = string(b)
		_ = f.Close()
	}
	return out
}

// randomTree has few distinct contents, so that versions share much.
func randomTree(r *mathrand.Rand) tree {
	f := tree{}
	for range 1 + r.IntN(5) {
		f[fmt.Sprintf("d%d/f%d", r.IntN(2), r.IntN(4))] = strings.Repeat(string(rune('a'+r.IntN(5))), r.IntN(50))
	}
	return f
}

func fetch(s *blobtree.Set, name string, fs vfs.FS, dir string) error {
	m, err := s.Manifest(context.Background(), name)
	if err != nil {
		return err
	}
	return s.Fetch(context.Background(), m, dir)
}

// TestB2WhatIsPutIsReadBack on all kinds of storage.
func TestB2WhatIsPutIsReadBack(t *testing.T) {
	for name, open := range buckets(t) {
		t.Run(name, func(t *testing.T) {
			fs, ctx := vfs.NewMem(), context.Background()
			b := open(t)
			s := newSet(t, b, fs, nil)
			want := tree{"a": "", "b/c": strings.Repeat("x", 16), "b/d": strings.Repeat("0123456789", 7), "b/e/f": "1"}
			want.write(t, fs, "one")
			sent, err := s.Put(ctx, "v1", map[string]int{"n": 1}, "one", nil)
			if err != nil {
				t.Fatal(err)
			}
			// One piece of x, five of digits, one of 1.
			if sent.Files != 4 || sent.Bytes != 87 || sent.Objects != 8 {
				t.Errorf("%+v", sent)
			}
			if err := fetch(s, "v1", fs, "back"); err != nil {
				t.Fatal(err)
			}
			if got := readTree(t, fs, "back"); !maps.Equal(got, want) {
				t.Errorf("%q", got)
			}
			m, err := s.Manifest(ctx, "v1")
			if err != nil || string(m.Meta) != `{"n":1}` || m.Bytes() != 87 {
				t.Errorf("%+v %v", m, err)
			}
			// A second one sends what changed: nothing but the manifest, by this set
			// and by one that has just been opened.
			for i, s := range []*blobtree.Set{s, newSet(t, b, fs, nil)} {
				if sent, err := s.Put(ctx, fmt.Sprintf("v%d", i+2), nil, "one", nil); err != nil || sent.Objects != 1 {
					t.Errorf("%+v %v", sent, err)
				}
			}
			if names, err := s.Names(ctx); err != nil || !slices.Equal(names, []string{"v1", "v2", "v3"}) {
				t.Errorf("%v %v", names, err)
			}
			if err := s.Remove(ctx, "v2"); err != nil {
				t.Fatal(err)
			}
			if err := s.Remove(ctx, "v2"); err != nil {
				t.Errorf("removed twice: %v", err)
			}
			if _, err := s.Manifest(ctx, "v2"); !errors.Is(err, blobtree.ErrMissing) {
				t.Error(err)
			}
			if n, err := s.Collect(ctx, "v3"); err != nil || n != 0 {
				t.Errorf("collected %d: %v", n, err)
			}
		})
	}
}

// TestB2DamageIsNoticed: whichever byte of whichever object differs, or is
// missing, reading fails and says so.
func TestB2DamageIsNoticed(t *testing.T) {
	fs, ctx := vfs.NewMem(), context.Background()
	b := blobtest.New()
	tree{"a": strings.Repeat("0123456789", 5), "b": "x"}.write(t, fs, "one")
	if _, err := newSet(t, b, fs, nil).Put(ctx, "v", nil, "one", nil); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for i, key := range b.Keys("set/") {
		if key == "set/clock" {
			continue
		}
		tried++
		for _, missing := range []bool{false, true} {
			b := b.Clone()
			if missing {
				_ = b.Delete(ctx, key)
			} else {
				b.Damage(key)
			}
			err := fetch(newSet(t, b, fs, nil), "v", fs, fmt.Sprint("back", i, missing))
			if !errors.Is(err, blobtree.ErrDamaged) && !(errors.Is(err, blobtree.ErrMissing) && strings.Contains(key, "manifests")) {
				t.Errorf("%s missing %v: %v", key, missing, err)
			}
		}
	}
	if tried != 6 {
		t.Errorf("%d objects", tried)
	}
}

// TestB2ChangedFileIsRefused: a file that changes while it is stored makes no
// version.
func TestB2ChangedFileIsRefused(t *testing.T) {
	fs, ctx := vfs.NewMem(), context.Background()
	b := blobtest.New()
	tree{"a": "before"}.write(t, fs, "one")
	b.Before = func(op blobtest.Op) error {
		if op.Kind == "put" && strings.Contains(op.Key, "/files/") {
			f, err := fs.OpenReadWrite("one/a", vfs.WriteCategoryUnspecified)
			if err != nil {
				return err
			}
			_, err = f.WriteAt([]byte("B"), 0)
			return errors.Join(err, f.Close())
		}
		return nil
	}
	s := newSet(t, b, fs, nil)
	if _, err := s.Put(ctx, "v", nil, "one", nil); err == nil || !strings.Contains(err.Error(), "changed while it was stored") {
		t.Error(err)
	}
	if keys := b.Keys("set/manifests"); len(keys) > 0 {
		t.Error(keys)
	}
}

// TestB3CrashAtEveryStepOfPut: whichever operation of a Put fails, or is the
// last of the process, the versions there were are whole, the new one is whole
// or not there, and the next Put succeeds.
func TestB3CrashAtEveryStepOfPut(t *testing.T) {
	fs, ctx := vfs.NewMem(), context.Background()
	first, second := tree{"a": strings.Repeat("a", 40), "b": "b"}, tree{"a": strings.Repeat("a", 40) + "c", "d": "d", "e": ""}
	first.write(t, fs, "one")
	second.write(t, fs, "two")
	start := blobtest.New()
	if _, err := newSet(t, start, fs, nil).Put(ctx, "v1", nil, "one", nil); err != nil {
		t.Fatal(err)
	}
	crash := errors.New("crash")
	for step := 0; ; step++ {
		b := start.Clone()
		n := 0
		var at blobtest.Op
		b.Before = func(op blobtest.Op) error {
			if n++; n > step {
				if n == step+1 {
					at = op
				}
				return crash // and so does all that follows
			}
			return nil
		}
		s := newSet(t, b, fs, func(o *blobtree.Options) { o.Parallel = 1 })
		_, err := s.Put(ctx, "v2", nil, "two", nil)
		b.Before = nil
		if err == nil {
			if step < 7 {
				t.Errorf("only %d steps", step)
			}
			return
		}
		if !errors.Is(err, crash) {
			t.Fatalf("step %d: %v", step, err)
		}
		check := func(s *blobtree.Set, when string) {
			if err := fetch(s, "v1", fs, fmt.Sprint("back1", step, when)); err != nil {
				t.Fatalf("step %d (%v), %s: v1: %v", step, at, when, err)
			}
			switch err := fetch(s, "v2", fs, fmt.Sprint("back2", step, when)); {
			case errors.Is(err, blobtree.ErrMissing):
			case err != nil:
				t.Fatalf("step %d (%v), %s: v2: %v", step, at, when, err)
			default:
				if got := readTree(t, fs, fmt.Sprint("back2", step, when)); !maps.Equal(got, second) {
					t.Fatalf("step %d: %q", step, got)
				}
			}
		}
		check(newSet(t, b, fs, nil), "crashed")
		for i, s := range []*blobtree.Set{s, newSet(t, b.Clone(), fs, nil)} {
			if _, err := s.Put(ctx, "v2", nil, "two", nil); err != nil {
				t.Fatalf("step %d (%v): again: %v", step, at, err)
			}
			check(s, fmt.Sprint("again", i))
			if _, err := s.Manifest(ctx, "v2"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestB4OnlyGarbageIsCollected: what was left by versions that are gone, and by
// Puts that failed, goes when it is old; the rest stays.
func TestB4OnlyGarbageIsCollected(t *testing.T) {
	fs, ctx := vfs.NewMem(), context.Background()
	b := blobtest.New()
	s := newSet(t, b, fs, nil)
	tree{"a": "old", "b": "both"}.write(t, fs, "one")
	tree{"a": "new", "b": "both"}.write(t, fs, "two")
	put := func(name, dir string) {
		t.Helper()
		if _, err := s.Put(ctx, name, nil, dir, nil); err != nil {
			t.Fatal(err)
		}
	}
	collect := func(want int) {
		t.Helper()
		if n, err := s.Collect(ctx, "v2"); err != nil || n != want {
			t.Fatalf("collected %d, want %d: %v", n, want, err)
		}
	}
	put("v1", "one")
	b.Advance(keep / 4)
	put("v2", "two")
	if err := s.Remove(ctx, "v1"); err != nil {
		t.Fatal(err)
	}
	collect(0)
	b.Advance(keep * 3 / 4)
	collect(0) // v1's is just as old as it may be
	b.Advance(time.Second)
	collect(1)
	collect(0)
	b.Advance(10 * keep)
	collect(0)
	if err := fetch(s, "v2", fs, "back"); err != nil {
		t.Fatal(err)
	}
	// A listing that lacks what is there is not believed.
	if n, err := s.Collect(ctx, "v3"); err != nil && n != 0 {
		t.Errorf("%d %v", n, err)
	}
	if err := s.Remove(ctx, "v2"); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Collect(ctx, "v2"); err == nil || n != 0 || len(b.Keys("set/files/")) != 2 {
		t.Errorf("collected %d on a listing that cannot be: %v", n, err)
	}
	// What a manifest that cannot be read names is not known.
	put("v4", "one")
	b.Advance(2 * keep)
	put("v5", "one")
	b.Damage("set/manifests/v4.json")
	before := len(b.Keys("set/files/"))
	if n, err := s.Collect(ctx, "v5"); err == nil || n != 0 || len(b.Keys("set/files/")) != before {
		t.Errorf("collected %d beside a damaged manifest: %v", n, err)
	}
}

// TestB1OldObjectsAreStoredAgain: an object that may soon be removed is not named
// any more, by any process; without Keep it is.
func TestB1OldObjectsAreStoredAgain(t *testing.T) {
	fs, ctx := vfs.NewMem(), context.Background()
	tree{"a": "text"}.write(t, fs, "one")
	for _, k := range []time.Duration{keep, 0} {
		b := blobtest.New()
		set := func(o *blobtree.Options) { o.Keep = k }
		s := newSet(t, b, fs, set)
		put := func(s *blobtree.Set, want int) {
			t.Helper()
			if sent, err := s.Put(ctx, "v", nil, "one", nil); err != nil || sent.Objects != want {
				t.Errorf("keep %v: sent %+v, want %d objects: %v", k, sent, want, err)
			}
		}
		put(s, 2)
		b.Advance(keep/2 - time.Second)
		put(s, 1)
		put(newSet(t, b.Clone(), fs, set), 1)
		b.Advance(time.Second)
		again := 1
		if k > 0 {
			again = 2
		}
		put(newSet(t, b.Clone(), fs, set), again)
		put(s, again)
		put(s, 1)
	}
}

// TestB1TooSlowIsTakenBack: a process that stood still until what it names may be
// gone leaves no version.
func TestB1TooSlowIsTakenBack(t *testing.T) {
	fs, ctx := vfs.NewMem(), context.Background()
	tree{"a": "text"}.write(t, fs, "one")
	b := blobtest.New()
	b.Before = func(op blobtest.Op) error {
		if op.Kind == "put" && strings.Contains(op.Key, "/manifests/") {
			b.Advance(keep / 2)
		}
		return nil
	}
	if _, err := newSet(t, b, fs, nil).Put(ctx, "v", nil, "one", nil); !errors.Is(err, blobtree.ErrTooSlow) {
		t.Error(err)
	}
	if keys := b.Keys("set/manifests/"); len(keys) > 0 {
		t.Error(keys)
	}
}

// TestNewerManifestIsRefused by name of the remedy.
func TestNewerManifestIsRefused(t *testing.T) {
	ctx := context.Background()
	b := blobtest.New()
	body := `{"version":2,"files":[]}`
	if err := b.Put(ctx, "set/manifests/v.json", strings.NewReader(body+blobtree.SumLine([]byte(body)))); err != nil {
		t.Fatal(err)
	}
	if _, err := newSet(t, b, vfs.NewMem(), nil).Manifest(ctx, "v"); !errors.Is(err, blobtree.ErrNewer) {
		t.Error(err)
	}
}

// TestB1CollectingMeetsStoringAgain: just before old garbage is removed, another
// process stores the same content and names it.
func TestB1CollectingMeetsStoringAgain(t *testing.T) {
	fs, ctx := vfs.NewMem(), context.Background()
	tree{"a": "text"}.write(t, fs, "one")
	tree{"a": "other"}.write(t, fs, "two")
	b := blobtest.New()
	s := newSet(t, b, fs, nil)
	for _, v := range [][2]string{{"v1", "one"}, {"v2", "two"}} {
		if _, err := s.Put(ctx, v[0], nil, v[1], nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remove(ctx, "v1"); err != nil {
		t.Fatal(err)
	}
	b.Advance(2 * keep)
	meet := true
	b.Before = func(op blobtest.Op) error {
		if op.Kind == "delete" && meet {
			meet = false
			if _, err := newSet(t, b, fs, nil).Put(ctx, "v3", nil, "one", nil); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	if n, err := s.Collect(ctx, "v2"); err != nil || n != 1 || meet {
		t.Errorf("collected %d: %v", n, err)
	}
	if err := fetch(s, "v3", fs, "back"); err != nil {
		t.Errorf("B1: %v", err)
	}
}
