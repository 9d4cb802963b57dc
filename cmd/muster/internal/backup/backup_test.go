package backup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"go.uber.org/goleak"

	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/blobtree/blobtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// meta is the meta file of a log.
func meta(id string) string {
	return "MUSTRMTA" + strings.Repeat("\x00", 8) + id + strings.Repeat("\x00", 8)
}

// content is what a backup of directory has, of a log with an id of 8 bytes.
func content(id string) map[string]string {
	return map[string]string{
		"log/meta": meta(id), "log/p0/00000000000000000000.log": strings.Repeat("record", 100), "log/p0/start": "",
		"state/p0/checkpoints/00000000000000000005/MANIFEST":          "5",
		"state/p0/checkpoints/00000000000000000005/pebble/000004.sst": strings.Repeat("doc", 1000),
		"history.duckdb": strings.Repeat("row", 5000), "history.duckdb.wal": "wal",
	}
}

// world is a machine with a data directory and storage.
type world struct {
	t  testing.TB
	fs vfs.FS
	b  *blobtest.Bucket
	o  Options
}

func newWorld(t testing.TB, fs vfs.FS) *world {
	w := &world{t: t, fs: fs, b: blobtest.New()}
	now := time.Unix(1_700_000_000, 0)
	w.o = Options{FS: fs, Dir: "data", Bucket: w.b, Rand: rand.Reader, Now: func() time.Time {
		now = now.Add(time.Second)
		return now
	}}
	w.o.logs = func(vfs.FS, string) (file.Checked, error) { return file.Checked{}, nil }
	return w
}

func (w *world) write(dir string, files map[string]string) {
	w.t.Helper()
	for path, text := range files {
		full := w.fs.PathJoin(dir, path)
		if err := w.fs.MkdirAll(w.fs.PathDir(full), 0o755); err != nil {
			w.t.Fatal(err)
		}
		f, err := w.fs.Create(full, vfs.WriteCategoryUnspecified)
		if err != nil {
			w.t.Fatal(err)
		}
		_, err = f.Write([]byte(text))
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// read is what a directory has, but for its lock.
func read(t testing.TB, fs vfs.FS, dir string) map[string]string {
	t.Helper()
	files, err := blobtree.Files(fs, dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, path := range files {
		f, err := fs.Open(fs.PathJoin(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(f)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if path != fileLock {
			out[path] = string(b)
		}
	}
	return out
}

func (w *world) restore(dir, name string) error {
	o := w.o
	o.Dir = dir
	_, err := Restore(context.Background(), o, name)
	return err
}

// TestRestoreIsWhatWasBackedUp: the log, checkpoints and history, not what is
// rebuilt; any backup can be chosen, and a second one sends what changed.
func TestRestoreIsWhatWasBackedUp(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	first := content("firstlog")
	w.write("data", first)
	w.write("data", map[string]string{"state/p0/live/000004.sst": "x", "state/p0/keys/1.run": "x", "outbox/1.eml": "x",
		"state/p0/checkpoints/tmp-00000000000000000009/MANIFEST": "x", "state/p0/checkpoints/damaged-00000000000000000002/MANIFEST": "x",
		"state/p0/checkpoints/foreign-00000000000000000003/MANIFEST": "x", "credentials.json": "x"})
	one, err := Make(context.Background(), w.o)
	if err != nil || one.Files != len(first) {
		t.Fatalf("%+v %v", one, err)
	}
	second := maps.Clone(first)
	second["state/p0/checkpoints/00000000000000000009/MANIFEST"] = "9"
	w.write("data", second)
	two, err := Make(context.Background(), w.o)
	if err != nil || two.Objects != 2 || two.Name <= one.Name {
		t.Fatalf("%+v %v", two, err)
	}
	for dir, name := range map[string]string{"a": "", "b": one.Name, "c": two.Name} {
		if err := w.restore(dir, name); err != nil {
			t.Fatal(err)
		}
		want := second
		if name == one.Name {
			want = first
		}
		if got := read(t, w.fs, dir); !maps.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
		if err := CheckWhole(w.fs, dir); err != nil {
			t.Error(err)
		}
		if err := w.restore(dir, ""); err == nil || !strings.Contains(err.Error(), "not empty") {
			t.Errorf("restored over a directory in use: %v", err)
		}
	}
	list, err := List(context.Background(), w.o)
	if err != nil || len(list) != 2 || list[0].Name != one.Name || list[1].Files != len(second) {
		t.Errorf("%+v %v", list, err)
	}
}

// TestBackupRefuses what would not be one, with a remedy.
func TestBackupRefuses(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	back := func(dir string) error {
		o := w.o
		o.Dir = dir
		_, err := Make(context.Background(), o)
		return err
	}
	refused(back("nowhere"), "nowhere")
	refused(w.restore("new", ""), "there is no backup")
	w.write("empty", map[string]string{"a": ""})
	refused(back("empty"), "no data directory")
	w.write("kafka", map[string]string{"log.json": "{}"})
	refused(back("kafka"), "in Kafka")
	w.write("cut", content("firstlog"))
	w.write("cut", map[string]string{fileRestoring: ""})
	refused(back("cut"), "muster restore again")
	w.write("data", content("firstlog"))
	if err := back("data"); err != nil {
		t.Fatal(err)
	}
	w.write("other", content("otherlog"))
	refused(back("other"), "another data directory")
	refused(w.restore("new", "20000101T000000Z"), "there is no backup")
	w.write("full", map[string]string{"notes.txt": ""})
	refused(w.restore("full", ""), "notes.txt")
	lock, err := w.fs.Lock("data/LOCK")
	if err != nil {
		t.Fatal(err)
	}
	if err := back("data"); !errors.Is(err, ErrInUse) {
		t.Error(err)
	}
	_ = lock.Close()
	now := w.o.Now()
	w.o.Now = func() time.Time { return now.Add(-time.Hour) }
	refused(back("data"), "clock")
	for _, key := range w.b.Keys("backup/manifests/") {
		w.b.Damage(key)
	}
	refused(w.restore("new", ""), "--list")
	list, err := List(context.Background(), w.o)
	if err != nil || len(list) != 1 || !errors.Is(list[0].Err, blobtree.ErrDamaged) {
		t.Errorf("%+v %v", list, err)
	}
}

// TestDamagedLogIsNoBackup: a log with damage is not backed up, and the restore of an older
// backup of one says so when it is done.
func TestDamagedLogIsNoBackup(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.write("data", content("firstlog"))
	one, err := Make(context.Background(), w.o)
	if err != nil {
		t.Fatal(err)
	}
	w.o.logs = func(_ vfs.FS, dir string) (file.Checked, error) {
		return file.Checked{Findings: []file.Finding{{Path: dir + "/meta"}, {Path: dir + "/p0/x", Err: errors.New(dir + "/p0/x is damaged")}}}, nil
	}
	if _, err := Make(context.Background(), w.o); err == nil || !strings.Contains(err.Error(), "data/log/p0/x is damaged") || !strings.Contains(err.Error(), "no backup was made") {
		t.Error(err)
	}
	if list, err := List(context.Background(), w.o); err != nil || len(list) != 1 || list[0].Name != one.Name {
		t.Errorf("%+v %v", list, err)
	}
	if err := w.restore("new", ""); err == nil || !strings.Contains(err.Error(), "new/log/p0/x is damaged") || !strings.Contains(err.Error(), "--list") {
		t.Error(err)
	}
	if err := CheckWhole(w.fs, "new"); err != nil {
		t.Error(err)
	}
	if got := read(t, w.fs, "new"); !maps.Equal(got, content("firstlog")) {
		t.Errorf("%q", got)
	}
}

// TestBackupsOfOneSecond have names of their own, in the order in which they were
// made, and each can be restored.
func TestBackupsOfOneSecond(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	second := time.Unix(1_700_000_000, 0)
	w.o.Now = func() time.Time { return second }
	var names []string
	for i := range 12 {
		w.write("data", content("firstlog"))
		w.write("data", map[string]string{"log/p0/start": fmt.Sprint(i)})
		done, err := Make(context.Background(), w.o)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, done.Name)
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) || names[0] != "20231114T221320Z" || names[11] != "20231114T221320Z-12" {
		t.Errorf("names %q", names)
	}
	for i, name := range names {
		dir := fmt.Sprint("restored", i)
		if err := w.restore(dir, name); err != nil || read(t, w.fs, dir)["log/p0/start"] != fmt.Sprint(i) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := w.restore("newest", ""); err != nil || read(t, w.fs, "newest")["log/p0/start"] != "11" {
		t.Errorf("the newest is another: %v", err)
	}
	// The next second's is behind them.
	second = second.Add(time.Second)
	if done, err := Make(context.Background(), w.o); err != nil || done.Name != "20231114T221321Z" {
		t.Errorf("%+v %v", done, err)
	}
}

var errCrash = errors.New("crash")

// crashAfter lets n operations of storage pass.
func crashAfter(b *blobtest.Bucket, n int) {
	b.Before = func(blobtest.Op) error {
		if n == 0 {
			return errCrash
		}
		n--
		return nil
	}
}

// TestB3InterruptedBackupIsNone: a backup that ends anywhere leaves the earlier
// ones and nothing that could be taken for one, and can be made again.
func TestB3InterruptedBackupIsNone(t *testing.T) {
	for step := 0; ; step++ {
		w := newWorld(t, vfs.NewMem())
		first := content("firstlog")
		w.write("data", first)
		if _, err := Make(context.Background(), w.o); err != nil {
			t.Fatal(err)
		}
		second := maps.Clone(first)
		second["history.duckdb"] += "more"
		second["log/p0/00000000000000000100.log"] = "record"
		w.write("data", second)
		crashAfter(w.b, step)
		_, err := Make(context.Background(), w.o)
		w.b.Before = nil
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatalf("step %d: %v", step, err)
		}
		if e := w.restore("new", ""); e != nil {
			t.Fatalf("step %d: %v", step, e)
		}
		want := first
		if err == nil {
			want = second
		}
		if got := read(t, w.fs, "new"); !maps.Equal(got, want) {
			t.Fatalf("step %d: another directory", step)
		}
		if err == nil {
			if step < 5 {
				t.Errorf("only %d steps", step)
			}
			return
		}
		if _, err := Make(context.Background(), w.o); err != nil {
			t.Fatalf("step %d: again: %v", step, err)
		}
		if err := w.restore("newer", ""); err != nil || !maps.Equal(read(t, w.fs, "newer"), second) {
			t.Fatalf("step %d: again: %v", step, err)
		}
	}
}

// TestB3InterruptedRestoreIsNotUsed: a restore that ends anywhere, with or without
// the machine, leaves a directory that is refused until it is restored again, or
// one in which nothing was begun.
func TestB3InterruptedRestoreIsNotUsed(t *testing.T) {
	source := newWorld(t, vfs.NewMem())
	want := content("firstlog")
	source.write("data", want)
	if _, err := Make(context.Background(), source.o); err != nil {
		t.Fatal(err)
	}
	cut := 0
	for step := 0; ; step++ {
		disk := vfs.NewCrashableMem()
		// The files of a restore are written in any order: one at a time is the
		// worst case of it. Each operation of the disk fails in its turn.
		index := &atomic.Int64{}
		w := newWorld(t, errorfs.Wrap(disk, errorfs.InjectorFunc(func(errorfs.Op) error {
			if index.Add(1) > int64(step) {
				return errCrash
			}
			return nil
		})))
		w.b, w.o.Bucket = source.b, source.b
		err := w.restore("data", "")
		if err != nil && !errors.Is(err, errCrash) {
			t.Fatalf("step %d: %v", step, err)
		}
		// After the end of the process, and after the end of the machine.
		half := vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: mathrand.New(mathrand.NewPCG(uint64(step), 0))}
		for _, fs := range []vfs.FS{disk, disk.CrashClone(vfs.CrashCloneCfg{}), disk.CrashClone(half)} {
			w := *w
			w.fs, w.o.FS = fs, fs
			if err == nil {
				if got := read(t, fs, "data"); !maps.Equal(got, want) || CheckWhole(fs, "data") != nil {
					t.Fatalf("step %d: %v", step, slicesOf(got))
				}
				continue
			}
			if _, e := fs.Stat("data/log"); e == nil {
				cut++
				switch e := CheckWhole(fs, "data"); {
				case errors.Is(e, ErrNotWhole):
				case e == nil && maps.Equal(read(t, fs, "data"), want):
					continue // only the end of the last step was not heard of
				default:
					t.Fatalf("step %d: a part is taken for the whole: %v %v", step, e, slicesOf(read(t, fs, "data")))
				}
			}
			if e := w.restore("data", ""); e != nil {
				t.Fatalf("step %d: again: %v", step, e)
			}
			if got := read(t, fs, "data"); !maps.Equal(got, want) || CheckWhole(fs, "data") != nil {
				t.Fatalf("step %d: again: %v", step, slicesOf(got))
			}
		}
		if err == nil {
			if step < 60 || cut == 0 {
				t.Errorf("%d steps, %d cut off", step, cut)
			}
			return
		}
	}
}

func slicesOf(m map[string]string) (out []string) {
	for k, v := range m {
		out = append(out, fmt.Sprint(k, " ", len(v)))
	}
	return out
}

// TestDamagedObject: one that was cut off is sent again by the next backup, with which the
// ones before are whole, too. One with another byte is named by the restore, with what to do:
// once it is removed, the next backup sends it again.
func TestDamagedObject(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.write("data", content("firstlog"))
	back := func() {
		t.Helper()
		if _, err := Make(context.Background(), w.o); err != nil {
			t.Fatal(err)
		}
	}
	back()
	for _, key := range w.b.Keys("backup/files/") {
		if err := w.b.Put(context.Background(), key, strings.NewReader("")); err != nil {
			t.Fatal(err)
		}
	}
	back()
	list, err := List(context.Background(), w.o)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, b := range list {
		if err := w.restore("at"+b.Name, b.Name); err != nil || !maps.Equal(read(t, w.fs, "at"+b.Name), content("firstlog")) {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
	for i, key := range w.b.Keys("backup/files/") {
		w.b.Damage(key)
		back()
		dir := fmt.Sprint("new", i)
		if err := w.restore(dir, ""); err == nil || !strings.Contains(err.Error(), key+": ") || !strings.Contains(err.Error(), "remove the object: the next backup sends it again") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", key, err)
		}
		if err := w.b.Delete(context.Background(), key); err != nil {
			t.Fatal(err)
		}
		back()
		if err := w.restore(dir, ""); err != nil || !maps.Equal(read(t, w.fs, dir), content("firstlog")) {
			t.Errorf("%s: %v", key, err)
		}
	}
}
