package reach

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/segment"
)

// randomDocument is the document of a random profile: some addresses, consents on some
// channels, blocks on some.
func randomDocument(rng *rand.Rand) *profile.Document {
	d := &profile.Document{CreatedMs: 1}
	for kind, values := range [identifier.Kinds][]string{{"a@x.io", "b@x.io"}, {"c1"}, {"+491", "491", "+492"}, {"device"}} {
		if rng.IntN(3) > 0 {
			d.Identifiers = append(d.Identifiers, profile.Identifier{Kind: identifier.Kind(kind), Value: []byte(values[rng.IntN(len(values))]), Shared: kind == int(identifier.Phone) && rng.IntN(4) == 0})
		}
	}
	if rng.IntN(2) == 0 {
		d.Devices = append(d.Devices, profile.Device{ID: []byte("d"), Address: []byte("token")})
	}
	for channel := range profile.Channels {
		if rng.IntN(2) == 0 {
			d.Consents = append(d.Consents, profile.Consent{Channel: byte(channel), Status: byte(rng.IntN(3)), SinceMs: 1})
		}
		if rng.IntN(4) == 0 {
			d.Suppress(profile.Suppression{Channel: byte(channel), Reason: profile.SuppressionPending + profile.SuppressionReason(rng.IntN(4))}, state.ApplyVersion)
		}
	}
	return d
}

// reachable says by the rules, in their words, whether a profile can be sent to: nothing
// blocks the channel, the profile is known and has an address there, and has subscribed, or
// need not and has not unsubscribed.
func reachable(d *profile.Document, channel string, optIn bool) bool {
	has := func(kind identifier.Kind) bool {
		return slices.ContainsFunc(d.Identifiers, func(x profile.Identifier) bool { return x.Kind == kind })
	}
	number := slices.Index(profile.Channels, channel)
	for _, b := range d.Suppressions {
		if int(b.Channel) == number {
			return false
		}
	}
	said := profile.ConsentStatuses[0]
	for _, c := range d.Consents {
		if int(c.Channel) == number {
			said = profile.ConsentStatuses[c.Status]
		}
	}
	known := has(identifier.Email) || has(identifier.ExternalID) || has(identifier.Phone) || !has(identifier.Anonymous)
	address := map[string]bool{"email": has(identifier.Email), "push": len(d.Devices) > 0}
	switch channel {
	case "email", "push":
	case "in_app":
		address[channel], optIn = has(identifier.Email) || has(identifier.ExternalID), false
	default:
		address[channel], optIn = has(identifier.Phone), true
	}
	return known && address[channel] && (said == "subscribed" || said != "unsubscribed" && !optIn)
}

// TestSetsMatchNaive: the sets follow from the documents, whatever becomes of profiles: those
// whom the rules let a message go to are in the set of the channel, and those who have a status
// in that of the status.
func TestSetsMatchNaive(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 5))
		docs := map[uint32]*profile.Document{}
		sets := NewSets(profile.NewOrdinalSets())
		for range 100 {
			o := rng.Uint32N(20)
			if rng.IntN(5) == 0 {
				delete(docs, o)
				sets.Remove(o)
				continue
			}
			docs[o] = randomDocument(rng)
			sets.Keep(o, docs[o])
		}
		all := roaring.New()
		again := NewSets(profile.NewOrdinalSets())
		for o, d := range docs {
			all.Add(o)
			again.Keep(o, d)
		}
		if err := sets.Differ(again); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, optIn := range []bool{false, true} {
			for channel, have := range sets.Reachable(optIn) {
				want := roaring.New()
				for o, d := range docs {
					if reachable(d, channel, optIn) {
						want.Add(o)
					}
					if (Why(d, channel, optIn) == "") != reachable(d, channel, optIn) {
						t.Fatalf("seed %d: %s, opt-in %v: why is %q of %+v", seed, channel, optIn, Why(d, channel, optIn), d)
					}
				}
				if !have.Equals(want) {
					t.Fatalf("seed %d: %s, opt-in %v: %v can be sent to, want %v", seed, channel, optIn, have.ToArray(), want.ToArray())
				}
			}
		}
		checkStatuses(t, sets, docs, all)
	}
}

// checkStatuses compares the sets of statuses with the statuses of conditions.
func checkStatuses(t *testing.T, sets *Sets, docs map[uint32]*profile.Document, all *roaring.Bitmap) {
	t.Helper()
	for _, channel := range profile.Channels {
		with := map[string]*roaring.Bitmap{}
		for o, d := range docs {
			var f segment.Facts
			d.FillFacts(&f, nil, 0)
			if status := f.Status(channel, 1); status != "" {
				if with[status] == nil {
					with[status] = roaring.New()
				}
				with[status].Add(o)
			}
		}
		for status, people := range with {
			if missing := roaring.AndNot(people, sets.WithStatus(channel, status)); !missing.IsEmpty() {
				t.Fatalf("%s: %v are %s, and not in the set", channel, missing.ToArray(), status)
			}
		}
		p := segment.Predicate{Path: []string{"contact", channel}, Op: segment.OpNotIn, Values: []segment.Value{{Kind: segment.ValueString, Str: segment.ContactUnsubscribed}}}
		want := all
		if with[segment.ContactUnsubscribed] != nil {
			want = roaring.AndNot(all, with[segment.ContactUnsubscribed])
		}
		if have, ok := sets.StatusMembers(&p, all); !ok || !have.Equals(want) {
			t.Fatalf("%s: not unsubscribed are %v %v, want %v", channel, have, ok, want)
		}
		p.Op, p.Values[0].Str = segment.OpEq, segment.ContactBounced
		if _, ok := sets.StatusMembers(&p, all); ok {
			t.Fatal("the sets tell apart why a contact is blocked")
		}
	}
}

// owners are profiles by ordinal, and the ordinals by phone number.
type owners struct {
	docs   []*profile.Document
	phones map[string]uint32
}

func (p owners) Holder(kind identifier.Kind, value string) (uint32, bool) {
	o, ok := p.phones[value]
	return o, ok && kind == identifier.Phone
}

func (p owners) Erased(_ identifier.Kind, value string) bool { return value == "+66" }

func (p owners) Decode(o uint32, d *profile.Document) error { return d.Decode(p.docs[o].Append(nil)) }

// TestNumberIsRefusedByItsOwner: nothing goes to a number, in whatever spelling, whose owner
// refused the channel, or that was an erased person's.
func TestNumberIsRefusedByItsOwner(t *testing.T) {
	phone := func(value string, shared bool) []profile.Identifier {
		return []profile.Identifier{{Kind: identifier.Phone, Value: []byte(value), Shared: shared}}
	}
	refusing := &profile.Document{Identifiers: phone("+491", false), Consents: []profile.Consent{{Channel: profile.ChannelSMS, Status: profile.ConsentUnsubscribed}}}
	sharing, other := &profile.Document{Identifiers: phone("+491", true)}, &profile.Document{Identifiers: phone("00491", false)}
	alone := &profile.Document{Identifiers: phone("+492", false)}
	p := owners{[]*profile.Document{refusing, sharing, other, alone}, map[string]uint32{"+491": 0, "00491": 2, "+492": 3}}
	for o, want := range []bool{false, true, true, false} {
		var d profile.Document
		if err := p.Decode(uint32(o), &d); err != nil {
			t.Fatal(err)
		}
		if have, err := NumberRefused(p, &d, uint32(o), "sms"); err != nil || have != want {
			t.Errorf("profile %d: refused is %v %v, want %v", o, have, err, want)
		}
		if have, err := NumberRefused(p, &d, uint32(o), "email"); err != nil || have {
			t.Errorf("profile %d: refused is %v %v for e-mail", o, have, err)
		}
	}
	for address, want := range map[string]string{"+491": "unsubscribed", "491": "unsubscribed", "+492": "", "+493": "", "0066": "erased"} {
		if have, err := KeptFrom(p, "sms", address); err != nil || have != want {
			t.Errorf("%s is kept from by %q %v, want %q", address, have, err, want)
		}
	}
	sets := NewSets(profile.NewOrdinalSets())
	for o, d := range p.docs {
		sets.Keep(uint32(o), d)
	}
	doubtful := sets.DoubtfulPhones()["sms"]
	if !doubtful.Shown.Equals(roaring.BitmapOf(1, 2)) || !doubtful.Refusing.IsEmpty() {
		t.Errorf("doubtful are %v %v", doubtful.Shown, doubtful.Refusing)
	}
}
