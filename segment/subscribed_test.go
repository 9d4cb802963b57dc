package segment_test

import (
	"testing"

	"github.com/musterhq/muster/segment/segmenttest"
)

// TestSubscribedOfToday: what becomes of a condition on subscribed is a definition that
// can be written and stored, and holds for those who subscribed, confirmed and are not
// suppressed. Old definitions are read as they were.
func TestSubscribedOfToday(t *testing.T) {
	const status = `{"kind":"attribute","field":"status.email","op":"in","value":["At risk","Engaged","Subscribed"]}`
	const not = `{"kind":"attribute","field":"status.email","op":"not_in","value":["At risk","Engaged","Subscribed"]}`
	for _, x := range []struct{ given, want string }{
		{`{"kind":"attribute","field":"subscribed","op":"=","value":true}`, status},
		{`{"kind":"attribute","field":"subscribed","op":"!=","value":false}`, status},
		{`{"kind":"attribute","field":"subscribed","op":"=","value":false}`, not},
		{`{"kind":"attribute","field":"subscribed","op":"!=","value":true}`, not},
		{`{"match":"any","conditions":[{"kind":"list","list_id":"l"},{"match":"all","conditions":[{"kind":"attribute","field":"subscribed","op":"=","value":true}]}]}`,
			`{"match":"any","conditions":[{"kind":"list","list_id":"l"},{"match":"all","conditions":[` + status + `]}]}`},
		{`{"kind":"attribute","field":"attributes.subscribed","op":"=","value":true}`, ""},
		{`{"kind":"consent","channel":"email","status":"subscribed"}`, ""},
		{`{"kind":"activity","event":"a","where":[{"property":"subscribed","op":"=","value":true}]}`, ""},
	} {
		n := parse(t, []byte(x.given))
		old := string(n.Canonical())
		if old != x.given {
			t.Errorf("%s of an old log is read as %s", x.given, old)
		}
		changed := n.UseCurrentFields()
		if x.want == "" {
			x.want = old
		}
		if have := string(n.Canonical()); have != x.want || changed != (x.want != old) {
			t.Errorf("%s becomes %s (%t), want %s", x.given, have, changed, x.want)
		}
		if again := string(parse(t, []byte(x.want)).Canonical()); again != x.want {
			t.Errorf("%s is read back as %s", x.want, again)
		}
	}

	yes := parse(t, []byte(`{"kind":"attribute","field":"subscribed","op":"=","value":true}`))
	no := parse(t, []byte(`{"kind":"attribute","field":"subscribed","op":"=","value":false}`))
	yes.UseCurrentFields()
	no.UseCurrentFields()
	met := map[bool]int{}
	for seed := range uint64(2000) {
		g := segmenttest.New(seed)
		p := g.Profile()
		p.Anonymous = false
		want := p.Consents["email"].Status == "subscribed" && p.Suppressions["email"] == ""
		met[want]++
		for _, at := range []int64{0, g.At(), g.At() + 400*86_400_000} {
			if yes.Naive(p, at, nil) != want || yes.Attribute.Match(p.Facts(), at) != want || no.Naive(p, at, nil) == want || no.Attribute.Match(p.Facts(), at) == want {
				t.Fatalf("seed %d at %d: consent %+v, blocks %v: subscribed should be %t", seed, at, p.Consents["email"], p.Suppressions, want)
			}
		}
	}
	if met[true] < 100 || met[false] < 100 {
		t.Errorf("met %v", met)
	}
}
