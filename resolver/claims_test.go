package resolver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/view"
)

// TestAttackSecondIdentifier: a browser's key gives no profile a second e-mail, external id or
// phone, whichever of them ranks higher. The conflict is noted, and the event is the person's.
func TestAttackSecondIdentifier(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ known, public eventlog.Event }{
		{call("email", "a@x.io", "external_id", "u1"), call("email", "a@x.io", "external_id", "u2", "public", "yes")},
		{call("email", "a@x.io", "external_id", "u1"), call("email", "b@x.io", "external_id", "u1", "public", "yes")},
		{call("email", "a@x.io", "phone", "+49301"), call("email", "a@x.io", "phone", "+49302", "public", "yes")},
		{call("external_id", "u1", "phone", "+49301"), call("external_id", "u2", "phone", "+49301", "public", "yes")},
	} {
		t.Run(describe(&x.public), func(t *testing.T) {
			r := newRecorder(t, DefaultSettings())
			o := r.who(x.known)
			before := r.personAt(o).Identities
			if got := r.who(x.public); got != o || r.people() != 1 {
				t.Fatalf("profile %d, not %d", got, o)
			}
			p := r.personAt(o)
			if !slices.Equal(p.Identities, before) {
				t.Errorf("the person has %v", p.Identities)
			}
			if len(p.Conflicts) != 1 || p.Conflicts[0].Reason != profile.ConflictReasons[profile.ConflictPublic] {
				t.Errorf("conflicts %+v", p.Conflicts)
			}
		})
	}
}

// TestAttackClaimJoinsNobody: what a browser's key said of two people joins them neither then
// nor by what servers say later, in every order of ranks.
func TestAttackClaimJoinsNobody(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		events []eventlog.Event
		// apart are pairs of identifiers that are two people's.
		apart [][2]string
	}{
		"external id of another": {[]eventlog.Event{
			call("email", "a@x.io"), call("email", "a@x.io", "external_id", "bob", "public", "yes"),
			call("external_id", "bob", "email", "b@x.io"),
		}, [][2]string{{"email a@x.io", "email b@x.io"}}},
		"e-mail of another": {[]eventlog.Event{
			call("external_id", "ann"), call("external_id", "ann", "email", "b@x.io", "public", "yes"),
			call("email", "b@x.io", "external_id", "bob"), call("external_id", "bob"),
		}, [][2]string{{"external_id ann", "external_id bob"}}},
		"phone of another": {[]eventlog.Event{
			call("external_id", "ann"), call("external_id", "ann", "phone", "+49302", "public", "yes"),
			call("external_id", "bob", "phone", "+49302"),
		}, [][2]string{{"external_id ann", "external_id bob"}}},
		"through a third identifier": {[]eventlog.Event{
			call("email", "a@x.io"), call("email", "a@x.io", "external_id", "bob", "public", "yes"),
			call("external_id", "bob", "phone", "+49302"), call("phone", "+49302", "email", "b@x.io"),
		}, [][2]string{{"email a@x.io", "email b@x.io"}}},
		"of a person whom only browsers know": {[]eventlog.Event{
			call("email", "a@x.io", "external_id", "bob", "public", "yes"),
			call("email", "a@x.io", "external_id", "ann"), call("external_id", "bob", "email", "b@x.io"), call("external_id", "ann"),
		}, [][2]string{{"external_id ann", "email b@x.io"}}},
		"two known by servers": {[]eventlog.Event{
			call("phone", "+49301"), call("phone", "+49301", "external_id", "bob", "public", "yes"), call("email", "b@x.io"),
			call("email", "b@x.io", "external_id", "bob"),
		}, [][2]string{{"phone +49301", "email b@x.io"}}},
		"a device": {[]eventlog.Event{
			call("external_id", "ann"), call("anonymous", "d1", "external_id", "ann", "public", "yes"),
			call("anonymous", "d1", "phone", "+49302"), call("phone", "+49302", "email", "b@x.io"), call("email", "b@x.io", "external_id", "bob"),
		}, [][2]string{{"external_id ann", "external_id bob"}}},
		"an alias": {[]eventlog.Event{
			call("email", "a@x.io"), call("email", "a@x.io", "external_id", "old", "public", "yes"),
			call("external_id", "new", "previous", "old"),
		}, [][2]string{{"email a@x.io", "external_id new"}}},
		"an alias of a known person": {[]eventlog.Event{
			call("email", "a@x.io"), call("email", "a@x.io", "external_id", "new", "public", "yes"), call("external_id", "old"),
			call("external_id", "new", "previous", "old"),
		}, [][2]string{{"email a@x.io", "external_id old"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t, DefaultSettings())
			for _, e := range x.events {
				e.Call = true
				r.who(e)
			}
			find := func(text string) uint32 {
				var kind, value string
				if _, err := fmt.Sscan(text, &kind, &value); err != nil {
					t.Fatal(err)
				}
				for k := range IdentityKinds {
					if k.String() == kind {
						if o, ok := r.view().Profiles().Find(k, value); ok {
							return o
						}
					}
				}
				return profile.NoOrdinal
			}
			for _, pair := range x.apart {
				if a, b := find(pair[0]), find(pair[1]); a == b && a != profile.NoOrdinal {
					t.Errorf("%v became one person's: %+v", pair, r.personAt(find(pair[0])).Identities)
				}
			}
		})
	}
}

// TestClaimIsConfirmed: a server that shows a claim with another identifier of the person
// confirms it, and it joins then as any other.
func TestClaimIsConfirmed(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	o := r.who(call("email", "a@x.io"))
	r.who(call("email", "a@x.io", "external_id", "u1", "public", "yes"))
	if r.who(call("external_id", "u1")) != o {
		t.Fatal("a claim leads to its person")
	}
	r.who(call("email", "a@x.io", "external_id", "u1"))
	if got := r.who(call("external_id", "u1", "email", "new@x.io")); got != o || r.people() != 1 {
		t.Fatalf("the changed e-mail went to profile %d", got)
	}
}

// TestClaimsYieldToServers: what a browser's key claimed first takes neither the events nor the
// identifier's weight from the person to whom a server gives it.
func TestClaimsYieldToServers(t *testing.T) {
	t.Parallel()
	t.Run("the event is the person's, who stays apart", func(t *testing.T) {
		r := newRecorder(t, DefaultSettings())
		person, other := r.who(call("external_id", "u1")), r.who(call("phone", "+49302", "email", "b@x.io"))
		claiming := r.who(call("external_id", "x", "email", "a@x.io", "public", "yes"))
		if o := r.who(call("external_id", "u1", "email", "a@x.io")); o != person {
			t.Errorf("the event went to profile %d, not %d", o, person)
		}
		if c := r.personAt(person).Conflicts; len(c) != 1 || c[0].Reason != profile.ConflictReasons[profile.ConflictClaimed] {
			t.Errorf("conflicts %+v", c)
		}
		// a@x.io and b@x.io would be two people's.
		r.who(call("external_id", "u1", "phone", "+49302"))
		if r.people() != 3 || r.personAt(other).ID == r.personAt(person).ID || r.personAt(claiming).ID == r.personAt(person).ID {
			t.Errorf("%d people", r.people())
		}
		for i := range 3 * profile.MaxConflicts { // anybody can bring these about
			r.who(call("external_id", "u1", "email", fmt.Sprintf("c%d@x.io", i), "public", "yes"))
		}
		if !slices.ContainsFunc(r.personAt(person).Conflicts, func(c view.Conflict) bool {
			return c.Reason == profile.ConflictReasons[profile.ConflictClaimed]
		}) {
			t.Error("what keeps the person apart was pushed out")
		}
	})
	t.Run("another value is another person's", func(t *testing.T) {
		r := newRecorder(t, DefaultSettings())
		claiming := r.who(call("external_id", "x", "email", "a@x.io", "public", "yes"))
		if o := r.who(call("external_id", "u1", "email", "a@x.io")); o == claiming || r.who(call("external_id", "u1")) != o {
			t.Errorf("the event went to profile %d", o)
		}
	})
	t.Run("two claims do not confirm each other", func(t *testing.T) {
		r := newRecorder(t, DefaultSettings())
		r.who(call("external_id", "x", "email", "a@x.io", "phone", "+49301", "public", "yes"))
		r.who(call("email", "a@x.io", "phone", "+49301"))
		person := r.who(call("external_id", "u1"))
		if o := r.who(call("external_id", "u1", "email", "a@x.io")); o != person || r.people() != 2 {
			t.Errorf("the event went to profile %d of %d", o, r.people())
		}
	})
	t.Run("a claim that is confirmed", func(t *testing.T) {
		r := newRecorder(t, DefaultSettings())
		r.who(call("phone", "+49301"))
		r.who(call("external_id", "x", "email", "a@x.io", "public", "yes"))
		r.who(call("phone", "+49301", "email", "a@x.io"))
		if r.who(call("external_id", "x", "phone", "+49301")); r.people() != 2 {
			t.Fatalf("%d people, joined in doubt", r.people())
		}
		r.who(call("external_id", "x", "email", "a@x.io"))
		if r.who(call("external_id", "x", "phone", "+49301")); r.people() != 1 {
			t.Errorf("%d people: the event must go to the profile that has the identifier for certain", r.people())
		}
	})
}

// TestAliasKeptApartAndJoined: a claim keeps an alias from its profile, and another identifier
// of the same event joins the two.
func TestAliasKeptApartAndJoined(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	r.who(call("anonymous", "d1", "external_id", "u1", "public", "yes"))
	o := r.who(call("email", "a@x.io"))
	if got := r.who(call("email", "a@x.io", "external_id", "u1", "anonymous", "d2", "previous", "d1")); got != o || r.people() != 1 {
		t.Fatalf("profile %d of %d", got, r.people())
	}
}

// TestAttackServersJoinNobodyMore: with browsers' events in between, what servers send joins
// no two people that it would not have joined without.
func TestAttackServersJoinNobodyMore(t *testing.T) {
	t.Parallel()
	seeds := testlevel.Count(60, 400)
	joined := 0
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 99))
		attacked, plain := newRecorder(t, DefaultSettings()), newRecorder(t, DefaultSettings())
		world := pick(rng, 4, 12)
		both := func(e eventlog.Event) {
			e.Public, e.HasTime = false, false
			attacked.events(e)
			plain.events(e)
		}
		for range 15 {
			e := trackingEvent(rng, world, attacked.now)
			e.PreviousID = nil
			both(e)
		}
		b := plain.m.accounts[testAccount]
		people := roaring.AndNot(b.Profiles.Universe(), b.Engine.Anonymous()).ToArray()
		for range 60 {
			e := trackingEvent(rng, world+4, attacked.now)
			e.Public, e.PreviousID = true, nil
			attacked.events(e)
		}
		for range 15 {
			e := trackingEvent(rng, world+4, attacked.now)
			e.PreviousID = nil
			both(e)
		}
		a := attacked.m.accounts[testAccount]
		for i, x := range people {
			for _, y := range people[:i] {
				if b.Profiles.Root(x) == b.Profiles.Root(y) {
					joined++
				} else if a.Profiles.Root(x) == a.Profiles.Root(y) {
					t.Fatalf("seed %d: profiles %d and %d became one", seed, x, y)
				}
			}
		}
	}
	if joined == 0 {
		t.Fatal("servers merged no profiles: the test tests nothing")
	}
}

// TestPublicEventTypesAreBounded: browsers' keys use up their own share of the event types, a
// type that a server sends is none of them, and servers have the rest.
func TestPublicEventTypesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	status := func(typ, public string) *EventOutcome {
		return &r.events(call("external_id", "u1", "type", typ, "public", public)).Events[0]
	}
	for i := range eventtypes.MaxPublic {
		if out := status(fmt.Sprintf("type_%d", i), "yes"); out.Status != EventAccepted {
			t.Fatalf("type %d: %v", i, out.Refusal)
		}
	}
	if out := status("one_more", "yes"); out.Status != EventRefused || out.Refusal.Code != eventtypes.CodePublic || out.Refusal.Field != "event_type" {
		t.Fatalf("%+v", out)
	}
	if out := status("type_3", "yes"); out.Status != EventAccepted {
		t.Fatal("a known type is refused")
	}
	if out := status("of_servers", "no"); out.Status != EventAccepted {
		t.Fatal("a server is refused")
	}
	if out := status("of_servers", "yes"); out.Status != EventAccepted {
		t.Fatal("a type that servers send is refused")
	}
	status("type_5", "no")
	if out := status("one_more", "yes"); out.Status != EventAccepted {
		t.Fatal("a type that a server has sent leaves room")
	}
}
