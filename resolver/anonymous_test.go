package resolver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/profile"
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
	ev.MessageID, ev.Public = maybe(50), maybe(30)
	if maybe(10) {
		ev.PreviousID = []byte(fmt.Sprintf(pick(rng, "device-%d", "id-%d", "id-%d", "never-%d"), rng.IntN(2*world)))
	}
	return ev
}

// TestR2TrackingMatchesNaive is TestR2ResolutionMatchesNaive for what SDKs send: anonymous
// ids, aliases, browser keys and messageIds.
func TestR2TrackingMatchesNaive(t *testing.T) {
	seeds := 300
	if testing.Short() {
		seeds = 30
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

// who is the live profile that an event went to.
func (r *recorder) who(e eventlog.Event) uint32 {
	r.t.Helper()
	out := r.events(e).Events[0]
	if out.Status == EventRefused {
		r.t.Fatalf("%s was refused: %v", describe(&e), out.Refusal)
	}
	return r.m.accounts[testAccount].root(out.Profile.Ordinal())
}

func (r *recorder) personAt(o uint32) *Profile {
	r.t.Helper()
	p, err := r.view().Profile(o)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// people is how many live profiles there are.
func (r *recorder) people() uint64 { return r.m.accounts[testAccount].universe().GetCardinality() }

func TestI2AnonymousThenLoginIsOneProfile(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	r.who(call("anonymous", "d1"))
	r.who(call("anonymous", "d1", "external_id", "u1"))
	if o := r.who(call("external_id", "u1", "email", "a@x.io")); r.people() != 1 || !slices.Equal(r.personAt(o).AnonymousIDs, []string{"d1"}) || r.personAt(o).Newest(IdentityExternalID) != "u1" {
		t.Fatalf("%d profiles, %+v", r.people(), r.personAt(o))
	}
	// A person that is known already is another device's, too.
	o := r.who(call("anonymous", "d2"))
	if r.people() != 2 {
		t.Fatal("a device is nobody's before its login")
	}
	if o = r.who(call("anonymous", "d2", "external_id", "u1")); r.people() != 1 || !slices.Equal(r.personAt(o).AnonymousIDs, []string{"d1", "d2"}) {
		t.Fatalf("%d profiles, %+v", r.people(), r.personAt(o))
	}
	if p := r.personAt(o); len(p.Identities) != 2 || len(p.Conflicts) != 0 {
		t.Fatalf("an anonymous id is no identity: %+v %+v", p.Identities, p.Conflicts)
	}
}

func TestI3NewsletterThenLoginIsOneProfile(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	o := r.who(call("anonymous", "d1", "email", "a@x.io", "public", "yes"))
	if got := r.who(call("anonymous", "d1", "external_id", "u1", "public", "yes")); got != o || r.people() != 1 {
		t.Fatalf("profile %d, then %d", o, got)
	}
}

// TestI3SecondPersonOnOneDevice: known or new, the second person has a profile of their
// own, the anonymous id stays with the first, and both say so.
func TestI3SecondPersonOnOneDevice(t *testing.T) {
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
			for _, x := range []*Profile{p, q} {
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
	r := newRecorder(t, DefaultSettings())
	r.command(CommandContactCreate, ContactCreate{ExternalID: "u1", Phone: "+4930100"})
	r.command(CommandContactCreate, ContactCreate{Email: "b@x.io", Phone: "+4930100"})
	r.who(call("external_id", "u1", "anonymous", "d1"))
	r.who(call("email", "b@x.io", "anonymous", "d1"))
	if r.people() != 2 {
		t.Fatalf("%d people", r.people())
	}
}

// TestI4AnyOrderOfCalls: calls whose values do not contradict each other end in one profile
// for each person, whatever their order, with all their values.
func TestI4AnyOrderOfCalls(t *testing.T) {
	seeds := 400
	if testing.Short() {
		seeds = 60
	}
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
		for it := r.m.accounts[testAccount].universe().Iterator(); it.HasNext(); {
			p := r.personAt(it.Next())
			if len(p.Identities) != 3 || len(p.Conflicts) != 0 {
				t.Fatalf("seed %d: %+v %+v", seed, p.Identities, p.Conflicts)
			}
		}
	}
}

func TestI5AliasJoinsTwoNames(t *testing.T) {
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
					t.Fatal("the previous id came after its alias, and is somebody else")
				}
			}
		})
	}
}

// TestI5AliasMayBringTheEmailThatBlocksIt: the traits of a call are heard before its alias.
func TestI5AliasMayBringTheEmailThatBlocksIt(t *testing.T) {
	r := newRecorder(t, DefaultSettings())
	old := r.who(call("external_id", "old", "email", "a@x.io"))
	if o := r.who(call("external_id", "new", "email", "b@x.io", "previous", "old")); o == old || r.people() != 2 {
		t.Fatal("two e-mails became one person")
	}
}

func TestI5AliasRefused(t *testing.T) {
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
	seeds := 200
	if testing.Short() {
		seeds = 20
	}
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
		identified := a.universe().Clone()
		for it := a.universe().Iterator(); it.HasNext(); {
			o := it.Next()
			p := r.personAt(o)
			if len(p.Identities) == 0 {
				identified.Remove(o)
			}
			for _, x := range p.Identities {
				owners[fmt.Sprint(x.Kind, normal(x.Kind, x.Value))] = o
			}
		}
		r.m.counters.Merges = 0
		for range 200 {
			r.now += rng.Int64N(1000)
			e := trackingEvent(rng, world+2, r.now)
			e.Public = true
			r.events(e)
		}
		for it := identified.Iterator(); it.HasNext(); {
			if o := it.Next(); a.root(o) != o {
				t.Fatalf("seed %d: profile %d was identified and became part of %d", seed, o, a.root(o))
			}
		}
		for it := a.universe().Iterator(); it.HasNext(); {
			o := it.Next()
			for _, x := range r.personAt(o).Identities {
				if was, known := owners[fmt.Sprint(x.Kind, normal(x.Kind, x.Value))]; known && was != o {
					t.Fatalf("seed %d: %v went from profile %d to %d", seed, x, was, o)
				}
			}
		}
		if r.m.counters.Merges == 0 && seed == 0 {
			t.Fatal("nothing was merged at all: the attack tests nothing")
		}
	}
}

// TestMessageIDsAreNoIdempotencyKeys: the same text in both namespaces is two keys.
func TestMessageIDsAreNoIdempotencyKeys(t *testing.T) {
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

// TestAnonymousIDsAreBounded: devices beyond the bound stay profiles of their own, use up
// nothing of what the person may have, and the profiles merged for them do not either.
func TestAnonymousIDsAreBounded(t *testing.T) {
	settings := DefaultSettings()
	settings.IdentifierCap = 3
	r := newRecorder(t, settings)
	for d := range maxAnonymousIDs + 5 {
		id := fmt.Sprintf("d%d", d)
		r.who(call("anonymous", id))
		r.who(call("anonymous", id, "external_id", "u1"))
	}
	o := r.who(call("external_id", "u1", "email", "a@x.io", "phone", "+49301"))
	p := r.personAt(o)
	if len(p.AnonymousIDs) != maxAnonymousIDs || len(p.Identities) != 3 || len(p.Merged) != maxAnonymousIDs-1 || r.people() != 6 {
		t.Fatalf("%d anonymous ids, %v, %d merged, %d profiles", len(p.AnonymousIDs), p.Identities, len(p.Merged), r.people())
	}
	if !slices.ContainsFunc(p.Conflicts, func(c Conflict) bool {
		return c.Kind == IdentityAnonymous && c.Reason == profile.ConflictReasons[profile.ConflictTooMany]
	}) {
		t.Fatalf("conflicts %+v", p.Conflicts)
	}
	// An identified profile still merges.
	r.who(call("external_id", "u2"))
	if got := r.who(call("external_id", "u2", "anonymous", "d0")); got == o {
		t.Fatal("two external ids became one person")
	}
}
