package resolver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/search"
	"github.com/musterhq/muster/resolver/view"
)

// trackingEvent draws what SDKs send, from the world of [randomEvent].
func trackingEvent(rng *rand.Rand, world int, now int64) eventlog.Event {
	ev := randomEvent(rng, world, now)
	maybe := func(p int) bool { return rng.IntN(100) < p }
	if maybe(50) {
		ev.Email = nil
	}
	if maybe(30) {
		ev.ExternalID = nil
	}
	if maybe(70) {
		ev.Phone = nil
	}
	if maybe(80) {
		ev.AnonymousID = []byte(fmt.Sprintf("device-%d", rng.IntN(2*world)))
	}
	if maybe(2) {
		ev.AnonymousID = []byte(pick(rng, "null", " ", "guest"))
	}
	ev.MessageID, ev.Public, ev.Call = maybe(50), maybe(30), maybe(80)
	if maybe(10) {
		ev.PreviousID = []byte(fmt.Sprintf(pick(rng, "device-%d", "id-%d", "id-%d", "never-%d"), rng.IntN(2*world)))
	}
	return ev
}

// TestR2TrackingMatchesNaive is TestR2ResolutionMatchesNaive for what SDKs send: anonymous
// ids, aliases, browser keys and messageIds. MUSTER_LONG=1 makes a million calls.
func TestR2TrackingMatchesNaive(t *testing.T) {
	t.Parallel()
	seeds := 300
	switch {
	case testlevel.Long():
		seeds = 4_900 // of 210 calls on average
	case testlevel.Quick():
		seeds = 15
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { resolutionMatchesNaive(t, uint64(seed), trackingEvent) })
	}
}

// call is an event of an SDK: pairs of a field and its value.
func call(fields ...string) eventlog.Event {
	e := ev(fields...)
	for i := 0; i < len(fields); i += 2 {
		switch v := fields[i+1]; fields[i] {
		case "anonymous":
			e.AnonymousID = []byte(v)
		case "previous":
			e.PreviousID, e.Type = []byte(v), []byte("aliased")
		case "public":
			e.Public = v == "yes"
		case "message":
			e.IdempotencyKey, e.MessageID = []byte(v), true
		}
	}
	return e
}

// who returns the live profile that an event went to.
func (r *recorder) who(e eventlog.Event) uint32 {
	r.t.Helper()
	out := r.events(e).Events[0]
	if out.Status == EventRefused {
		r.t.Fatalf("%s was refused: %v", describe(&e), out.Refusal)
	}
	return r.m.accounts[testAccount].Profiles.Root(out.Profile.Ordinal())
}

func (r *recorder) personAt(o uint32) *view.Profile {
	r.t.Helper()
	p, err := r.view().Profiles().Get(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// people is how many live profiles there are.
func (r *recorder) people() uint64 {
	return r.m.accounts[testAccount].Profiles.Universe().GetCardinality()
}

func TestI2AnonymousThenLoginIsOneProfile(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.who(call("anonymous", "d1"))
	r.who(call("anonymous", "d1", "external_id", "u1"))
	if o := r.who(call("external_id", "u1", "email", "a@x.io")); r.people() != 1 || !slices.Equal(r.personAt(o).AnonymousIDs, []string{"d1"}) || r.personAt(o).Newest(IdentityExternalID) != "u1" {
		t.Fatalf("%d profiles, %+v", r.people(), r.personAt(o))
	}
	// A person that is known already is another device's, too.
	r.who(call("anonymous", "d2"))
	if r.people() != 2 {
		t.Fatal("a device belongs to a person before its login")
	}
	o := r.who(call("anonymous", "d2", "external_id", "u1"))
	if r.people() != 1 || !slices.Equal(r.personAt(o).AnonymousIDs, []string{"d1", "d2"}) {
		t.Fatalf("%d profiles, %+v", r.people(), r.personAt(o))
	}
	if p := r.personAt(o); len(p.Identities) != 2 || len(p.Conflicts) != 0 {
		t.Fatalf("an anonymous id is no identity: %+v %+v", p.Identities, p.Conflicts)
	}
}

func TestI3NewsletterThenLoginIsOneProfile(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	o := r.who(call("anonymous", "d1", "email", "a@x.io", "public", "yes"))
	if got := r.who(call("anonymous", "d1", "external_id", "u1", "public", "yes")); got != o || r.people() != 1 {
		t.Fatalf("profile %d, then %d", o, got)
	}
}

// TestI3SecondPersonOnOneDevice: known or new, the second person has a profile of their
// own, the anonymous id stays with the first, and both say so.
func TestI3SecondPersonOnOneDevice(t *testing.T) {
	t.Parallel()
	for _, second := range []eventlog.Event{
		call("anonymous", "d1", "external_id", "u2"),
		call("anonymous", "d1", "email", "b@x.io"),
		call("anonymous", "d1", "external_id", "u2", "email", "b@x.io"),
		call("anonymous", "d1", "external_id", "known"),
		call("anonymous", "d1", "external_id", "u2", "phone", "+49301"), // the phone alone would contradict nothing
		call("anonymous", "d1", "external_id", "u2", "public", "yes"),
	} {
		t.Run(describe(&second), func(t *testing.T) {
			r := newRecorder(t, DefaultSettings())
			first := r.who(call("anonymous", "d1", "external_id", "u1", "email", "a@x.io"))
			r.who(call("external_id", "known"))
			o := r.who(second)
			if o == first {
				t.Fatal("the second person became the first")
			}
			p, q := r.personAt(first), r.personAt(o)
			if !slices.Equal(p.AnonymousIDs, []string{"d1"}) || len(q.AnonymousIDs) != 0 {
				t.Fatalf("the device is of %v and %v", p.AnonymousIDs, q.AnonymousIDs)
			}
			if p.Newest(IdentityExternalID) != "u1" || p.Newest(IdentityEmail) != "a@x.io" || p.Newest(IdentityPhone) != "" {
				t.Fatalf("the first person has %v", p.Identities)
			}
			for _, x := range []*view.Profile{p, q} {
				if len(x.Conflicts) != 1 || x.Conflicts[0].Kind != IdentityAnonymous || x.Conflicts[0].Value != "d1" || x.Conflicts[0].Other == nil {
					t.Fatalf("conflicts %+v", x.Conflicts)
				}
			}
			if got := r.who(call("anonymous", "d1")); got != first {
				t.Fatal("the device alone is the first person's")
			}
		})
	}
}

// TestI3AnonymousIDSaysLessThanASharedNumber: colleagues share a number, and a device
// between them still makes them no one person.
func TestI3AnonymousIDSaysLessThanASharedNumber(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.command(contacts.CommandCreate, contacts.Create{ExternalID: "u1", Phone: "+4930100"})
	r.command(contacts.CommandCreate, contacts.Create{Email: "b@x.io", Phone: "+4930100"})
	r.who(call("external_id", "u1", "anonymous", "d1"))
	r.who(call("email", "b@x.io", "anonymous", "d1"))
	if r.people() != 2 {
		t.Fatalf("%d people", r.people())
	}
}

// TestI4AnyOrderOfCalls: calls whose values do not contradict each other end in one profile
// for each person, whatever their order, with all their values.
func TestI4AnyOrderOfCalls(t *testing.T) {
	t.Parallel()
	seeds := testlevel.Count(60, 400)
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 4))
		var calls []eventlog.Event
		persons := 1 + rng.IntN(3)
		for p := range persons {
			// Each call links to one before, so that all hang together.
			values := []string{"email", fmt.Sprintf("p%d@x.io", p), "external_id", fmt.Sprintf("u%d", p), "phone", fmt.Sprintf("+49 30 %d", p)}
			for d := range 1 + rng.IntN(4) {
				values = append(values, "anonymous", fmt.Sprintf("p%d-d%d", p, d))
			}
			n := len(values) / 2
			at := func(i int) []string { return values[2*i : 2*i+2] }
			for i := 1; i < n; i++ {
				j := rng.IntN(i)
				if values[2*i] == "anonymous" && values[2*j] == "anonymous" {
					j = rng.IntN(3) // an event has one anonymous id
					if rng.IntN(3) == 0 {
						// Or an alias says that they are one.
						calls = append(calls, call(append([]string{"external_id", fmt.Sprintf("u%d", p), "previous"}, at(i)[1])...))
						calls = append(calls, call(at(i)...))
						continue
					}
				}
				calls = append(calls, call(slices.Concat(at(i), at(j))...))
			}
			for range rng.IntN(4) {
				calls = append(calls, call(at(rng.IntN(n))...))
			}
		}
		rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		r := newRecorder(t, DefaultSettings())
		for _, c := range calls {
			r.who(c)
		}
		if r.people() != uint64(persons) {
			var told []string
			for i := range calls {
				told = append(told, describe(&calls[i]))
			}
			t.Fatalf("seed %d: %d people became %d: %v", seed, persons, r.people(), told)
		}
		for it := r.m.accounts[testAccount].Profiles.Universe().Iterator(); it.HasNext(); {
			p := r.personAt(it.Next())
			if len(p.Identities) != 3 || len(p.Conflicts) != 0 {
				t.Fatalf("seed %d: %+v %+v", seed, p.Identities, p.Conflicts)
			}
		}
	}
}

func TestI5AliasJoinsTwoNames(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		before  []eventlog.Event
		people  uint64
		devices []string
	}{
		"an anonymous id":                {[]eventlog.Event{call("anonymous", "old")}, 1, []string{"old"}},
		"an external id":                 {[]eventlog.Event{call("external_id", "old")}, 1, nil},
		"both, which are two people":     {[]eventlog.Event{call("anonymous", "old", "external_id", "u0"), call("external_id", "old", "email", "a@x.io")}, 2, []string{"old"}},
		"different external ids":         {[]eventlog.Event{call("external_id", "old", "email", "a@x.io"), call("external_id", "new")}, 1, nil},
		"different phones":               {[]eventlog.Event{call("external_id", "old", "phone", "+49301"), call("external_id", "new", "phone", "+49302")}, 1, nil},
		"different e-mails":              {[]eventlog.Event{call("external_id", "old", "email", "a@x.io"), call("external_id", "new", "email", "b@x.io")}, 2, nil},
		"nobody yet, and it comes later": {nil, 1, []string{"old"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t, DefaultSettings())
			for _, e := range x.before {
				r.who(e)
			}
			o := r.who(call("external_id", "new", "previous", "old"))
			if p := r.personAt(o); r.people() != x.people || !slices.Equal(p.AnonymousIDs, x.devices) || p.Newest(IdentityExternalID) != "new" {
				t.Fatalf("%d people, anonymous ids %v, %v", r.people(), p.AnonymousIDs, p.Identities)
			}
			if got := r.who(call("external_id", "new")); got != o {
				t.Fatalf("profile %d, then %d", o, got)
			}
			if p := r.personAt(o); name == "different e-mails" && (len(p.Conflicts) != 1 || p.Conflicts[0].Kind != IdentityExternalID) || name != "different e-mails" && len(p.Conflicts) != 0 {
				t.Fatalf("conflicts %+v", p.Conflicts)
			}
			if name == "nobody yet, and it comes later" {
				if r.who(call("anonymous", "old")) != o {
					t.Fatal("the previous id came after its alias, and is another profile")
				}
				if r.who(call("external_id", "old")) != o || r.people() != 1 {
					t.Fatal("the previous id came as an external id after its alias, and is another profile")
				}
				if r.who(call("external_id", "old", "email", "a@x.io")) != o || r.people() != 1 {
					t.Fatal("the previous id is the person's from now on")
				}
			}
		})
	}
}

// TestI5AliasMayBringTheEmailThatBlocksIt: the traits of a call are heard before its alias.
func TestI5AliasMayBringTheEmailThatBlocksIt(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	old := r.who(call("external_id", "old", "email", "a@x.io"))
	if o := r.who(call("external_id", "new", "email", "b@x.io", "previous", "old")); o == old || r.people() != 2 {
		t.Fatal("two e-mails became one person")
	}
}

// TestI5AliasOfAnEmail: where users are called by their e-mail, the person has one now.
func TestI5AliasOfAnEmail(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.who(call("anonymous", "d1"))
	o := r.who(call("email", "a@x.io", "previous", "d1"))
	if p := r.personAt(o); r.people() != 1 || !slices.Equal(p.AnonymousIDs, []string{"d1"}) {
		t.Fatalf("%d people, %v", r.people(), p.AnonymousIDs)
	}
	// And before anything came under it.
	r.who(call("email", "b@x.io", "previous", "d2"))
	if got := r.who(call("anonymous", "d2", "email", "b@x.io")); r.people() != 2 || got != r.who(call("anonymous", "d2")) {
		t.Fatalf("%d people", r.people())
	}
	if out := r.eventsUnder(6, call("email", "a@x.io", "previous", "d1")).Events[0]; out.Status != EventRefused {
		t.Fatal("the rules of before refuse it")
	}
}

// TestI5AliasInAnyOrder: an alias and what came under both names end in one person, whichever
// is first.
func TestI5AliasInAnyOrder(t *testing.T) {
	t.Parallel()
	calls := []eventlog.Event{
		call("external_id", "old"), call("external_id", "old", "phone", "+49301"), call("external_id", "new", "previous", "old"), call("external_id", "new"),
	}
	permutations(len(calls), func(order []int) {
		r := newRecorder(t, DefaultSettings())
		for _, i := range order {
			r.who(calls[i])
		}
		if r.people() != 1 {
			t.Fatalf("order %v: %d people", order, r.people())
		}
	})
}

func TestI5AliasRefused(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	for _, e := range []eventlog.Event{
		call("external_id", "new", "previous", "old", "public", "yes"),
		call("anonymous", "new", "previous", "old"),
		call("external_id", "new", "previous", "null"),
		call("external_id", "new", "previous", "  "),
	} {
		if out := r.events(e).Events[0]; out.Status != EventRefused || out.Refusal.Field == "" {
			t.Fatalf("%s: %+v", describe(&e), out)
		}
	}
	if r.people() != 0 {
		t.Fatal("a refused alias made a profile")
	}
}

// TestAttackBrowserKeyMergesNobody: whatever is sent under a public key, two profiles that
// were identified never become one, and none takes over an identifier of another.
func TestAttackBrowserKeyMergesNobody(t *testing.T) {
	t.Parallel()
	seeds := testlevel.Count(20, 200)
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 9))
		r := newRecorder(t, DefaultSettings())
		world := pick(rng, 4, 12)
		for range 40 {
			e := trackingEvent(rng, world, r.now)
			e.Public, e.PreviousID = false, nil
			r.events(e)
		}
		a := r.m.accounts[testAccount]
		owners := map[string]uint32{}
		identified := a.Profiles.Universe().Clone()
		for it := a.Profiles.Universe().Iterator(); it.HasNext(); {
			o := it.Next()
			p := r.personAt(o)
			if len(p.Identities) == 0 {
				identified.Remove(o)
			}
			for _, x := range p.Identities {
				owners[fmt.Sprint(x.Kind, normal(x.Kind, x.Value))] = o
			}
		}
		r.m.resolution.Merges = 0
		for range 200 {
			r.now += rng.Int64N(1000)
			e := trackingEvent(rng, world+2, r.now)
			e.Public = true
			r.events(e)
		}
		for it := identified.Iterator(); it.HasNext(); {
			if o := it.Next(); a.Profiles.Root(o) != o {
				t.Fatalf("seed %d: profile %d was identified and became part of %d", seed, o, a.Profiles.Root(o))
			}
		}
		for it := a.Profiles.Universe().Iterator(); it.HasNext(); {
			o := it.Next()
			kinds := map[IdentityKind]int{}
			for _, x := range r.personAt(o).Identities {
				kinds[x.Kind]++
				if _, was := owners[fmt.Sprint(x.Kind, normal(x.Kind, x.Value))]; !was && identified.Contains(o) && kinds[x.Kind] > 1 {
					t.Fatalf("seed %d: profile %d got a second value, %v", seed, o, x)
				}
				if was, known := owners[fmt.Sprint(x.Kind, normal(x.Kind, x.Value))]; known && was != o {
					t.Fatalf("seed %d: %v went from profile %d to %d", seed, x, was, o)
				}
			}
		}
		if r.m.resolution.Merges == 0 && seed == 0 {
			t.Fatal("nothing was merged at all: the attack tests nothing")
		}
	}
}

// TestMessageIDsAreNoIdempotencyKeys: the same text in both namespaces is two keys.
func TestMessageIDsAreNoIdempotencyKeys(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	for i, x := range []struct {
		e    eventlog.Event
		want EventStatus
	}{
		{call("external_id", "u1", "key", "k"), EventAccepted},
		{call("external_id", "u1", "message", "k"), EventAccepted},
		{call("external_id", "u1", "message", "k"), EventDuplicate},
		{call("external_id", "u1", "key", "k"), EventDuplicate},
	} {
		if got := r.events(x.e).Events[0].Status; got != x.want {
			t.Fatalf("call %d: status %d, want %d", i, got, x.want)
		}
	}
}

// TestAnonymousIDsAreBounded: the oldest devices make room for new ones, use up nothing of
// what the person may have, and the profiles merged for them do not either. What is sent
// from an old device is still the person's, until the person is erased.
func TestAnonymousIDsAreBounded(t *testing.T) {
	t.Parallel()
	settings := DefaultSettings()
	settings.IdentifierCap = 3
	r := newRecorder(t, settings)
	for d := range resolution.MaxAnonymousIDs + 5 {
		id := fmt.Sprintf("d%d", d)
		r.who(call("anonymous", id))
		r.who(call("anonymous", id, "external_id", "u1"))
	}
	o := r.who(call("external_id", "u1", "email", "a@x.io", "phone", "+49301"))
	p := r.personAt(o)
	if len(p.AnonymousIDs) != resolution.MaxAnonymousIDs || p.AnonymousIDs[0] != "d5" || len(p.Identities) != 3 || len(p.Merged) != resolution.MaxAnonymousIDs+4 || r.people() != 1 || len(p.Conflicts) != 0 {
		t.Fatalf("%d anonymous ids from %s on, %v, %d merged, %d profiles, conflicts %+v", len(p.AnonymousIDs), p.AnonymousIDs[0], p.Identities, len(p.Merged), r.people(), p.Conflicts)
	}
	if r.who(call("anonymous", "d0")) != o {
		t.Fatal("a device of old is no longer the person's")
	}
	// An identified profile still merges.
	r.who(call("external_id", "u2"))
	if got := r.who(call("external_id", "u2", "anonymous", "d0")); got == o {
		t.Fatal("two external ids became one person")
	}
	a := r.m.accounts[testAccount]
	r.must(CommandContactErase, ContactErase{ID: a.Profiles.Headers.Get(o).ID.String()})
	b, _ := r.m.NextErasures(0, true)
	if _, below, err := a.Erasure.Persons(&b); err != nil || len(below) != resolution.MaxAnonymousIDs+5+3 {
		t.Fatalf("the log is rid of %d identifiers, %v", len(below), err)
	}
	if got := r.who(call("anonymous", "d0")); got == o {
		t.Fatal("a device of old leads to the erased person")
	}
}

// TestAttackMadeUpDevices: made-up anonymous ids, however many, do not keep the next device
// of the person away.
func TestAttackMadeUpDevices(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	o := r.who(call("external_id", "u1", "email", "a@x.io"))
	for n := range 3000 {
		r.who(call("external_id", "u1", "anonymous", fmt.Sprint("made-up-", n), "public", "yes"))
	}
	if ids := r.personAt(o).AnonymousIDs; len(ids) != resolution.MaxAnonymousIDs || ids[len(ids)-1] != "made-up-2999" {
		t.Fatalf("%d anonymous ids, the newest %s", len(ids), ids[len(ids)-1])
	}
	r.who(call("anonymous", "real", "public", "yes"))
	if got := r.who(call("anonymous", "real", "external_id", "u1", "public", "yes")); got != o || r.people() != 1 {
		t.Fatalf("the device is of profile %d, %d people", got, r.people())
	}
	if p := r.personAt(o); !slices.Contains(p.AnonymousIDs, "real") || len(p.AnonymousIDs) != resolution.MaxAnonymousIDs {
		t.Fatalf("%d anonymous ids, the newest %s", len(p.AnonymousIDs), p.AnonymousIDs[len(p.AnonymousIDs)-1])
	}
	// Identifiers beyond those that an erasure finds lead to no profile afterwards.
	r.must(CommandContactErase, ContactErase{ID: r.m.accounts[testAccount].Profiles.Headers.Get(o).ID.String()})
	if got := r.who(call("anonymous", "made-up-0")); got == o || len(r.personAt(got).AnonymousIDs) != 1 {
		t.Fatal("a device of old leads to the erased person")
	}
	if _, err := r.m.Hash(); err != nil {
		t.Fatal(err)
	}
}

// lastMove is the newest transition of a profile with a segment, as a text.
func (r *recorder) lastMove(segment string, o uint32) string {
	for i := len(r.rows.Transitions) - 1; i >= 0; i-- {
		if t := &r.rows.Transitions[i]; t.Segment == segment && t.Ordinal == o {
			return fmt.Sprint(map[bool]string{true: "entered", false: "left"}[t.Entered], " by ", t.Cause)
		}
	}
	return "none"
}

// TestI6AnonymousProfilesStayOutside: of segments, flows, lists, searches and counts, unless a
// definition includes them. A profile enters when it is identified, with what it did before.
func TestI6AnonymousProfilesStayOutside(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, withoutOptIn())
	viewed := r.segment(`{"kind":"activity","event":"viewed"}`)
	nameless := r.segment(`{"kind":"attribute","field":"last_name","op":"not_exists"}`)
	byID := r.segment(`{"kind":"attribute","field":"external_id","op":"exists"}`)
	identified := r.segment(`{"kind":"activity","event":"identified"}`)
	everybody := r.segment(`{"kind":"activity","event":"viewed","include_anonymous":true}`)
	others := r.segment(fmt.Sprintf(`{"kind":"segment","segment_id":%q,"member":false,"include_anonymous":true}`, viewed))
	onEvent := r.flow(`{"name":"e","trigger":{"type":"event","event":"viewed"},"steps":[{"id":"t","type":"tag","add":["x"],"next":null}]}`)
	onSegment := r.flow(fmt.Sprintf(`{"name":"s","trigger":{"type":"segment_entered","segment_id":%q},"steps":[{"id":"t","type":"tag","add":["y"],"next":null}]}`, viewed))
	onEverybody := r.flow(fmt.Sprintf(`{"name":"v","trigger":{"type":"segment_entered","segment_id":%q},"steps":[{"id":"t","type":"tag","add":["z"],"next":null}]}`, everybody))
	onDate := r.flow(`{"name":"d","trigger":{"type":"date","field":"attributes.trial_ends","at":"09:00"},"steps":[{"id":"t","type":"tag","add":["d"],"next":null}]}`)
	r.rest()

	e := call("anonymous", "d1", "attributes", `{"trial_ends":"2001-09-10"}`)
	e.FirstName = []byte("Zoe")
	o := r.who(e)
	r.rest()
	counts := func(want string) {
		t.Helper()
		if got := fmt.Sprint(r.countIn(viewed), r.countIn(nameless), r.countIn(byID), r.countIn(identified), r.countIn(everybody), r.countIn(others)); got != want {
			t.Errorf("members %s, want %s", got, want)
		}
	}
	counts("0 0 0 0 1 1")
	v := r.view()
	before, err := v.Profiles().CountBefore(r.now + 1)
	if err != nil {
		t.Fatal(err)
	}
	if v.Profiles().Count() != 0 || before != 0 || len(v.Profiles().Page(0, 10)) != 0 {
		t.Errorf("%d profiles, %d made before, %v listed", v.Profiles().Count(), before, v.Profiles().Page(0, 10))
	}
	searches := func() (found []int) {
		for _, s := range []search.Query{{Text: "zoe", Order: search.OrderMatch}, {Text: "d1", Order: search.OrderMatch}, {Order: search.OrderNewest}, {Order: search.OrderOldest}, {Order: search.OrderLastEvent}} {
			s.Limit = 10
			page, err := r.view().Profiles().Search(&s)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, len(page.Profiles))
		}
		return found
	}
	if got := searches(); !slices.Equal(got, []int{0, 0, 0, 0, 0}) {
		t.Errorf("searches find %v", got)
	}
	members, _ := v.Segments().Members(everybody, r.now)
	if page, err := v.Profiles().Search(&search.Query{Order: search.OrderNewest, Limit: 10, Within: []*roaring.Bitmap{members}}); err != nil || len(page.Profiles) != 1 {
		t.Errorf("a segment that includes them lists %d, %v", len(page.Profiles), err)
	}
	entered := func(want string) {
		t.Helper()
		if got := fmt.Sprint(r.flowState(onEvent).Counts.Entered, r.flowState(onSegment).Counts.Entered, r.flowState(onEverybody).Counts.Entered, r.flowState(onDate).Counts.Entered); got != want {
			t.Errorf("enrolled %s, want %s", got, want)
		}
	}
	r.now += 3 * 86_400_000 // the date is over while the profile is anonymous
	r.who(call("anonymous", "d1"))
	r.rest()
	entered("0 0 1 0")

	r.rows.Reset()
	if got := r.who(call("anonymous", "d1", "external_id", "u1", "type", "identified", "attributes", `{"trial_ends":"2001-09-20"}`)); got != o {
		t.Fatalf("profile %d became %d", o, got)
	}
	r.rest()
	counts("1 1 1 1 1 0")
	for id, want := range map[string]string{viewed: "entered by profile", nameless: "entered by profile", byID: "entered by profile", identified: "entered by event", everybody: "none", others: "left by profile"} {
		if got := r.lastMove(id, o); got != want {
			t.Errorf("segment %s: %s, want %s", id, got, want)
		}
	}
	if v := r.view(); v.Profiles().Count() != 1 || len(v.Profiles().Page(0, 10)) != 1 {
		t.Errorf("%d profiles", v.Profiles().Count())
	}
	if got := searches(); !slices.Equal(got, []int{1, 0, 1, 1, 1}) {
		t.Errorf("searches find %v: an anonymous id is found on the person's page alone", got)
	}
	r.now += 10 * 86_400_000
	r.who(call("external_id", "u1"))
	r.rest()
	entered("1 1 1 1")
	if _, err := r.m.Hash(); err != nil {
		t.Fatal(err)
	}
}

// TestI6AnonymousProfileJoinsAKnownOne: what the device did before the login is the person's,
// who enters by the merge.
func TestI6AnonymousProfileJoinsAKnownOne(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	viewed := r.segment(`{"kind":"activity","event":"viewed"}`)
	everybody := r.segment(`{"kind":"activity","event":"viewed","include_anonymous":true}`)
	known := r.who(call("external_id", "u1", "type", "signed_up"))
	device := r.who(call("anonymous", "d1"))
	r.rows.Reset()
	if o := r.who(call("external_id", "u1", "anonymous", "d1", "type", "identified")); o != known {
		t.Fatalf("the profile is %d", o)
	}
	if got := fmt.Sprint(r.countIn(viewed), r.countIn(everybody), r.lastMove(viewed, known), ", ", r.lastMove(everybody, known), ", ", r.lastMove(everybody, device)); got != "1 1entered by merge, entered by merge, left by merge" {
		t.Error(got)
	}
	if n := r.m.accounts[testAccount].Engine.Anonymous().GetCardinality(); n != 0 {
		t.Errorf("%d anonymous profiles are left", n)
	}
}

// TestI6LateEventsBeforeTheLogin: events count in windows by their own time, also those that
// were sent before anybody knew of whom.
func TestI6LateEventsBeforeTheLogin(t *testing.T) {
	t.Parallel()
	const day = 86_400_000
	r := newRecorder(t, DefaultSettings())
	once := r.segment(`{"kind":"activity","event":"viewed","window":{"last_days":2}}`)
	twice := r.segment(`{"kind":"activity","event":"viewed","window":{"last_days":2},"count":{"op":">=","value":2}}`)
	late := func(ms int64) eventlog.Event {
		e := call("anonymous", "d1")
		e.HasTime, e.TimeMs = true, ms
		return e
	}
	r.events(late(r.now-day/2), late(r.now-day), late(r.now-3*day))
	if a, b := r.countIn(once), r.countIn(twice); a != 0 || b != 0 {
		t.Fatalf("%d and %d before the login", a, b)
	}
	r.rows.Reset()
	o := r.who(call("anonymous", "d1", "external_id", "u1", "type", "identified"))
	for _, c := range []struct {
		after       int64
		once, twice int
	}{{0, 1, 1}, {day - 1, 1, 1}, {day, 1, 0}, {3*day/2 - 1, 1, 0}, {3 * day / 2, 0, 0}} {
		from := r.now
		r.now += c.after
		if a, b := r.countIn(once), r.countIn(twice); a != c.once || b != c.twice {
			t.Errorf("after %d ms: %d and %d members, expected %d and %d", c.after, a, b, c.once, c.twice)
		}
		r.now = from
	}
	if got := r.lastMove(twice, o); got != "entered by profile" {
		t.Errorf("%s", got)
	}
	r.now += day
	r.events(ev("external_id", "other"))
	if got := r.lastMove(twice, o); got != "left by expiry" {
		t.Errorf("%s", got)
	}
}

// TestEraseForgetsAnonymousIDs: they lead to nothing of the erased person afterwards, and
// belong to the next person on the device.
func TestEraseForgetsAnonymousIDs(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	everybody := r.segment(`{"kind":"activity","event":"viewed","include_anonymous":true}`)
	o := r.who(call("anonymous", "d1", "external_id", "u1"))
	r.who(call("external_id", "u1", "anonymous", "d2"))
	anonymous := r.who(call("anonymous", "d3"))
	a := r.m.accounts[testAccount]
	for _, x := range []uint32{o, anonymous} {
		r.must(CommandContactErase, ContactErase{ID: a.Profiles.Headers.Get(x).ID.String()})
	}
	for _, id := range []string{"d1", "d2", "d3"} {
		if out := r.eventsUnder(6, call("anonymous", id)).Events[0]; out.Status != EventRefused || out.Refusal.Code != "forbidden" {
			t.Errorf("%s under the rules of before: %+v", id, out)
		}
		if _, ok := r.view().Profiles().Find(IdentityAnonymous, id); ok {
			t.Errorf("%s leads to a profile", id)
		}
	}
	if n := r.countIn(everybody); n != 0 || !a.Engine.Anonymous().IsEmpty() {
		t.Errorf("%d members, %d anonymous profiles", n, a.Engine.Anonymous().GetCardinality())
	}
	// Another person on the device is another profile, known or not yet.
	if out := r.events(call("anonymous", "d1", "external_id", "u1")).Events[0]; out.Status != EventRefused {
		t.Errorf("the erased person came back: %+v", out)
	}
	visitor := r.who(call("anonymous", "d1"))
	next := r.who(call("anonymous", "d1", "external_id", "u2"))
	if p := r.personAt(next); next != visitor || next == o || !slices.Equal(p.AnonymousIDs, []string{"d1"}) || p.CreatedMs != r.now {
		t.Errorf("profile %d, then %d: %+v", visitor, next, p)
	}
	if p := r.personAt(r.who(call("anonymous", "d3", "external_id", "u3"))); !slices.Equal(p.AnonymousIDs, []string{"d3"}) {
		t.Errorf("the next person on the device has %v", p.AnonymousIDs)
	}
	if _, err := r.m.Hash(); err != nil {
		t.Fatal(err)
	}
}
