package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/blobtree/blobtest"
)

// TestDiskThatIsNotMounted: a directory that had backups and has none gets no other, by a
// server or without, until it has them again or somebody says that it begins anew. What has
// made no backup there is not concerned.
func TestDiskThatIsNotMounted(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.o.URL = "file:///mnt/backups"
	w.write("data", content("firstlog"))
	disk, below := w.b, blobtest.New()
	back := func(b *blobtest.Bucket, dir string, running bool) error {
		o := w.o
		o.Bucket, o.Dir = b, dir
		if !running {
			done, err := Make(context.Background(), o)
			if done.Unnoted != nil {
				t.Error(done.Unnoted)
			}
			return err
		}
		place, err := OpenPlace(o)
		if err != nil {
			t.Fatal(err)
		}
		done, err := place.Make(context.Background(), Running{Dir: dir, Log: 0x676f6c7473726966, Last: func() ([]blobtree.Source, error) { return nil, nil },
			Sources: blobtree.Sources(w.fs, dir, []string{"log/meta"}),
			Check:   func(context.Context, func(context.Context, int) error, func(string) bool) error { return nil }})
		if done.Unnoted != nil {
			t.Error(done.Unnoted)
		}
		return err
	}
	newest := func() string { return MadeBefore(w.fs, "data", w.o.URL) }
	if n := newest(); n != "" {
		t.Errorf("before the first backup: %q", n)
	}
	for _, running := range []bool{false, true} {
		if err := back(disk, "data", running); err != nil {
			t.Fatal(err)
		}
		list, err := List(context.Background(), w.o)
		if err != nil || list[len(list)-1].Name != newest() {
			t.Errorf("%q is noted: %+v %v", newest(), list, err)
		}
		for _, again := range []bool{false, true} {
			err = back(below, "data", again)
			if err == nil || len(below.Keys("")) > 0 {
				t.Fatal("a backup went to the disk below")
			}
			if want := "the backups that were made in /mnt/backups before, the newest " + newest() + ", are not there: mount"; !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "make the directory /mnt/backups/backup/manifests") {
				t.Error(err)
			}
		}
	}
	// The disk below has backups of the log from before a disk was mounted there.
	noted := read(t, w.fs, "data")[FileMade]
	if err := w.fs.Remove(w.fs.PathJoin("data", FileMade)); err != nil {
		t.Fatal(err)
	}
	earlier := blobtest.New()
	if err := back(earlier, "data", false); err != nil {
		t.Fatal(err)
	}
	w.write("data", map[string]string{FileMade: noted})
	for _, running := range []bool{false, true} {
		if err := back(earlier, "data", running); err == nil || !strings.Contains(err.Error(), "are not there, but others: mount") || !strings.Contains(err.Error(), "remove data/"+FileMade) {
			t.Error(err)
		}
	}
	// The newest was removed, and the first is there.
	if err := disk.Delete(context.Background(), "backup/manifests/"+newest()+".json"); err != nil {
		t.Fatal(err)
	}
	if err := back(disk, "data", true); err != nil {
		t.Error(err)
	}
	// It is mounted again, and another name is the same directory.
	w.o.URL = "file://localhost/mnt//backups/"
	if err := back(disk, "data", false); err != nil || newest() == "" {
		t.Error(newest(), err)
	}
	// A restored directory, one with another log, and other storage are not concerned.
	if err := w.restore("restored", ""); err != nil {
		t.Fatal(err)
	}
	if err := back(below, "restored", false); err != nil {
		t.Error(err)
	}
	w.write("other", content("otherlog"))
	w.write("other", map[string]string{FileMade: read(t, w.fs, "data")[FileMade]})
	if err := back(blobtest.New(), "other", false); err != nil {
		t.Error(err)
	}
	w.o.URL = "s3://bucket"
	if err := back(blobtest.New(), "data", false); err != nil || newest() != "" {
		t.Error(newest(), err)
	}
	// Somebody says that it begins anew there.
	w.o.URL = "file:///mnt/backups"
	if err := w.fs.MkdirAll("/mnt/backups/backup/manifests", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := back(blobtest.New(), "data", false); err != nil {
		t.Error(err)
	}
}

// TestNotesOfBackups: each of several directories is noted with its newest backup, the last
// ones of many; notes that cannot be read are as none, and are made again.
func TestNotesOfBackups(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.write("data", content("firstlog"))
	back := func(n int) string {
		t.Helper()
		o := w.o
		o.URL, o.Bucket = fmt.Sprintf("file:///mnt/%d", n), blobtest.New()
		if err := w.fs.MkdirAll(fmt.Sprintf("/mnt/%d/backup/manifests", n), 0o700); err != nil {
			t.Fatal(err)
		}
		done, err := Make(context.Background(), o)
		if err != nil || done.Unnoted != nil {
			t.Fatal(err, done.Unnoted)
		}
		return done.Name
	}
	noted := func(n int) string { return MadeBefore(w.fs, "data", fmt.Sprintf("file:///mnt/%d", n)) }
	var want []string
	for i := range mostPlaces {
		want = append(want, back(i))
	}
	for i := range want {
		if noted(i) != want[i] {
			t.Errorf("%d: %q instead of %q", i, noted(i), want[i])
		}
	}
	want[0] = back(0)
	back(mostPlaces)
	if noted(0) != want[0] || noted(1) != "" || noted(2) != want[2] {
		t.Errorf("%q %q %q", noted(0), noted(1), noted(2))
	}
	for _, junk := range []string{"", "{", `{"log":"66697273746c6f67","places":[{"directory":"/mnt/0","newest":"notes"}]}`} {
		w.write("data", map[string]string{FileMade: junk})
		if noted(0) != "" {
			t.Errorf("%q: %q", junk, noted(0))
		}
		if name := back(0); noted(0) != name {
			t.Errorf("%q: %q instead of %q", junk, noted(0), name)
		}
	}
	// A backup is made, whether it can be noted or not.
	o := w.o
	o.URL = "file:///mnt/0"
	o.FS = errorfs.Wrap(w.fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpCreate && strings.Contains(op.Path, FileMade) {
			return errors.New("no space")
		}
		return nil
	}))
	done, err := Make(context.Background(), o)
	if list, e := List(context.Background(), o); err != nil || e != nil || done.Unnoted == nil || len(list) != 1 {
		t.Errorf("%+v %v %+v %v", done, err, list, e)
	}
	if slices.ContainsFunc(w.b.Keys(""), func(key string) bool { return strings.Contains(key, FileMade) }) {
		t.Error("the notes are in a backup")
	}
}
