package segment

import "testing"

// TestS1NaiveOfFacts: the oracle gets the same facts of a profile as the engine:
// its lists, and the date of the last subscription, which an opt-out does not move.
func TestS1NaiveOfFacts(t *testing.T) {
	f := &Facts{
		Fields: Fields{
			Emails: [][]byte{[]byte("a@x.io"), []byte("b@x.io")}, Phones: [][]byte{[]byte("+4930")}, ExternalIDs: [][]byte{[]byte("x-1")},
			FirstName: []byte("Ada"), LastName: []byte("Byron"), Geo: []byte(`{"country":"GB"}`), Attributes: []byte(`{"plan":"pro"}`), CreatedAtMs: 500_000,
		},
		Consents: []ConsentFact{
			{Channel: "sms", Status: StatusUnsubscribed, SubscribedMs: 1_000_000, HasDate: true},
			{Channel: "email", Status: StatusUnsubscribed},
		},
		Lists: []string{"lst_1"},
	}
	p := NaiveOf(f, nil)
	for definition, want := range map[string]bool{
		`{"kind":"list","list_id":"lst_1"}`:                true,
		`{"kind":"list","list_id":"lst_2"}`:                false,
		`{"kind":"list","list_id":"lst_1","member":false}`: false,

		`{"kind":"consent","channel":"sms","status":"unsubscribed"}`:                                  true,
		`{"kind":"consent","channel":"push","status":"never_subscribed"}`:                             true,
		`{"kind":"consent","channel":"sms","status":"unsubscribed","since":"1970-01-01T00:25:00Z"}`:   false,
		`{"kind":"consent","channel":"sms","status":"unsubscribed","since":"1970-01-01T00:08:20Z"}`:   true,
		`{"kind":"consent","channel":"email","status":"unsubscribed","since":"1970-01-01T00:00:00Z"}`: false,
		`{"kind":"attribute","field":"email","op":"=","value":"b@x.io"}`:                              true,
		`{"kind":"attribute","field":"phone","op":"=","value":"+4930"}`:                               true,
		`{"kind":"attribute","field":"external_id","op":"=","value":"x-1"}`:                           true,
		`{"kind":"attribute","field":"first_name","op":"=","value":"Ada"}`:                            true,
		`{"kind":"attribute","field":"last_name","op":"=","value":"Byron"}`:                           true,
		`{"kind":"attribute","field":"geo.country","op":"=","value":"GB"}`:                            true,
		`{"kind":"attribute","field":"attributes.plan","op":"=","value":"pro"}`:                       true,
		`{"kind":"attribute","field":"created_at","op":"before","value":"1970-01-01T00:08:20.001Z"}`:  true,
		`{"kind":"attribute","field":"created_at","op":"before","value":"1970-01-01T00:08:20.000Z"}`:  false,
	} {
		n, err := Parse([]byte(definition), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Naive(p, 3_000_000, nil); got != want {
			t.Errorf("%s: judged naively %t, expected %t", definition, got, want)
		}
		if got := f.Holds(n, 3_000_000) != n.Negated(); got != want {
			t.Errorf("%s: holds %t, expected %t", definition, got, want)
		}
	}
}
