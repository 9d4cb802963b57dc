package api

import (
	"fmt"
	"testing"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

// TestS1FactsOfAProfile: what explain and the judgement of segments that are
// being built are told of a profile is what the engine is told: its lists, and
// the date of the last subscription, which an opt-out does not move.
func TestS1FactsOfAProfile(t *testing.T) {
	p := &resolver.Profile{
		Consents:    []resolver.Consent{{Channel: "sms", Status: "unsubscribed", SinceMs: 2_000_000, SubscribedMs: 1_000_000}},
		ContactInfo: resolver.ContactInfo{Lists: []string{"lst_1"}},
	}
	for definition, want := range map[string]bool{
		`{"kind":"list","list_id":"lst_1"}`:                                                                          true,
		`{"kind":"list","list_id":"lst_2"}`:                                                                          false,
		`{"kind":"list","list_id":"lst_1","member":false}`:                                                           false,
		`{"kind":"consent","channel":"sms","status":"unsubscribed"}`:                                                 true,
		fmt.Sprintf(`{"kind":"consent","channel":"sms","status":"unsubscribed","since":%q}`, record.Time(1_500_000)): false,
		fmt.Sprintf(`{"kind":"consent","channel":"sms","status":"unsubscribed","since":%q}`, record.Time(500_000)):   true,
	} {
		n, err := segment.Parse([]byte(definition), segment.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Naive(naiveProfile(p, nil), 3_000_000, nil); got != want {
			t.Errorf("%s: judged %t, expected %t", definition, got, want)
		}
		if got := factsOf(p).Holds(n, 3_000_000) != n.Negated(); got != want {
			t.Errorf("%s: explained as %t, expected %t", definition, got, want)
		}
	}
}
