package resolver

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/segment"
)

// columnFields are the fields that the simulations keep columns of.
var columnFields = []string{"attributes.plan", "geo.country", "first_name"}

// columnsChecked counts the columns compared that had changes of profiles in them.
var columnsChecked atomic.Int64

// columnsOf are the columns that are kept, by field.
func columnsOf(v *View) map[string]*FieldColumn {
	out := map[string]*FieldColumn{}
	for _, field := range columnFields {
		if c, ok := v.FieldColumn(field); ok {
			out[field] = c
		}
	}
	return out
}

// addValues adds a profile to those that have its values, by field and value.
func addValues(values map[string]map[string]*roaring.Bitmap, ordinal uint32, f *segment.Fields) {
	for _, field := range columnFields {
		column, _ := segment.NewColumn(field)
		value := string(column.Value(f))
		if values[field] == nil {
			values[field] = map[string]*roaring.Bitmap{}
		}
		if values[field][value] == nil {
			values[field][value] = roaring.New()
		}
		values[field][value].Add(ordinal)
	}
}

// compareColumns compares columns with what a scan of the same state found.
func compareColumns(t *testing.T, seed uint64, columns map[string]*FieldColumn, values map[string]map[string]*roaring.Bitmap, universe *roaring.Bitmap) {
	t.Helper()
	for field, column := range columns {
		for value, want := range values[field] {
			got := column.Members(func(v []byte) bool { return string(v) == value })
			if got.And(universe); !got.Equals(want) {
				t.Fatalf("S1: seed %d: the column of %s says that %v have %q, a scan says %v", seed, field, got, value, want)
			}
		}
		if len(values[field]) > 1 {
			columnsChecked.Add(1)
		}
	}
}

// changeSome changes profiles of which columns may be kept. What is refused is left.
func changeSome(rng *rand.Rand, node *Node, world int, atMs int64) {
	for range 1 + rng.IntN(4) {
		randomContactCommand(rng, world, node)
		var out Outcome
		env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount, StampMs: atMs}
		binary.NativeEndian.PutUint64(env.ID[:], rng.Uint64())
		_ = node.Submit(context.Background(), testAccount, appendEvents(env.Append(nil), []eventlog.Event{randomEvent(rng, world, atMs)}), &out)
	}
}
