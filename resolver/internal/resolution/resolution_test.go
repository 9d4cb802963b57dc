package resolution

import (
	"encoding/binary"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/search"
)

// host is the rest of an account of which nothing is erased but one identifier.
type host struct {
	erased  identifier.Hash
	refused int
	merged  []Merged
}

func (h *host) ListIDs() map[uint32]string                      { return nil }
func (h *host) Erased(x identifier.Hash) bool                   { return x == h.erased }
func (h *host) NoteRefused()                                    { h.refused++ }
func (h *host) Merge(_ uint32, merged *Merged)                  { h.merged = append(h.merged, *merged) }
func (h *host) LeaveMerged(*profile.Document, []uint32)         {}
func (h *host) LogConsents(uint32, []profile.ConsentChange)     {}
func (h *host) Evict(devices []profile.Device)                  {}
func (h *host) Restore(*profile.Document, identifier.Hash) bool { return false }
func (h *host) RefuseErased(k identifier.Kind) *refuse.Refusal {
	h.refused++
	return refuse.Invalid("user."+k.String(), "erased")
}

// world is the profiles of one account, and events in its log.
type world struct {
	*testing.T
	*State
	host *host
	rows query.Batch
	next int64
}

func newWorld(t *testing.T, identifierCap int) *world {
	store, err := state.Open(vfs.NewMem(), "live", 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.DB.Close() })
	w := &world{T: t, host: new(host)}
	w.State = New(state.Account{Number: 1}, NewShared(store, search.NewIndex(store), new(Work)), profile.NewOrdinalSets(), w.host)
	w.Configure([16]byte{7}, []string{"unknown"}, identifierCap)
	return w
}

var rules = identrules.Event{Version: eventlog.EventRules, Live: true}

// event resolves an event and stores what it makes of its profile.
func (w *world) event(ev eventlog.Event) (Result, *refuse.Refusal) {
	w.Helper()
	w.next++
	w.AtMs = 1_000 + w.next
	p := w.LookUp(ev)
	r, refusal, err := w.Resolve(p, w.AtMs, rules.Identifiers())
	if err != nil {
		w.Fatal(err)
	}
	if refusal != nil {
		return r, refusal
	}
	tx := &feature.Tx{Account: 1, AtMs: w.AtMs, Offset: w.next}
	binary.LittleEndian.PutUint64(tx.Record[:], uint64(w.next))
	w.Commit(tx, 0, p, &r, &w.rows)
	if err := w.State.Store(&r); err != nil {
		w.Fatal(err)
	}
	return r, nil
}

func (w *world) document(o uint32) *profile.Document {
	w.Helper()
	var d profile.Document
	if err := w.Load(o, &d); err != nil {
		w.Fatal(err)
	}
	return &d
}

func (w *world) owner(k identifier.Kind, value string) uint32 {
	var buf []byte
	h, _ := w.Hasher.HashIdentifier(k, []byte(value), &buf)
	return w.Identifiers.Owner(h)
}

// TestEventsLeadToProfiles: identifiers lead to their profile, new ones are attached, and an
// event with those of two profiles makes them one.
func TestEventsLeadToProfiles(t *testing.T) {
	w := newWorld(t, 10)
	a, _ := w.event(eventlog.Event{Email: []byte("Ann@x.io"), FirstName: []byte("Ann")})
	if !a.Created || a.Ordinal != 0 || w.Created != 1 {
		t.Fatalf("%+v", a)
	}
	b, _ := w.event(eventlog.Event{ExternalID: []byte("u-1"), Attributes: []byte(`{"plan":"pro"}`)})
	if !b.Created || b.Ordinal != 1 {
		t.Fatalf("%+v", b)
	}
	r, _ := w.event(eventlog.Event{Email: []byte("ann@x.io"), Phone: []byte("+49 30 1234567")})
	if r.Created || r.Ordinal != a.Ordinal || len(r.Merged) != 0 || w.owner(identifier.Phone, "+49301234567") != a.Ordinal {
		t.Fatalf("%+v", r)
	}
	r, _ = w.event(eventlog.Event{Email: []byte("ann@x.io"), ExternalID: []byte("u-1")})
	if len(r.Merged) != 1 || r.Merged[0].Ordinal != b.Ordinal || w.Root(b.Ordinal) != a.Ordinal || w.owner(identifier.ExternalID, "u-1") != a.Ordinal || w.Merges != 1 {
		t.Fatalf("%+v", r)
	}
	if len(w.host.merged) != 1 || len(w.rows.Aliases) != 1 || w.rows.Aliases[0] != (query.Alias{Account: 1, Offset: w.next, Ordinal: b.Ordinal, Winner: a.Ordinal}) {
		t.Errorf("%+v, %+v", w.host.merged, w.rows.Aliases)
	}
	if d := w.document(a.Ordinal); string(d.FirstName) != "Ann" || string(d.Attributes) != `{"plan":"pro"}` || d.Known() != 3 {
		t.Errorf("%+v", d)
	}
	if u := w.Universe(); u.GetCardinality() != 1 {
		t.Errorf("%d profiles", u.GetCardinality())
	}
	if o, ok := w.Find(w.Headers.Get(b.Ordinal).ID); !ok || o != a.Ordinal {
		t.Errorf("the merged profile's id leads to %d", o)
	}
}

// TestRefusedEventsChangeNothing: what is refused leaves no trace in what leads to profiles.
func TestRefusedEventsChangeNothing(t *testing.T) {
	w := newWorld(t, 2)
	w.event(eventlog.Event{Email: []byte("ann@x.io"), ExternalID: []byte("u-1")})
	var buf []byte
	w.host.erased, _ = w.Hasher.HashIdentifier(identifier.Email, []byte("gone@x.io"), &buf)
	size, version := w.Identifiers.Size(), w.Identifiers.Version
	for what, ev := range map[string]eventlog.Event{
		"nobody":      {},
		"placeholder": {ExternalID: []byte("Unknown")},
		"erased":      {Email: []byte("gone@x.io")},
	} {
		if _, refusal := w.event(ev); refusal == nil {
			t.Errorf("an event of %s was not refused", what)
		}
	}
	if w.Identifiers.Size() != size || w.Identifiers.Version != version || w.Headers.Count != 1 || w.host.refused != 1 {
		t.Errorf("%d identifiers, %d profiles, %d refused", w.Identifiers.Size(), w.Headers.Count, w.host.refused)
	}
	// Beyond the cap an identifier is a conflict, and the event counts all the same.
	r, refusal := w.event(eventlog.Event{Email: []byte("ann@x.io"), Phone: []byte("+49301234567")})
	if refusal != nil || !r.NotAdded.Has(identifier.Phone) || len(w.document(0).Conflicts) != 1 || Warning(r.NotAdded, r.Dropped, r.Erased) == "" {
		t.Errorf("%+v, %v", r, refusal)
	}
}

// TestFoldedEmails: e-mails that differ in case alone are found, and forgotten with the
// identifier.
func TestFoldedEmails(t *testing.T) {
	w := newWorld(t, 10)
	r, _ := w.event(eventlog.Event{Email: []byte("straße@x.io")})
	if !w.HasEmail("STRASSE@x.io", profile.NoOrdinal) || w.HasEmail("STRASSE@x.io", r.Ordinal) || w.CaseFolds() != 1 {
		t.Errorf("%d folded e-mails", w.CaseFolds())
	}
	detached := 0
	if err := w.Detach([]byte("straße@x.io"), func(uint32, *profile.Document) { detached++ }); err != nil {
		t.Fatal(err)
	}
	if detached != 1 || w.CaseFolds() != 0 || w.HasEmail("strasse@x.io", profile.NoOrdinal) || w.document(r.Ordinal).Known() != 0 {
		t.Errorf("%d detached, %d folded e-mails", detached, w.CaseFolds())
	}
}
