package checkpoint

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/internal/sortedkeys"
)

// TestWriteIndex: keys of the index that were removed leave Pebble. Those that it never had
// leave no deletion in its files, which would have the text of an identifier.
func TestWriteIndex(t *testing.T) {
	t.Parallel()
	db, err := pebble.Open("live", &pebble.Options{FS: vfs.NewMem(), DisableAutomaticCompactions: true}) // which drop deletions
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	key := func(i int) []byte { return fmt.Appendf(nil, "x%03d", i) }
	const keys = 300
	had := func(i int) bool { return i%3 != 0 }
	removed := func(i int) bool { return i%2 == 0 }
	var before, after sortedkeys.Changes
	want := 0
	for i := range keys {
		if had(i) {
			before.Put(key(i), false)
			if removed(i) {
				want++
			}
		}
		after.Put(key(i), removed(i))
	}
	for _, changes := range []*sortedkeys.Changes{&before, &after} {
		if err := errors.Join(WriteGeneration(db, &Frozen{Index: changes}, nil, nil), db.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range keys {
		_, found, err := db.Get(key(i))
		if removed(i) != errors.Is(err, pebble.ErrNotFound) {
			t.Errorf("key %d, removed %v: %v", i, removed(i), err)
		}
		if err == nil {
			if err := found.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	deletions := 0
	levels, err := db.SSTables(pebble.WithProperties())
	if err != nil {
		t.Fatal(err)
	}
	for _, tables := range levels {
		for _, table := range tables {
			deletions += int(table.Properties.NumDeletions)
		}
	}
	if deletions != want {
		t.Errorf("%d deletions, expected %d: one for each key that was stored", deletions, want)
	}
}
