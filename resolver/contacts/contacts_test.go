package contacts

import (
	"slices"
	"testing"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/featuretest"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/segment/engine"
)

// people is an account with profiles whose ids are single letters, "a" for ordinal 0.
type people struct {
	next      uint32
	documents [26]profile.Document
	events    []string
	sets      *profile.OrdinalSets
	listUsers string
	optIn     bool // a subscription to e-mail must be confirmed
}

func (p *people) NextNumber() uint32        { return p.next }
func (p *people) TakeNumber(number uint32)  { p.next = max(p.next, number+1) }
func (p *people) SaveNumbers()              {}
func (p *people) ListUsers(string) string   { return p.listUsers }
func (p *people) DropSet(name string)       { p.sets.Drop(name, func(uint16) {}) }
func (p *people) ProfileID(o uint32) string { return string(rune('a' + o)) }
func (p *people) DoubleOptIn() bool         { return p.optIn }
func (p *people) Redacted() bool            { return false }
func (p *people) BeginConsentLog()          {}

func (p *people) Profile(id string) (uint32, *profile.Document, *refuse.Refusal) {
	if len(id) != 1 {
		return 0, nil, refuse.NotFound("id", "there is no contact with this id")
	}
	return uint32(id[0] - 'a'), &p.documents[id[0]-'a'], nil
}

func (p *people) Other(o uint32) *profile.Document { return &p.documents[o] }

func (p *people) Update(o uint32, _ *profile.Document, _ engine.Fields, events ...feature.Event) {
	for _, x := range events {
		p.events = append(p.events, p.ProfileID(o)+" "+x.Type)
	}
}

func (p *people) Save(uint32, *profile.Document) {}

func (p *people) AskToConfirm(o uint32, _ *profile.Document) []feature.Event {
	p.events = append(p.events, p.ProfileID(o)+" asked")
	return nil
}

func newWorld(t *testing.T) (*featuretest.World[*State], *people) {
	p := &people{sets: profile.NewOrdinalSets()}
	ids := profile.NewIdentifierMap()
	return featuretest.New(t, Commands, func(store *state.Store) *State {
		return New(featuretest.Account, store, p.sets, &ids, func() identifier.Hasher { return identifier.NewHasher([16]byte{1}) }, p)
	}), p
}

func (p *people) recorded(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(p.events, want) {
		t.Fatalf("events %q, want %q", p.events, want)
	}
	p.events = nil
}

// TestListNumbersAreNotGivenTwice: a deleted list leaves no members and its number is not
// used again; lists of before version 5 that were deleted are none.
func TestListNumbersAreNotGivenTwice(t *testing.T) {
	w, p := newWorld(t)
	make := func(name string) *List {
		reply, r := w.Do(CommandListCreate, ListSave{Name: name})
		if r != nil {
			t.Fatal(r)
		}
		return reply.(*List)
	}
	one := make("one")
	if events, r := w.State.Join(2, &p.documents[2], one); r != nil || len(events) != 1 || !w.State.Members(*one).Contains(2) {
		t.Fatalf("%v, %v", events, r)
	}
	if events, r := w.State.Join(2, &p.documents[2], one); r != nil || len(events) != 0 {
		t.Fatalf("on the list twice: %v, %v", events, r)
	}
	p.listUsers = `segment "s"`
	w.Refused("conflict", CommandListDelete, ListDelete{ID: one.ID})
	p.listUsers = ""
	w.Must(CommandListDelete, ListDelete{ID: one.ID})
	if two := make("two"); two.Number != 1 || !w.State.Members(*one).IsEmpty() || w.State.Live(&p.documents[2]) != 0 {
		t.Fatalf("%+v, %v", two, p.documents[2].Lists)
	}
	w.Refused("not_found", CommandListRemove, ListRemove{ListID: one.ID, Profile: "c"})

	loaded, q := newWorld(t)
	for key, value := range w.Store.Entities {
		if value == nil {
			continue
		}
		if known, err := loaded.State.Load(key[state.KeyHead], key[state.KeyHead+1:], value); !known || err != nil {
			t.Fatal(key, err)
		}
	}
	if loaded.Hash() != w.Hash() {
		t.Fatal("the lists are not loaded as they were")
	}
	if q.next != 2 {
		t.Fatalf("the next list has the number %d", q.next)
	}
}

// TestConsentIsConfirmed: with double opt-in a subscription is pending until it is
// confirmed; a refusal ends the wait.
func TestConsentIsConfirmed(t *testing.T) {
	w, p := newWorld(t)
	p.optIn = true
	w.Must(CommandConsentSet, ConsentSet{ID: "a", Channel: "email", Status: "subscribed", Source: "form"})
	p.recorded(t, "a asked", "a subscribed")
	if p.documents[0].GravestSuppression(profile.ChannelEmail) != profile.SuppressionPending {
		t.Fatal("the subscription is not pending")
	}
	w.Must(CommandConsentSet, ConsentSet{ID: "a", Channel: "email", Status: "subscribed", Confirm: true})
	p.recorded(t, "a subscribed")
	if p.documents[0].GravestSuppression(profile.ChannelEmail) != 0 {
		t.Fatal("the subscription is pending still")
	}
	w.Must(CommandSuppressionSet, SuppressionSet{ID: "a", Channel: "email", Reason: "complained"})
	w.Must(CommandSuppressionSet, SuppressionSet{ID: "a", Channel: "email", Reason: "bounced"}) // the stronger one stays
	w.Must(CommandSuppressionSet, SuppressionSet{ID: "a", Channel: "email"})
	p.recorded(t, "a suppressed", "a unsuppressed")
	w.Refused("invalid", CommandConsentSet, ConsentSet{ID: "a", Channel: "pigeon", Status: "subscribed"})
	w.Refused("not_found", CommandConsentSet, ConsentSet{ID: "none", Channel: "sms", Status: "subscribed"})
}

// TestDeviceMoves: an address is one profile's, the one that registered it last.
func TestDeviceMoves(t *testing.T) {
	w, p := newWorld(t)
	for _, id := range []string{"a", "b"} {
		w.Must(CommandDeviceAdd, DeviceAdd{Profile: id, Device: "phone", Kind: "fcm", Address: "token"})
	}
	p.recorded(t, "a device_registered", "a subscribed", "a device_retired", "b device_registered", "b subscribed")
	if len(p.documents[0].Devices) != 0 || len(p.documents[1].Devices) != 1 || w.State.WithDevices(nil).GetCardinality() != 1 {
		t.Fatalf("%+v, %+v", p.documents[0].Devices, p.documents[1].Devices)
	}
	w.Refused("not_found", CommandDeviceRemove, DeviceRemove{Profile: "b", Device: "other"})
	w.Must(CommandDeviceRemove, DeviceRemove{Profile: "b", Device: "phone"})
	if !w.State.WithDevices(nil).IsEmpty() {
		t.Fatal("a profile without devices is among those that have one")
	}
}
