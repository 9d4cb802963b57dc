package blobtree_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/blobtree/blobtest"
)

// TestSources: of files that grow, as many bytes are stored as were asked for; a piece
// that is overwritten between its hash and its sending is stored as it is then; what is
// asked for last comes behind all others; and reading keeps to its pace.
func TestSources(t *testing.T) {
	ctx := context.Background()
	fs := vfs.NewMem()
	write := func(path, text string) {
		t.Helper()
		f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write([]byte(text))
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	overwrite := func(path string, at int64, text string) {
		t.Helper()
		f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt([]byte(text), at)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write("grows", "0123456789abcdefghij")
	write("whole", "whole")
	write("late", "early")
	bucket := blobtest.New()
	paced := 0
	set, err := blobtree.NewSet(bucket, "x", blobtree.Options{FS: fs, Rand: rand.Reader, PieceBytes: 4, Parallel: 1, Throttle: func(ctx context.Context, n int) error {
		// After the hash of the first piece, before it is sent.
		if paced++; paced == 2 {
			overwrite("grows", 1, "XX")
		}
		return ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	sent, err := set.PutSources(ctx, "one", nil, []blobtree.Source{{Path: "log/a", From: "grows", Size: 10}, {Path: "b", From: "whole", Size: -1}}, func(reused func(string) bool) ([]blobtree.Source, error) {
		overwrite("late", 0, "LATER")
		if reused("b") || reused("log/a") {
			t.Error("files were reused of a Put that never was")
		}
		return []blobtree.Source{{Path: "late", From: "late", Size: -1}}, nil
	})
	if err != nil || sent.Files != 3 {
		t.Fatalf("%+v %v", sent, err)
	}
	m, err := set.Manifest(ctx, "one")
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Fetch(ctx, m, "out"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"out/log/a": "0XX3456789", "out/b": "whole", "out/late": "LATER"} {
		f, err := fs.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		_, err = io.Copy(&b, f)
		if err := errors.Join(err, f.Close()); err != nil || b.String() != want {
			t.Errorf("%s: %q %v", path, b.String(), err)
		}
	}
	write("more", "more")
	if _, err := set.PutSources(ctx, "again", nil, []blobtree.Source{{Path: "b", From: "whole", Size: -1}, {Path: "log/a", From: "grows", Size: 12}, {Path: "c", From: "more", Size: -1}}, func(reused func(string) bool) ([]blobtree.Source, error) {
		if !reused("b") || reused("log/a") || reused("c") {
			t.Errorf("reused: b %v, log/a %v, c %v", reused("b"), reused("log/a"), reused("c"))
		}
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("not this one")
	if _, err := set.PutSources(ctx, "failed", nil, []blobtree.Source{{Path: "b", From: "whole", Size: -1}}, func(func(string) bool) ([]blobtree.Source, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if names, err := set.Names(ctx); err != nil || len(names) != 2 {
		t.Errorf("%q %v", names, err)
	}
	if _, err := set.PutSources(ctx, "two", nil, []blobtree.Source{{Path: "b", From: "whole", Size: 6}}, nil); err == nil {
		t.Error("more bytes were stored than there are")
	}
	// What the storage has lost meanwhile is sent again.
	for _, key := range bucket.Keys("x/files/") {
		if err := bucket.Delete(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	set.Forget()
	if sent, err := set.PutSources(ctx, "three", nil, []blobtree.Source{{Path: "b", From: "whole", Size: -1}}, nil); err != nil || sent.Objects != 3 {
		t.Errorf("%+v %v", sent, err)
	}
}

// TestB2CutOffObjectIsSentAgain: an object of another size than its content is not relied
// upon by the next version; where nothing is ever removed, the older ones are whole again, too.
func TestB2CutOffObjectIsSentAgain(t *testing.T) {
	for _, keep := range []time.Duration{0, keep} {
		fs, ctx, b := vfs.NewMem(), context.Background(), blobtest.New()
		want := tree{"a": strings.Repeat("0123456789", 5), "b": "x"}
		want.write(t, fs, "one")
		s := newSet(t, b, fs, func(o *blobtree.Options) { o.Keep = keep })
		if _, err := s.Put(ctx, "v", nil, "one", nil); err != nil {
			t.Fatal(err)
		}
		before := b.Keys("set/files/")
		for _, key := range before {
			if err := b.Put(ctx, key, strings.NewReader("")); err != nil {
				t.Fatal(err)
			}
		}
		s.Forget()
		if _, err := s.Put(ctx, "w", nil, "one", nil); err != nil {
			t.Fatal(err)
		}
		if err := fetch(s, "w", fs, fmt.Sprint("new", keep)); err != nil || !maps.Equal(readTree(t, fs, fmt.Sprint("new", keep)), want) {
			t.Errorf("keep %v: %v", keep, err)
		}
		err := fetch(s, "v", fs, fmt.Sprint("old", keep))
		if whole := err == nil; whole != (keep == 0) {
			t.Errorf("keep %v: the older version: %v", keep, err)
		}
		if n := len(b.Keys("set/files/")); (n == len(before)) != (keep == 0) {
			t.Errorf("keep %v: %d objects, %d before", keep, n, len(before))
		}
	}
}
