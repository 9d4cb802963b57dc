package segment

import (
	"bytes"
	"testing"
)

// TestEveryKindIsHandled: a kind of condition that is added has a case in each switch over
// kinds, whose defaults would take it for an empty group, for false, or for another leaf.
func TestEveryKindIsHandled(t *testing.T) {
	email := NaiveConsent{Status: "subscribed"}
	holds := &NaiveProfile{FirstName: "Ada", Lists: []string{"lst_a"}, Consents: map[string]NaiveConsent{"email": email}, Events: []NaiveEvent{{Type: "paid", Sent: true}}, IsContact: true}
	refs := func(id string) (*Node, bool) {
		other, err := Parse([]byte(`{"kind":"attribute","field":"first_name","op":"exists"}`), Limits{})
		return other, err == nil && id == "seg_a"
	}
	samples := map[Kind]string{
		KindActivity:  `{"kind":"activity","event":"paid","did":true}`,
		KindAttribute: `{"kind":"attribute","field":"first_name","op":"=","value":"Ada"}`,
		KindConsent:   `{"kind":"consent","channel":"email","status":"subscribed"}`,
		KindList:      `{"kind":"list","list_id":"lst_a"}`,
		KindSegment:   `{"kind":"segment","segment_id":"seg_a"}`,
	}
	keys := map[string]Kind{}
	for _, kind := range leafKinds {
		n, err := Parse([]byte(samples[kind]), Limits{})
		if err != nil {
			t.Errorf("%s: the test has no sample: %v", kind, err)
			continue
		}
		leaf := n
		for leaf.Kind == KindGroup {
			leaf = leaf.Conditions[0]
		}
		if leaf.Kind != kind || !bytes.Contains(n.Canonical(), []byte(`"kind":"`+string(kind)+`"`)) {
			t.Errorf("%s: canonical is %s", kind, n.Canonical())
		}
		if other := keys[leaf.Key()]; other != "" {
			t.Errorf("%s and %s have the key %s", kind, other, leaf.Key())
		}
		keys[leaf.Key()] = kind
		if !n.Naive(holds, 1, refs) || n.Naive(&NaiveProfile{}, 1, refs) {
			t.Errorf("%s: the naive evaluator holds for %v and %v", kind, n.Naive(holds, 1, refs), n.Naive(&NaiveProfile{}, 1, refs))
		}
		if kind == KindActivity || kind == KindSegment { // which facts do not tell
			continue
		}
		if !holds.Facts().Holds(leaf, 1) || new(Facts).Holds(leaf, 1) {
			t.Errorf("%s: the facts hold for %v and %v", kind, holds.Facts().Holds(leaf, 1), new(Facts).Holds(leaf, 1))
		}
	}
}
