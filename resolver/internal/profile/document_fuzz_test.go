package profile

import (
	"testing"

	"github.com/musterhq/muster/resolver/internal/identifier"
)

func FuzzDocument(f *testing.F) {
	d := Document{CreatedMs: 1, Identifiers: []Identifier{{Kind: identifier.Email, Value: []byte("a@x.io")}, {Kind: identifier.Phone, Value: []byte("+1"), Shared: true}}, Attributes: []byte(`{"a":1}`),
		Merged: []MergedProfile{{1, 2}}, Conflicts: []Conflict{{identifier.Phone, ConflictTooMany, 3, 4, []byte("1")}},
		Consents: []Consent{{1, 1, 5, []byte("manual"), 4}},
		Contact: Contact{IsContact: true, Lists: []uint32{3}, Blocks: []Block{{0, BlockBounced, 6}},
			Devices: []Device{{[]byte("d"), 1, []byte("token"), 7}}, Engaged: Engagement{Sent: 2, LastSentMs: 9}}}
	f.Add(d.Append(nil))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var d, again Document
		if d.Decode(b) != nil {
			return
		}
		if err := again.Decode(d.Append(nil)); err != nil {
			t.Fatal(err)
		}
	})
}
