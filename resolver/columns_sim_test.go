package resolver

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

// columnFields are the fields that the simulations keep columns of.
var columnFields = []string{"attributes.plan", "geo.country", "first_name"}

// columnsChecked counts the columns compared that had changes of profiles in them.
var columnsChecked atomic.Int64

// columnsOf are the columns that are kept, by field.
func columnsOf(v *View) map[string]*view.FieldColumn {
	out := map[string]*view.FieldColumn{}
	if _, err := v.Columns().Refresh(); err != nil {
		panic(fmt.Sprintf("S1: the columns cannot be refreshed: %v", err))
	}
	for _, field := range columnFields {
		if c, ok := v.Columns().Of(field); ok {
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
func compareColumns(t *testing.T, seed uint64, columns map[string]*view.FieldColumn, values map[string]map[string]*roaring.Bitmap, universe *roaring.Bitmap) {
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

// keptConditions are conditions that the state keeps sets for.
var keptConditions = []string{
	`"status","op":"in","value":["Subscribed","Engaged","At risk"]`, `"status","op":"not_in","value":["At risk","Engaged","Subscribed"]`, `"status.sms","op":"=","value":"Subscribed"`,
	`"status","op":"=","value":"Unsubscribed"`, `"status.sms","op":"!=","value":"Unsubscribed"`, `"status.sms","op":"exists"`, `"status","op":"not_exists"`,
	`"status","op":"in","value":["Pending","Bounced","Complained","Suppressed","Unsubscribed"]`,
}

// keptOf are the answers to them, and to one on each list, by the condition's key.
func keptOf(t *testing.T, v *View) map[string]keptAnswer {
	t.Helper()
	out := map[string]keptAnswer{}
	keep := func(definition string) {
		leaf, err := segment.Parse([]byte(definition), segment.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		b, ok := v.Segments().KeptMembers(leaf)
		if !ok {
			t.Fatalf("no set for %s", definition)
		}
		out[leaf.Key()] = keptAnswer{leaf, b}
	}
	for _, c := range keptConditions {
		keep(`{"kind":"attribute","field":` + c + `}`)
	}
	for _, l := range append(v.Contacts().Lists(), contacts.List{ID: "lst_nowhere"}) {
		keep(`{"kind":"list","list_id":"` + l.ID + `","member":true}`)
	}
	return out
}

type keptAnswer struct {
	leaf    *segment.Node
	members *roaring.Bitmap
}

// compareKept compares the answers with a profile of the same state; nothing may be left
// in them after all profiles.
func compareKept(t *testing.T, seed uint64, kept map[string]keptAnswer, ordinal uint32, f *segment.Facts, nowMs int64) {
	t.Helper()
	for _, k := range kept {
		want := f.Holds(k.leaf, nowMs)
		if k.members.CheckedRemove(ordinal) != want {
			t.Fatalf("S1: seed %d: profile %d and %s: the sets say %t, the profile %t", seed, ordinal, k.leaf.Canonical(), !want, want)
		}
		if want {
			keptChecked.Add(1)
		}
	}
}

// keptChecked counts the profiles found in sets that are kept.
var keptChecked atomic.Int64

// changeSome changes profiles of which columns may be kept. What is refused is left.
func changeSome(rng *rand.Rand, node Served, world int, atMs int64) {
	for range 1 + rng.IntN(4) {
		randomContactCommand(rng, world, node)
		var out Outcome
		env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount, StampMs: atMs}
		binary.NativeEndian.PutUint64(env.ID[:], rng.Uint64())
		_ = node.Submit(context.Background(), testAccount, appendEvents(env.Append(nil), []eventlog.Event{randomEvent(rng, world, atMs)}), &out)
	}
}
