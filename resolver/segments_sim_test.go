package resolver

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

// randomSegmentCommand creates, changes or deletes a segment. Windows are
// seconds, as the clock of the simulation moves by that.
func randomSegmentCommand(rng *rand.Rand, node Served) {
	ctx := context.Background()
	var ids, lists []string
	_ = node.Read(ctx, testAccount, func(v *View) error {
		for _, s := range v.Segments().All() {
			ids = append(ids, s.ID)
		}
		for _, l := range v.Contacts().Lists() {
			lists = append(lists, l.ID)
		}
		return nil
	})
	d := randomDefinition(rng, ids, lists)
	switch n := rng.IntN(10); {
	case n < 5 && len(ids) < 8 || len(ids) == 0:
		_, _ = node.Command(ctx, testAccount, CommandSegmentCreate, SegmentSave{Name: "s", Definition: json.RawMessage(d)})
	case n < 8:
		_, _ = node.Command(ctx, testAccount, CommandSegmentUpdate, SegmentSave{ID: ids[rng.IntN(len(ids))], Name: "t", Definition: json.RawMessage(d)})
	default:
		_, _ = node.Command(ctx, testAccount, CommandSegmentDelete, SegmentDelete{ID: ids[rng.IntN(len(ids))]})
	}
}

// verifySegments compares what the engine says at an instant with a naive scan
// of history and profiles.
func verifySegments(t *testing.T, seed uint64, node Served, history *modelHistory, nowMs int64) {
	t.Helper()
	members := map[string]*roaring.Bitmap{}
	asOf := map[string]*roaring.Bitmap{} // as of the engine's own time
	defs := map[string]*segment.Node{}
	lists := map[string]*roaring.Bitmap{}
	var snap *view.Snapshot
	var finished bool
	pending := 0
	begun := time.Now()
	var cut query.Cut
	var columns map[string]*view.FieldColumn
	var kept map[string]keptAnswer
	for {
		clear(members)
		err := node.Read(context.Background(), testAccount, func(v *View) error {
			nowMs = max(nowMs, v.LogTimeMs())
			for _, s := range v.Segments().All() {
				defs[s.ID] = s.Root
				if m, ok := v.Segments().Members(s.ID, nowMs); ok {
					members[s.ID] = m
					asOf[s.ID], _ = v.Segments().Members(s.ID, accountOf(v).Engine.NowMs())
				}
			}
			for _, l := range v.Contacts().Lists() {
				lists[l.ID] = accountOf(v).Sets.Members(contacts.ListSet(l.Number)).Clone()
			}
			finished = !accountOf(v).Engine.Working() && v.LogTimeMs() == accountOf(v).Engine.NowMs()
			if snap != nil {
				_ = snap.Close()
			}
			columns, kept = columnsOf(v), keptOf(t, v)
			snap = v.Snapshot(columnFields...)
			cut, pending = v.Cut(), v.Erasures().Pending()
			return nil
		})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(members) == len(defs) && finished || time.Since(begun) > 30*time.Millisecond {
			break
		}
		time.Sleep(time.Millisecond) // no condition: some are never built here, and what is not is not compared
		clear(defs)
		clear(lists)
	}
	defer snap.Close()
	if pending > 0 {
		// History may have erased a person's entries and, where it lost rows since, have
		// the exits again until the erasure is repeated.
		return
	}
	if err := waitHistory(t, node, cut); err != nil {
		return // it fails at random; the next round asks again
	}
	history.Mu.Lock()
	defer history.Mu.Unlock()
	roots := history.Roots(cut)
	profiles := map[uint32]*segment.NaiveProfile{}
	values := map[string]map[string]*roaring.Bitmap{}
	err := snap.Scan(context.Background(), func(o uint32, f *segment.Facts) error {
		profiles[o] = segment.NaiveOf(f, nil)
		addValues(values, o, &f.Fields)
		compareKept(t, seed, kept, o, f, nowMs)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kept {
		if !k.members.IsEmpty() {
			t.Fatalf("S1: seed %d: %v satisfy %s and are no profiles", seed, k.members, k.leaf.Canonical())
		}
	}
	compareColumns(t, seed, columns, values, snap.Universe())
	for id, members := range lists {
		for o, p := range profiles {
			if slices.Contains(p.Lists, id) != members.Contains(o) {
				t.Fatalf("R1: seed %d: profile %d and list %s do not agree on its membership", seed, o, id)
			}
			members.Remove(o)
		}
		if !members.IsEmpty() {
			t.Fatalf("R1: seed %d: list %s has members that are no profiles: %v", seed, id, members)
		}
	}
	for _, r := range history.Rows {
		if p := profiles[roots(r.Ordinal)]; p != nil && r.Offset < cut.UpTo {
			p.Events = append(p.Events, segment.NaiveEvent{TimeMs: r.TimeMs, Type: r.Type, Sent: r.Sent, Properties: r.Properties})
		}
	}
	said := map[string]*roaring.Bitmap{}
	for _, m := range history.Moved {
		if m.Key.Offset >= cut.UpTo {
			continue
		}
		if said[m.Segment] == nil {
			said[m.Segment] = roaring.New()
		}
		if said[m.Segment].Contains(m.Ordinal) == m.Entered {
			t.Fatalf("S2: seed %d: transition %+v repeats what was", seed, m)
		}
		if m.Entered {
			said[m.Segment].Add(m.Ordinal)
		} else {
			said[m.Segment].Remove(m.Ordinal)
		}
	}
	for id, got := range members {
		want := roaring.New()
		for o, p := range profiles {
			if defs[id].Naive(p, nowMs, func(id string) (*segment.Node, bool) { d, ok := defs[id]; return d, ok }) {
				want.Add(o)
			}
		}
		if !want.Equals(got) {
			t.Fatalf("S1: seed %d: segment %s at %d has %v, found naively %v: %s", seed, id, nowMs, got, want, defs[id].Canonical())
		}
		if said[id] == nil {
			said[id] = roaring.New()
		}
		if finished && !said[id].Equals(asOf[id]) {
			t.Fatalf("S2: seed %d: transitions of segment %s add up to %v, members are %v", seed, id, said[id], asOf[id])
		}
	}
	segmentsChecked.Add(int64(len(members)))
}

// segmentsChecked counts the segments compared, so that a simulation in which
// none goes live does not pass.
var segmentsChecked atomic.Int64
