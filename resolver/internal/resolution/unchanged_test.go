package resolution

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
)

// apply resolves the events of a body as the machine does, and returns what became of each.
func (w *world) apply(events []eventlog.Event, how identrules.Identifiers, forget bool) (out []string, unread int) {
	w.Helper()
	w.next++
	w.AtMs = 1_000 + w.next
	body := eventlog.AppendEventCount(nil, len(events))
	for i := range events {
		body = eventlog.AppendEvent(body, &events[i])
	}
	reader, err := eventlog.NewEventsReader(body)
	if err != nil {
		w.Fatal(err)
	}
	tx := &feature.Tx{Account: 1, AtMs: w.AtMs, Offset: w.next}
	binary.LittleEndian.PutUint64(tx.Record[:], uint64(w.next))
	for window := w.ReadWindow(&reader); len(window) > 0; window = w.ReadWindow(&reader) {
		for i := range window {
			if forget {
				w.unchanged.clear()
			}
			p := &window[i]
			at := w.AtMs
			if p.Event.HasTime {
				at = p.Event.TimeMs
			}
			r, refusal, err := w.Resolve(p, at, how)
			if err != nil {
				w.Fatal(err)
			}
			if refusal != nil {
				out = append(out, refusal.Message)
				continue
			}
			if r.Unread {
				unread++
			}
			r.Unread = false
			w.Commit(tx, uint32(len(out)), p, &r, &w.rows)
			out = append(out, fmt.Sprintf("%+v", r))
			if err := w.State.Store(&r); err != nil {
				w.Fatal(err)
			}
			h := w.Headers.Edit(r.Ordinal)
			h.LastEvent = max(h.LastEvent, r.LastEvent, at)
		}
	}
	return out, unread
}

// TestR1UnchangedIsExact: R1: profiles whose unchanged user objects are remembered become what they
// become where nothing is remembered, event by event and byte by byte: with repeated and new
// objects, old and new rules, times in the past, keys of browsers and calls of SDKs, merges,
// documents that commands change in between, and settings that change.
func TestR1UnchangedIsExact(t *testing.T) {
	unread, total := 0, 0
	for seed := range testlevel.Count[uint64](30, 300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		fast, slow := newWorld(t, 3), newWorld(t, 3)
		pick := func(often float64, of ...string) []byte {
			if rng.Float64() >= often {
				return nil
			}
			return []byte(of[rng.IntN(len(of))])
		}
		var said []eventlog.Event // user objects to repeat
		draw := func() eventlog.Event {
			if len(said) > 0 && rng.IntN(4) > 0 {
				return said[rng.IntN(len(said))]
			}
			n := rng.IntN(6)
			ev := eventlog.Event{
				Email:       pick(0.6, fmt.Sprintf("p%d@x.io", n), fmt.Sprintf("P%d@x.io", n), "unknown", " "),
				ExternalID:  pick(0.5, fmt.Sprintf("u-%d", n), fmt.Sprintf("u-%d", n), fmt.Sprintf("u-%d", rng.IntN(9))),
				Phone:       pick(0.2, fmt.Sprintf("+4930123456%d", n), fmt.Sprintf("+49 30 123456%d", n)),
				AnonymousID: pick(0.3, fmt.Sprintf("a-%d", n), fmt.Sprintf("a-%d", rng.IntN(6))),
				FirstName:   pick(0.2, "Ann", "Bob"), LastName: pick(0.2, "Lee", "Wu"),
				Geo:        pick(0.3, `{"country":"DE"}`, `{"country":"FR"}`, `{"city":null}`),
				Attributes: pick(0.6, `{"plan":"pro"}`, `{"plan":"free","age":3}`, `{"age":null}`, `{"age": 3}`),
				Public:     rng.IntN(10) == 0, Call: rng.IntN(10) == 0,
			}
			if rng.IntN(15) == 0 {
				ev.PreviousID = pick(1, fmt.Sprintf("a-%d", n), fmt.Sprintf("u-%d", rng.IntN(6)))
			}
			said = append(said, ev)
			return ev
		}
		version := uint8(rng.IntN(eventlog.EventRules + 1))
		for step := range 40 {
			events := make([]eventlog.Event, 1+rng.IntN(2*WindowEvents))
			for i := range events {
				if i == 0 || rng.IntN(5) == 0 {
					events[i] = draw()
				} else {
					events[i] = events[max(i-1-rng.IntN(3), 0)]
				}
				events[i].Type, events[i].HasTime = []byte("seen"), false
				if rng.IntN(8) == 0 {
					events[i].HasTime, events[i].TimeMs = true, 900+rng.Int64N(100+fast.next)
				}
			}
			if rng.IntN(10) == 0 {
				version = min(version+1, eventlog.EventRules)
			}
			how := identrules.Event{Version: version, Live: true}.Identifiers()
			got, hits := fast.apply(events, how, false)
			want, _ := slow.apply(events, how, true)
			unread += hits
			total += len(events)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("seed %d, step %d, event %d %+v:\n%s, without a memory\n%s", seed, step, i, events[i], got[i], want[i])
				}
			}
			for o := range slow.Headers.Count {
				if slow.Root(o) != o {
					continue
				}
				a, errA := fast.store.Document(fast.account, o)
				b, errB := slow.store.Document(slow.account, o)
				if errA != nil || errB != nil || !bytes.Equal(a, b) {
					t.Fatalf("seed %d, step %d: profile %d is\n%q, without a memory\n%q (%v, %v)", seed, step, o, a, b, errA, errB)
				}
			}
			if fast.Conflicts != slow.Conflicts || fast.Merges != slow.Merges {
				t.Fatalf("seed %d, step %d: %d conflicts and %d merges, without a memory %d and %d", seed, step, fast.Conflicts, fast.Merges, slow.Conflicts, slow.Merges)
			}
			// A command changes a document, or the settings change.
			switch o := rng.Uint32N(slow.Headers.Count + 3); {
			case o < slow.Headers.Count && slow.Root(o) == o:
				for _, w := range []*world{fast, slow} {
					d := w.document(o)
					d.Attributes, d.FirstName = []byte(`{"plan":"set"}`), nil
					w.Save(o, d)
				}
			case o == slow.Headers.Count:
				placeholders := []string{"unknown", fmt.Sprintf("u-%d", rng.IntN(6))}
				for _, w := range []*world{fast, slow} {
					w.Configure([16]byte{7}, placeholders, 3)
				}
			}
		}
	}
	if unread < total/10 {
		t.Errorf("of %d events %d did without a document: too few to show anything", total, unread)
	}
	t.Logf("%d of %d events did without a document", unread, total)
}

// TestUnchangedNeedsNoDocument: an event that says what an earlier one said finds its profile
// without the document, until the document or the settings change; one of the past, of a
// browser or with another member does not.
func TestUnchangedNeedsNoDocument(t *testing.T) {
	w := newWorld(t, 3)
	how := rules.Identifiers()
	ev := eventlog.Event{Type: []byte("seen"), Email: []byte("ann@x.io"), Attributes: []byte(`{"plan":"pro"}`)}
	unread := func(of eventlog.Event) bool {
		t.Helper()
		_, n := w.apply([]eventlog.Event{of}, how, false)
		return n == 1
	}
	for i, want := range []bool{false, false, true, true} { // the first makes the profile, the second changes nothing
		if unread(ev) != want {
			t.Fatalf("event %d did without the document: %v, expected %v", i, !want, want)
		}
	}
	past, public, other := ev, ev, ev
	past.HasTime, past.TimeMs = true, w.Headers.Get(0).LastEvent-1
	public.Public = true
	other.Attributes = []byte(`{"plan":"pro","age":1}`)
	for name, x := range map[string]eventlog.Event{"past": past, "browser": public} {
		if unread(x) {
			t.Errorf("%s: the document was not read", name)
		}
		if !unread(ev) {
			t.Errorf("%s: forgotten", name)
		}
	}
	for name, change := range map[string]func(){
		"another member": func() { unread(other) },
		"a command":      func() { w.Save(0, w.document(0)) },
		"settings":       func() { w.Configure([16]byte{7}, nil, 3) },
		"other rules":    func() { w.apply([]eventlog.Event{ev, ev}, identrules.Event{Version: 1}.Identifiers(), false) },
	} {
		change()
		if unread(ev) {
			t.Errorf("after %s the document was not read", name)
		}
		if !unread(ev) {
			t.Errorf("after %s the event was not remembered again", name)
		}
	}
	// What differs in one thing alone is not what was said.
	w.apply([]eventlog.Event{{Email: []byte("bob@x.io")}}, how, false)
	two := func(x, y eventlog.Event) {
		t.Helper()
		w.apply([]eventlog.Event{x, y, x, x}, how, false)
		if !unread(x) {
			t.Errorf("%+v is not remembered", x)
		}
		if unread(y) {
			t.Errorf("%+v was taken for %+v", y, x)
		}
	}
	device := func(id string) eventlog.Event { return eventlog.Event{Email: ev.Email, AnonymousID: []byte(id)} }
	two(device("a-1"), device("a-2"))
	two(eventlog.Event{Email: ev.Email, FirstName: []byte("Lee")}, eventlog.Event{Email: ev.Email, LastName: []byte("Lee")})
	// Under other rules, also when another profile's event came under them first.
	w.apply([]eventlog.Event{ev, ev}, how, false)
	old := identrules.Event{Version: 1}.Identifiers()
	w.apply([]eventlog.Event{{Email: []byte("bob@x.io")}}, old, false)
	if _, n := w.apply([]eventlog.Event{ev}, old, false); n != 0 {
		t.Error("the document was not read under other rules")
	}
	// An identifier that leads elsewhere.
	both := ev
	both.ExternalID = []byte("u-1")
	w.apply([]eventlog.Event{both, both}, how, false)
	var buf []byte
	h, _ := w.Hasher.HashIdentifier(identifier.Email, ev.Email, &buf)
	w.Identifiers.Set(h, 1)
	if unread(both) {
		t.Error("the document was not read though the e-mail leads to another profile")
	}

	w.apply([]eventlog.Event{{ExternalID: both.ExternalID}, {ExternalID: both.ExternalID}}, how, false)
	o := w.owner(identifier.ExternalID, "u-1")
	if w.unchanged.pages[0][o] == 0 {
		t.Fatal("not remembered")
	}
	w.Remove(o)
	if w.unchanged.pages[0][o] != 0 {
		t.Error("a removed profile is remembered")
	}
}

// TestFingerprintsOfMadeUpPairs: no choice of identifiers brings two events nearer to the same
// fingerprint than chance. An anonymous id may be what the encoding of the user is, byte by byte.
func TestFingerprintsOfMadeUpPairs(t *testing.T) {
	w := newWorld(t, 3)
	seen := map[uint64]bool{}
	for i := range 1 << 18 {
		external := fmt.Appendf(nil, "%065d", i) // its encoded length is the letter A
		body := eventlog.AppendEvent(eventlog.AppendEventCount(nil, 1), &eventlog.Event{Type: []byte("x"), ExternalID: external, AnonymousID: append([]byte("A"), external...)})
		r, err := eventlog.NewEventsReader(body)
		var ev eventlog.Event
		if err != nil || !r.Next(&ev) {
			t.Fatal(err, r.Err())
		}
		f := w.unchanged.fingerprint(&r, &ev)
		if seen[f] {
			t.Fatalf("event %d has the fingerprint of an earlier one", i)
		}
		seen[f] = true
	}
}
