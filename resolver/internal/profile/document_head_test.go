package profile

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/internal/identifier"
)

// TestCompare: what decides whether a message may be sent makes a document another one, and
// names do for who searches; what does not is passed over.
func TestCompare(t *testing.T) {
	made := func(change func(d *Document)) []byte {
		d := &Document{CreatedMs: 1, FirstName: []byte("Ann"), Attributes: []byte(`{"a":1}`)}
		d.Identifiers = []Identifier{{Kind: identifier.Email, Value: []byte("a@example.com")}}
		d.Consents = []Consent{{Channel: ChannelEmail, Status: ConsentSubscribed, SinceMs: 1}}
		change(d)
		return d.Append(nil)
	}
	was := made(func(*Document) {})
	all, standing, names, none := Likeness{true, true, true}, Likeness{true, false, true}, Likeness{true, true, false}, Likeness{}
	for name, c := range map[string]struct {
		change func(d *Document)
		same   Likeness
	}{
		"nothing":            {func(*Document) {}, all},
		"names":              {func(d *Document) { d.FirstName, d.LastName = nil, []byte("Lee") }, standing},
		"last name":          {func(d *Document) { d.LastName = []byte("Lee") }, standing},
		"first name to last": {func(d *Document) { d.FirstName, d.LastName = nil, d.FirstName }, standing},
		"geo":                {func(d *Document) { d.Geo = []byte(`{"city":"Rome"}`) }, all},
		"attributes":         {func(d *Document) { d.Attributes = []byte(`{"a":22,"b":true}`) }, all},
		"much":               {func(d *Document) { d.Attributes = []byte(`{"a":"` + strings.Repeat("x", 300) + `"}`) }, all},
		"identifiers":        {func(d *Document) { d.Identifiers[0].Value = []byte("b@example.com") }, none},
		"one more": {func(d *Document) {
			d.Identifiers = append(d.Identifiers, Identifier{Kind: identifier.Phone, Value: []byte("+49301")})
		}, none},
		"shared":   {func(d *Document) { d.Identifiers[0].Shared = true }, none},
		"consents": {func(d *Document) { d.Consents[0].Status = ConsentUnsubscribed }, names},
		"blocks": {func(d *Document) {
			d.Suppressions = []Suppression{{Channel: ChannelEmail, Reason: SuppressionBounced, SinceMs: 2}}
		}, names},
		"devices":           {func(d *Document) { d.Devices = []Device{{ID: []byte("d"), Address: []byte("x"), AddedMs: 2}} }, names},
		"anonymous ids":     {func(d *Document) { d.Identifiers[0].Kind = identifier.Anonymous }, none},
		"name and consents": {func(d *Document) { d.FirstName, d.Consents = []byte("Bo"), nil }, Likeness{Identifiers: true}},
	} {
		now := made(c.change)
		if there, back := Compare(was, now), Compare(now, was); there != c.same || back != c.same {
			t.Errorf("%s: the same are %+v and %+v, expected %+v", name, there, back, c.same)
		}
		var d Document
		if err := d.Decode(now); err != nil {
			t.Fatal(err)
		}
		if first, last := Names(now); string(first) != string(d.FirstName) || string(last) != string(d.LastName) {
			t.Errorf("%s: the names are %q and %q, expected %q and %q", name, first, last, d.FirstName, d.LastName)
		}
	}
	if Compare(nil, was) != none || Compare(was, nil) != none {
		t.Error("no document is like another")
	}
}
