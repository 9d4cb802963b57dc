package backup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/blobtree"
	"github.com/musterhq/muster/internal/blobtree/blobtest"
)

// TestDamagedObjectsAreFound: backups of a running service find, by and by, every object at
// their place that was damaged since it was sent, and send it again, also when the service
// is started again in between. Storage that is down makes no backup fail that was stored.
func TestDamagedObjectsAreFound(t *testing.T) {
	w := newWorld(t, vfs.NewMem())
	w.write("data", content("firstlog"))
	w.write("data", map[string]string{"log/p0/00000000000000000007.log": "last"})
	var down error
	w.b.Before = func(op blobtest.Op) error {
		if op.Kind == "get" && strings.HasPrefix(op.Key, "backup/files/") {
			return down
		}
		return nil
	}
	back := func(p *Place) Done {
		t.Helper()
		r := Running{Dir: "data", Log: binary.LittleEndian.Uint64([]byte("firstlog")),
			Check: func(context.Context, func(context.Context, int) error, func(string) bool) error { return nil },
			Last: func() ([]blobtree.Source, error) {
				return blobtree.Sources(w.fs, "data", []string{"log/p0/00000000000000000007.log"}), nil
			}}
		for path := range content("firstlog") {
			r.Sources = append(r.Sources, blobtree.Sources(w.fs, "data", []string{path})...)
		}
		done, err := p.Make(context.Background(), r)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	open := func() *Place {
		t.Helper()
		p, err := OpenPlace(w.o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := open()
	first := back(p)
	objects := w.b.Keys("backup/files/")
	for _, key := range objects {
		w.b.Damage(key)
	}
	if err := w.restore("bad", ""); !errors.Is(err, blobtree.ErrDamaged) {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for i := range 200 {
		if i%70 == 69 {
			p = open()
		}
		if i == 100 {
			down = errors.New("no answer")
			if done := back(p); !errors.Is(done.RereadErr, down) || len(done.Reread.Damaged) > 0 {
				t.Errorf("%+v", done)
			}
			down = nil
		}
		done := back(p)
		lines, mended := done.Damage()
		if done.RereadErr != nil || !mended || len(lines) != len(done.Reread.Damaged) {
			t.Fatalf("%+v %v", done, lines)
		}
		for i, line := range lines {
			key := done.Reread.Damaged[i].Key
			found[key] = true
			if !strings.Contains(line, key) || !strings.Contains(line, "sent again") || strings.Contains(line, "\n") {
				t.Error(line)
			}
		}
	}
	if len(found) != len(objects) {
		t.Errorf("%d of %d were found", len(found), len(objects))
	}
	for i, name := range []string{first.Name, ""} {
		if err := w.restore(fmt.Sprint("whole", i), name); err != nil {
			t.Error(err)
		}
	}
}

// TestDamageThatStays says which backups cannot be restored, and what is done.
func TestDamageThatStays(t *testing.T) {
	d := Done{Name: "20260102T030405Z", Reread: blobtree.Reread{Damaged: []blobtree.Damage{{Key: "k", File: "log/meta", Err: errors.New("k is damaged"), Unmended: errors.New("it has changed")}}}}
	lines, mended := d.Damage()
	const want = "k is damaged. It was not sent again: it has changed. Backup 20260102T030405Z, and those before that share the object, cannot be restored. The next backup sends it again if log/meta still has that content"
	if mended || len(lines) != 1 || lines[0] != want {
		t.Errorf("%v %q", mended, lines)
	}
}
