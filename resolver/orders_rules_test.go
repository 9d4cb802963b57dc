package resolver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/orders"
)

// clicks has a person click a message of a step of a flow.
func (r *recorder) clicks(profile, step string) {
	r.t.Helper()
	r.must(messages.CommandEngagement, messages.EngagementRecord{Profile: profile, Channel: "email", Kind: messages.EngagementClick, Flow: "flow", Step: step})
}

// orderAt places an order at an instant, and returns the step that it belongs to.
func (r *recorder) orderAt(id string, atMs int64) string {
	r.t.Helper()
	e := orderEvent("order_placed", "a@x.io", fmt.Sprintf(`{"order_id":%q,"total":1,"currency":"EUR"}`, id))
	e.HasTime, e.TimeMs = true, atMs
	r.events(e)
	x, _, ok := r.view().Orders().Get(id)
	if !ok {
		r.t.Fatalf("there is no order %s", id)
	}
	if x.Touch == nil {
		return ""
	}
	return x.Touch.Step
}

// TestLateOrdersBelongToTheLastTouchBeforeThem: an order that comes late belongs to the newest
// touch before its own time, also where its message or another one was clicked since. Under older
// rules only the newest click of a message was known.
func TestLateOrdersBelongToTheLastTouchBeforeThem(t *testing.T) {
	t.Parallel()
	const hour = int64(3_600_000)
	for rules, want := range map[int][5]string{
		ApplyVersion: {"", "a", "b", "a", "c"},
		24:           {"", "", "b", "a", "c"},
	} {
		t.Run(fmt.Sprint(rules), func(t *testing.T) {
			d := newDurableUnder(t, DefaultSettings(), rules)
			r := d.recorder
			ann := r.events(orderEvent("seen", "a@x.io", `{}`)).Events[0].Profile.String()
			start := r.now
			for _, step := range []string{"a", "b", "a", "c"} {
				r.now += 2 * hour
				r.clicks(ann, step)
			}
			d.reload()
			r.now += hour
			for i := range want {
				if got := r.orderAt(fmt.Sprint(i), start+int64(2*i+1)*hour); got != want[i] {
					t.Errorf("the order after %d clicks belongs to %q, want %q", i, got, want[i])
				}
			}
		})
	}
}

// TestTouchesAreBounded: of one message the newest touches are kept, and of all messages together.
func TestTouchesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	ann := r.events(orderEvent("seen", "a@x.io", `{}`)).Events[0].Profile.String()
	start := r.now
	for range orders.MaxTouchesOfSource + 2 {
		r.now += 1000
		r.clicks(ann, "often")
	}
	if got := r.orderAt("1", start+2500); got != "" {
		t.Errorf("the order belongs to %q, whose click then is one too many", got)
	}
	if got := r.orderAt("2", start+3500); got != "often" {
		t.Errorf("the order belongs to %q", got)
	}
	second := r.now
	for i := range orders.MaxTouches {
		r.now += 1000
		r.clicks(ann, fmt.Sprint(i))
	}
	if got := r.orderAt("3", second+500); got != "" {
		t.Errorf("the order belongs to %q, whose clicks are too many", got)
	}
	if got := r.orderAt("4", second+1500); got != "0" {
		t.Errorf("the order belongs to %q", got)
	}
}

// TestBadOrdersSayWhy: an order or a cart whose total, currency or items cannot be is recorded as
// an event, and the warning names what is wrong. Under older rules any three letters were a
// currency, and a quantity any number.
func TestBadOrdersSayWhy(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	old := newDurableUnder(t, DefaultSettings(), 24).recorder
	for i, c := range []struct {
		properties, want string
		older            bool // it was an order under older rules
	}{
		{`"total":1,"currency":"EUR"`, "", true}, {`"total":1,"currency":"jPy"`, "", true}, {`"total":1,"currency":"HRK"`, "", true},
		{`"total":0,"currency":"EUR","items":[{"quantity":0.5,"price":0}]`, "", true},
		{`"total":1,"currency":"QQQ"`, "currency must be", true}, {`"total":1,"currency":"EURO"`, "currency must be", false}, {`"total":1,"currency":""`, "currency must be", false},
		{`"total":-1,"currency":"EUR"`, "total must be", false}, {`"total":1e11,"currency":"EUR"`, "total must be", false},
		{`"total":1,"currency":"EUR","items":[{"quantity":-1}]`, "quantity and price", true}, {`"total":1,"currency":"EUR","items":[{"quantity":1e11}]`, "quantity and price", true},
		{`"total":1,"currency":"EUR","items":[{"price":-1}]`, "quantity and price", false},
	} {
		for _, event := range []string{"order_placed", "cart_updated"} {
			e := orderEvent(event, "a@x.io", fmt.Sprintf(`{"items":[],"order_id":"%d",%s}`, i, c.properties))
			if event == "order_placed" || strings.Contains(c.properties, "items") {
				e.Properties = fmt.Appendf(nil, `{"order_id":"%d",%s}`, i, c.properties)
			}
			if w := r.events(e).Events[0].Warning(); !strings.Contains(w, c.want) || (w == "") != (c.want == "") {
				t.Errorf("%s %s: warning %q", event, e.Properties, w)
			}
			if w := old.events(e).Events[0].Warning(); (w == "") != c.older || strings.Contains(w, "must be") {
				t.Errorf("under older rules, %s %s: warning %q", event, e.Properties, w)
			}
		}
	}
	r.expectRevenue("a@x.io", "2 1.00 EUR, 1 1.00 HRK, 1 1.00 JPY")
	old.expectRevenue("a@x.io", "4 3.00 EUR, 1 1.00 HRK, 1 1.00 JPY, 1 1.00 QQQ")
}

// TestCartsThatAreEmpty: a cart says by its items, or by its total, that nothing is in it. Under
// older rules a cart without items was none.
func TestCartsThatAreEmpty(t *testing.T) {
	t.Parallel()
	for properties, want := range map[string]struct{ open, older bool }{
		`{"items":[{"name":"Shoe"}]}`:            {true, true},
		`{"items":[{"name":"Shoe"}],"total":5}`:  {true, true},
		`{"items":null,"total":5}`:               {true, false},
		`{"items":[{"name":"Gift"}],"total":0}`:  {false, true},
		`{"items":[]}`:                           {false, false},
		`{"items":[],"total":5}`:                 {false, true},
		`{"total":0}`:                            {false, false},
		`{"cart_id":"c"}`:                        {false, false},
		`{}`:                                     {false, false},
		`{"items":[{"name":"Shoe"}],"total":-1}`: {false, false},
	} {
		for rules, open := range map[int]bool{ApplyVersion: want.open, 24: want.older} {
			r := newDurableUnder(t, DefaultSettings(), rules)
			r.events(orderEvent("cart_updated", "a@x.io", properties))
			o, _ := r.view().Profiles().ResolveText(r.idOf("a@x.io"))
			if got := r.view().Orders().HasOpenCart(o); got != open {
				t.Errorf("under rules %d the cart %s is open: %v", rules, properties, got)
			}
			if n := r.events(orderEvent("order_placed", "a@x.io", `{"order_id":"1","total":1,"currency":"EUR"}`)); n.Events[0].Warning() != "" || r.view().Orders().HasOpenCart(o) {
				t.Errorf("under rules %d the cart %s is open after an order", rules, properties)
			}
		}
	}
}
