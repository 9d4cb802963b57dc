package profile

import (
	"testing"

	"github.com/musterhq/muster/resolver/internal/identifier"
)

// TestSameStanding: what decides whether a message may be sent makes a document another one,
// what does not is passed over.
func TestSameStanding(t *testing.T) {
	made := func(change func(d *Document)) []byte {
		d := &Document{CreatedMs: 1, FirstName: []byte("Ann"), Attributes: []byte(`{"a":1}`)}
		d.Identifiers = []Identifier{{Kind: identifier.Email, Value: []byte("a@example.com")}}
		d.Consents = []Consent{{Channel: ChannelEmail, Status: ConsentSubscribed, SinceMs: 1}}
		change(d)
		return d.Append(nil)
	}
	was := made(func(*Document) {})
	for name, c := range map[string]struct {
		change func(d *Document)
		same   bool
	}{
		"nothing":     {func(*Document) {}, true},
		"names":       {func(d *Document) { d.FirstName, d.LastName = nil, []byte("Lee") }, true},
		"geo":         {func(d *Document) { d.Geo = []byte(`{"city":"Rome"}`) }, true},
		"attributes":  {func(d *Document) { d.Attributes = []byte(`{"a":22,"b":true}`) }, true},
		"identifiers": {func(d *Document) { d.Identifiers[0].Value = []byte("b@example.com") }, false},
		"one more": {func(d *Document) {
			d.Identifiers = append(d.Identifiers, Identifier{Kind: identifier.Phone, Value: []byte("+49301")})
		}, false},
		"shared":        {func(d *Document) { d.Identifiers[0].Shared = true }, false},
		"consents":      {func(d *Document) { d.Consents[0].Status = ConsentUnsubscribed }, false},
		"blocks":        {func(d *Document) { d.Blocks = []Block{{Channel: ChannelEmail, Reason: BlockBounced, SinceMs: 2}} }, false},
		"devices":       {func(d *Document) { d.Devices = []Device{{ID: []byte("d"), Address: []byte("x"), AddedMs: 2}} }, false},
		"anonymous ids": {func(d *Document) { d.Identifiers[0].Kind = identifier.Anonymous }, false},
	} {
		now := made(c.change)
		if SameStanding(was, now) != c.same || SameStanding(now, was) != c.same {
			t.Errorf("%s: the same is not %v", name, c.same)
		}
	}
}
