package resolver

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
)

// dayMs is a day in milliseconds.
const dayMs = 86_400_000

const testAccount = 7

func testMachine(t testing.TB) *Machine {
	t.Helper()
	s, err := state.Open(vfs.NewMem(), "live", 1<<20, state.NewPebbleLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.DB.Close() })
	return newMachine(s)
}

// withoutOptIn are the settings of an account whose campaigns and flows go to people who
// have said nothing, too.
func withoutOptIn() Settings {
	s := DefaultSettings()
	s.RequireOptIn = false
	return s
}

func testBootstrap(s Settings) Bootstrap {
	return Bootstrap{
		ApplyVersion: ApplyVersion, Company: Company{ID: "com_1", Name: "Test"},
		HashKey: hex.EncodeToString(make([]byte, 16)), SecretHash: hex.EncodeToString(make([]byte, 32)),
		Settings: s, User: access.User{ID: "usr_1", Email: "a@b.c"}, APIKey: access.APIKey{ID: "key_1"},
	}
}

// recorder writes records for a machine with stamps and ids of its own.
type recorder struct {
	t    testing.TB
	m    *Machine
	now  int64
	seq  uint64
	rows query.Batch
	out  Outcome
}

func newRecorder(t testing.TB, s Settings) *recorder {
	r := &recorder{t: t, m: testMachine(t), now: 1_000_000_000_000}
	r.command(CommandBootstrap, testBootstrap(s))
	return r
}

func (r *recorder) envelope(kind eventlog.Kind) eventlog.Envelope {
	r.seq++
	env := eventlog.Envelope{Kind: kind, Account: testAccount, StampMs: r.now}
	binary.LittleEndian.PutUint64(env.ID[:], r.seq)
	return env
}

func (r *recorder) apply(rec []byte) {
	r.t.Helper()
	recordLog(r.t, r.m, rec)
	if err := r.m.Apply(r.m.next, rec, &r.rows, &r.out); err != nil {
		r.t.Fatal(err)
	}
	checkTotals(r.t, r.m)
}

func (r *recorder) command(name string, args any) *Outcome {
	r.t.Helper()
	env := r.envelope(eventlog.KindCommand)
	r.apply(eventlog.AppendCommand(env.Append(nil), name, must.JSON(args)))
	return &r.out
}

// eventsUnder is events of a record that was made under older rules.
func (r *recorder) eventsUnder(rules uint8, evs ...eventlog.Event) *Outcome {
	r.t.Helper()
	env := r.envelope(eventlog.KindEvents)
	rec := env.Append(nil)
	at := len(rec)
	rec = appendEvents(rec, evs)
	rec[at+3] = rules
	r.apply(rec)
	return &r.out
}

func (r *recorder) events(evs ...eventlog.Event) *Outcome {
	r.t.Helper()
	env := r.envelope(eventlog.KindEvents)
	r.apply(appendEvents(env.Append(nil), evs))
	return &r.out
}

// randomContact draws from the world of [randomEvent].
func randomContact(rng *rand.Rand, world int) (c contacts.Create) {
	maybe := func(p int) bool { return rng.IntN(100) < p }
	if maybe(70) {
		c.Email = fmt.Sprintf(pick(rng, "u%d@x.io", "U%d@X.io", "c%d@x.io"), rng.IntN(2*world))
	}
	if maybe(40) {
		c.ExternalID = fmt.Sprintf("id-%d", rng.IntN(world))
	}
	if maybe(60) {
		c.Phone = fmt.Sprintf(pick(rng, "+49 30 %d", "+4930-%d"), rng.IntN(world))
	}
	if maybe(3) {
		c.Phone = "+"
	}
	if maybe(50) {
		c.FirstName = pick(rng, "Ada", "Grace")
	}
	return c
}

// TestR2ResolutionMatchesNaive compares the machine with the naive oracle over
// random histories, and the identity map with the documents (R2).
func TestR2ResolutionMatchesNaive(t *testing.T) {
	t.Parallel()
	seeds := testlevel.Count(30, 300)
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { resolutionMatchesNaive(t, uint64(seed), randomEvent) })
	}
}

func resolutionMatchesNaive(t *testing.T, seed uint64, event func(rng *rand.Rand, world int, now int64) eventlog.Event) {
	rng := rand.New(rand.NewPCG(seed, 1))
	settings := DefaultSettings()
	settings.IdentifierCap = pick(rng, 2, 4, 8, 50)
	r := newRecorder(t, settings)
	n := newNaive(settings)
	world := pick(rng, 4, 12, 40)
	for range 60 {
		r.now += rng.Int64N(40_000_000) // up to 11 hours, so that keys expire
		n.logTime = max(n.logTime, r.now)
		var evs []eventlog.Event
		for range 1 + rng.IntN(6) {
			evs = append(evs, event(rng, world, r.now))
		}
		if rng.IntN(3) == 0 {
			c := randomContact(rng, world)
			p, out := n.contact(c), r.command(contacts.CommandCreate, c)
			if (p < 0) != (out.Refusal != nil) {
				t.Fatalf("contact %+v: profile %d, refusal %v", c, p, out.Refusal)
			}
			var reply contacts.Reply
			if p >= 0 {
				if err := json.Unmarshal(out.Reply, &reply); err != nil || reply.ID != r.m.accounts[testAccount].Profiles.Headers.Get(uint32(p)).ID.String() {
					t.Fatalf("contact %+v: %s, naive says profile %d", c, out.Reply, p)
				}
			}
			compareWithNaive(t, r.m, n)
			r.rows.Reset() // the service's own events
			n.rows = n.rows[:0]
		}
		if len(n.profiles) > 0 && rng.IntN(4) == 0 {
			p := rng.IntN(len(n.profiles))
			id := r.m.accounts[testAccount].Profiles.Headers.Get(uint32(p)).ID.String()
			if rng.IntN(2) == 0 {
				if done := n.erase(p); done != (r.command(CommandContactErase, ContactErase{ID: id}).Refusal == nil) {
					t.Fatalf("profile %d is erased: %v, says naive", p, done)
				}
			} else {
				phone := fmt.Sprintf(pick(rng, "+49 30 %d", "+4930-%d"), rng.IntN(world))
				if done, out := n.patch(p, phone), r.command(contacts.CommandUpdate, contacts.Update{ID: id, Phone: &phone}); done != (out.Refusal == nil) {
					t.Fatalf("profile %d gets the phone %s: %v, says naive; %v", p, phone, done, out.Refusal)
				}
			}
			compareWithNaive(t, r.m, n)
			r.rows.Reset()
			n.rows = n.rows[:0]
		}
		n.rules = uint8(rng.IntN(eventlog.EventRules + 1))
		out := r.eventsUnder(n.rules, evs...)
		for i := range evs {
			p, status := n.event(&evs[i])
			got := out.Events[i]
			if got.Status != status {
				t.Fatalf("event %d %s: status %d, naive says %d (%v)", i, describe(&evs[i]), got.Status, status, got.Refusal)
			}
			if status != EventRefused && got.Profile.Ordinal() != uint32(p) {
				t.Fatalf("event %d %s: profile %d, naive says %d", i, describe(&evs[i]), got.Profile.Ordinal(), p)
			}
		}
		if rng.IntN(10) == 0 {
			checkpointInPlace(t, r.m)
		}
		compareWithNaive(t, r.m, n)
	}
	if len(n.rows) != r.rows.Rows() {
		t.Fatalf("%d rows, naive has %d", r.rows.Rows(), len(n.rows))
	}
	for i, row := range n.rows {
		if r.rows.Ordinal[i] != uint32(row.profile) || r.rows.TimeMs[i] != row.at || string(r.rows.EventType.At(i)) != row.event {
			t.Fatalf("row %d differs", i)
		}
	}
}

// checkpointInPlace moves the generation to Pebble as a checkpoint does.
func checkpointInPlace(t *testing.T, m *Machine) {
	t.Helper()
	f := m.Freeze()
	if err := checkpoint.WriteGeneration(m.store.DB, f, nil, nil); err != nil {
		t.Fatal(err)
	}
	c := checkpoint.Dir{FS: vfs.NewMem(), Root: "x"}
	if err := c.FS.MkdirAll(c.Path(checkpoint.DirKeys), 0o755); err != nil {
		t.Fatal(err)
	}
	runs, err := c.WriteRuns(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	m.Thaw(checkpoint.Written{Runs: runs})
}

func describe(ev *eventlog.Event) string {
	return fmt.Sprintf("{%s e=%q x=%q p=%q anonymous=%q previous=%q public=%v key=%q attrs=%s time=%v/%d}", ev.Type, ev.Email, ev.ExternalID, ev.Phone, ev.AnonymousID, ev.PreviousID, ev.Public, ev.IdempotencyKey, ev.Attributes, ev.HasTime, ev.TimeMs)
}

func compareWithNaive(t *testing.T, m *Machine, n *naive) {
	t.Helper()
	a := m.accounts[testAccount]
	if int(a.Profiles.Headers.Count) != len(n.profiles) {
		t.Fatalf("%d profiles, naive has %d", a.Profiles.Headers.Count, len(n.profiles))
	}
	if a.Profiles.Identifiers.Size() != len(n.owner) {
		t.Fatalf("%d identifiers, naive has %d", a.Profiles.Identifiers.Size(), len(n.owner))
	}
	for i, p := range n.profiles {
		o := uint32(i)
		if a.Profiles.Root(o) != uint32(p.winner) {
			t.Fatalf("profile %d resolves to %d, naive says %d", i, a.Profiles.Root(o), p.winner)
		}
		if p.winner != i {
			continue
		}
		if p.erased != a.Profiles.Erased(o) {
			t.Fatalf("profile %d: erased %v, naive says %v", i, a.Profiles.Erased(o), p.erased)
		}
		if p.erased {
			continue
		}
		var d profile.Document
		if err := a.Profiles.Load(o, &d); err != nil {
			t.Fatal(err)
		}
		var idents [identifier.Kinds][]string
		for _, id := range d.Identifiers {
			idents[id.Kind] = append(idents[id.Kind], string(id.Value))
			h, _ := a.Profiles.Hasher.HashIdentifier(id.Kind, id.Value, &m.tx.normal)
			if got, ok := a.Profiles.Identifiers.Get(h); id.Shared == (ok && got == o) || !ok && !id.Shared {
				t.Fatalf("R2: identifier %q of profile %d, shared %v, is mapped to %d", id.Value, o, id.Shared, got)
			}
			if norm := id.Kind.String() + "\x00" + normal(id.Kind, string(id.Value)); id.Claimed != p.claimed[norm] || id.Previous != p.previous[norm] {
				t.Fatalf("identifier %q of profile %d: a claim is %v, a previous id %v", id.Value, o, id.Claimed, id.Previous)
			}
			if id.Shared != p.shared[id.Kind.String()+"\x00"+normal(id.Kind, string(id.Value))] {
				t.Fatalf("identifier %q of profile %d: shared is %v", id.Value, o, id.Shared)
			}
		}
		for k := range identifier.Kinds {
			if !slices.Equal(idents[k], p.idents[k]) {
				t.Fatalf("profile %d: %v %q, naive has %q", i, k, idents[k], p.idents[k])
			}
		}
		if d.FirstSeen() != p.firstSeen {
			t.Fatalf("profile %d was first seen at %d, naive has %d", i, d.FirstSeen(), p.firstSeen)
		}
		if string(d.FirstName) != p.first || string(d.LastName) != p.last || d.CreatedMs != p.created || a.Profiles.Headers.Get(o).LastEvent != p.lastEvent {
			t.Fatalf("profile %d: %q %q %d %d, naive has %+v", i, d.FirstName, d.LastName, d.CreatedMs, a.Profiles.Headers.Get(o).LastEvent, p)
		}
		if !reflect.DeepEqual(decodeObject(d.Geo), p.geo) || !reflect.DeepEqual(decodeObject(d.Attributes), p.attrs) {
			t.Fatalf("profile %d: geo %s attributes %s, naive has %v %v", i, d.Geo, d.Attributes, p.geo, p.attrs)
		}
		var merged []int
		for _, x := range d.Merged {
			merged = append(merged, int(x.Ordinal))
		}
		if !slices.Equal(merged, p.merged) {
			t.Fatalf("profile %d: merged %v, naive has %v", i, merged, p.merged)
		}
		shown, err := m.View(nil, a.Number).Profiles().Get(o)
		if err != nil {
			t.Fatal(err)
		}
		got, want := shown.Conflicts, n.conflictsOf(p)
		if len(got) > 0 && len(want) == 0 || len(got) == 0 && len(want) > 0 && len(d.Conflicts) < profile.MaxConflicts {
			t.Fatalf("profile %d: conflicts %+v, naive has %v", i, got, want)
		}
		for _, c := range got {
			with := -1
			if c.Other != nil {
				with = int(c.Other.Ordinal())
			}
			if !slices.ContainsFunc(want, func(o int) bool { return o == with || o >= 0 && n.profiles[o].winner == with }) {
				t.Fatalf("profile %d: a conflict with %d, naive has %v", i, with, want)
			}
		}
	}
	public := 0
	for _, typ := range a.Types.List() {
		if typ.Public {
			public++
		}
	}
	if public != len(n.publicTypes) {
		t.Fatalf("%d event types of browsers' keys alone, naive has %d", public, len(n.publicTypes))
	}
	for k, c := range n.counts {
		if a.Types.Get(k) == nil || a.Types.Get(k).Count != c {
			t.Fatalf("event type %s: count differs from %d", k, c)
		}
	}
}
