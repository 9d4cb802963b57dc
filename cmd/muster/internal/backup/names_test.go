package backup

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestNextName: what is not behind all others is no name.
func TestNextName(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	o := Options{Now: func() time.Time { return now }}
	for _, x := range []struct {
		newest, want string
	}{
		{"", "20231114T221320Z"}, {"20231114T221319Z", "20231114T221320Z"}, {"20231114T221319Z-99", "20231114T221320Z"},
		{"20231114T221320Z", "20231114T221320Z-02"}, {"20231114T221320Z-02", "20231114T221320Z-03"}, {"20231114T221320Z-98", "20231114T221320Z-99"},
		{"20231114T221320Z-99", ""}, {"20231114T221321Z", ""},
	} {
		var have []string
		if x.newest != "" {
			have = []string{"20200101T000000Z", x.newest}
		}
		name, err := o.nextName(have)
		if name != x.want || (err == nil) != (x.want != "") || err != nil && !strings.Contains(err.Error(), "set the clock right, or wait") {
			t.Errorf("after %q: %q %v", x.newest, name, err)
		}
	}
}

// TestOtherFilesAmongManifests are no backups: not the newest one, and none that keeps the
// next from being made.
func TestOtherFilesAmongManifests(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.write("data", content("firstlog"))
	one, err := Make(context.Background(), w.o)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"notes", one.Name + " (copy)", one.Name + "-x", "20991399T000000Z", "99990101T000000Z-1"} {
		if err := w.b.Put(context.Background(), "backup/manifests/"+name+".json", strings.NewReader("{}")); err != nil {
			t.Fatal(err)
		}
	}
	place, err := OpenPlace(w.o)
	if err != nil {
		t.Fatal(err)
	}
	if at, err := place.Newest(context.Background()); err != nil || at.Format(nameLayout) != one.Name {
		t.Errorf("the newest is of %v: %v", at, err)
	}
	two, err := Make(context.Background(), w.o)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := List(context.Background(), w.o); err != nil || len(list) != 2 || list[1].Name != two.Name {
		t.Errorf("%+v %v", list, err)
	}
	if err := w.restore("new", ""); err != nil {
		t.Error(err)
	}
}

// TestBackupOfATimeToCome: one that was made while the clock was wrong keeps others from
// being made; the refusal names its file, and once that has another name backups go on.
func TestBackupOfATimeToCome(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.write("data", content("firstlog"))
	right := w.o.Now
	w.o.Now = func() time.Time { return time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC) }
	if _, err := Make(context.Background(), w.o); err != nil {
		t.Fatal(err)
	}
	w.o.Now = right
	for url, want := range map[string]string{
		"file:///mnt/backups":                  "rename /mnt/backups/backup/manifests/20990101T000000Z.json to",
		"s3://bucket/some/prefix?region=there": "rename s3://bucket/some/prefix/backup/manifests/20990101T000000Z.json to",
		"s3://bucket":                          "rename s3://bucket/backup/manifests/20990101T000000Z.json to",
	} {
		w.o.URL = url
		if _, err := Make(context.Background(), w.o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if err := w.b.Delete(context.Background(), "backup/manifests/20990101T000000Z.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := Make(context.Background(), w.o); err != nil {
		t.Error(err)
	}
}
