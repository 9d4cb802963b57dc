package segments

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/segment"
)

// Equal seeds make equal records, other streams others; objects are JSON.
func TestMakerIsReproducible(t *testing.T) {
	a, b, c := newMaker(1, 2), newMaker(1, 2), newMaker(1, 3)
	of := func(m *maker, n int) func() int { return func() int { return (&Options{}).pick(m.rng, n) } }
	for range 3 {
		x, y, z := a.records(250, of(a, 1000), ""), b.records(250, of(b, 1000), ""), c.records(250, of(c, 1000), "")
		if len(x) != 3 {
			t.Fatalf("250 events in %d records", len(x))
		}
		for i := range x {
			if !bytes.Equal(x[i], y[i]) {
				t.Fatal("the same maker makes different records")
			}
			if bytes.Equal(x[i], z[i]) {
				t.Fatal("different makers make the same record")
			}
		}
	}
	_, body, err := eventlog.DecodeEnvelope(a.records(100, of(a, 10), "")[0])
	if err != nil {
		t.Fatal(err)
	}
	r, err := eventlog.NewEventsReader(body)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	var e eventlog.Event
	for r.Next(&e) {
		keys[string(e.IdempotencyKey)] = true
		for _, object := range [][]byte{e.Attributes, e.Geo, e.Properties} {
			if !json.Valid(object) {
				t.Fatalf("%s is not JSON", object)
			}
		}
		if len(e.Email) == 0 || len(e.ExternalID) == 0 || e.HasTime {
			t.Fatalf("%+v", e)
		}
	}
	if r.Err() != nil || len(keys) != 100 {
		t.Errorf("%d keys, %v", len(keys), r.Err())
	}
}

// Active profiles are as many as asked for, spread over all.
func TestActiveProfiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct{ active, profiles, want int }{{0, 50, 50}, {60, 50, 50}, {10, 50, 10}, {7, 50, 7}} {
		o := Options{ActiveProfiles: c.active}
		seen, last := map[int]bool{}, 0
		for range 3000 {
			p := o.pick(rng, c.profiles)
			if p < 0 || p >= c.profiles {
				t.Fatalf("%+v: profile %d", c, p)
			}
			seen[p], last = true, max(last, p)
		}
		if len(seen) != c.want || last < c.profiles/2 {
			t.Errorf("%+v: %d profiles, the last is %d", c, len(seen), last)
		}
	}
}

// All definitions are accepted; there are 20, and no probe shares a condition
// with them, or it would not be built from history.
func TestDefinitions(t *testing.T) {
	known := map[string]bool{}
	live := liveDefinitions()
	for _, d := range live {
		text := bytes.ReplaceAll([]byte(d.text), []byte("%s"), []byte("seg_1"))
		root, err := segment.Parse(text, segment.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
		for _, l := range root.Leaves() {
			known[l.Key()] = true
		}
		if bytes.Count([]byte(d.text), []byte("%s")) != len(d.refs) {
			t.Errorf("%s: %d references", d.name, len(d.refs))
		}
	}
	if len(live) != 20 {
		t.Errorf("%d definitions", len(live))
	}
	leaves := func(text string) (n, unknown int) {
		root, err := segment.Parse([]byte(text), segment.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for _, l := range root.Leaves() {
			n++
			if !known[l.Key()] {
				unknown++
			}
		}
		return n, unknown
	}
	for _, p := range probes() {
		if n, unknown := leaves(p.text); n != 1 || unknown != 1 {
			t.Errorf("probe %s: %d conditions, %d unknown", p.kind, n, unknown)
		}
	}
	if _, unknown := leaves(knownPreview()); unknown != 0 {
		t.Errorf("%d conditions of the known preview are unknown", unknown)
	}
	for _, text := range unknownPreviews() {
		if _, unknown := leaves(text); unknown != 1 {
			t.Errorf("%d conditions of %s are unknown", unknown, text)
		}
	}
	different := map[string]bool{}
	for i := range 1000 {
		root, err := segment.Parse([]byte(scaleDefinition("x", i)), segment.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		different[string(root.Canonical())] = true
	}
	if len(different) != 1000 {
		t.Errorf("%d of 1000 scale definitions are different", len(different))
	}
}
