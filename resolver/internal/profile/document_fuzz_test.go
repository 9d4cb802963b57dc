package profile

import (
	"testing"

	"github.com/musterhq/muster/resolver/internal/identifier"
)

func FuzzDocument(f *testing.F) {
	d := Document{CreatedMs: 1, Identifiers: []Identifier{{Kind: identifier.Email, Value: []byte("a@x.io")}, {Kind: identifier.Phone, Value: []byte("+1"), Shared: true}, {Kind: identifier.Anonymous, Value: []byte("d-1")}}, Attributes: []byte(`{"a":1}`),
		Merged: []MergedProfile{{1, 2, false}, {4, 3, true}}, Conflicts: []Conflict{{identifier.Phone, ConflictTooMany, 3, 4, []byte("1")}},
		Consents: []Consent{{1, 1, 5, []byte("manual"), 4}},
		Contact: Contact{IsContact: true, Lists: []uint32{3}, Suppressions: []Suppression{{0, SuppressionBounced, 6}},
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

// TestDocumentOfAnonymousProfile: anonymous ids and merged anonymous profiles are read back,
// and count for what they are.
func TestDocumentOfAnonymousProfile(t *testing.T) {
	d := Document{Identifiers: []Identifier{{Kind: identifier.Anonymous, Value: []byte("d-1")}},
		Merged: []MergedProfile{{Ordinal: MaxProfiles - 1, AtMs: 3, Anonymous: true}, {Ordinal: 4, AtMs: 5}}}
	var again Document
	if err := again.Decode(d.Append(nil)); err != nil {
		t.Fatal(err)
	}
	if !again.IsAnonymous() || again.Known() != 0 || again.MergedKnown() != 1 || again.Merged[0] != d.Merged[0] || again.Merged[1] != d.Merged[1] {
		t.Fatalf("%+v", again)
	}
	if again.Full(identifier.Anonymous, 0, 2) || !again.Full(identifier.Anonymous, 9, 1) || !again.Full(identifier.Email, 0, 9) {
		t.Fatal("bounds")
	}
	again.Identifiers = append(again.Identifiers, Identifier{Kind: identifier.ExternalID, Value: []byte("u")})
	if again.IsAnonymous() || again.Known() != 1 || (&Document{}).IsAnonymous() {
		t.Fatal("a profile that is identified, or has no identifier at all, is not anonymous")
	}
}
