package resolver

import (
	"encoding/json"
	"testing"

	"github.com/musterhq/muster/flows/ready"
	"github.com/musterhq/muster/resolver/automation"
)

// pausedFor pauses a flow for a time.
func (r *recorder) pausedFor(flow string, ms int64) {
	r.t.Helper()
	r.must(automation.CommandPause, automation.ID{ID: flow})
	r.now += ms
	r.must(automation.CommandResume, automation.ID{ID: flow})
}

// TestReadyFlowForCarts: the ready flow reminds people of a cart that they left, unless they
// have ordered since or the cart is empty, also where the flow continues late after a pause.
func TestReadyFlowForCarts(t *testing.T) {
	t.Parallel()
	const hour = int64(3_600_000)
	cart := orderEvent("cart_updated", "a@x.io", `{"items":[{"name":"Shoe"}],"total":5,"currency":"EUR"}`)
	cartWithoutTotal := orderEvent("cart_updated", "a@x.io", `{"items":[{"name":"Shoe"}]}`)
	empty := orderEvent("cart_updated", "a@x.io", `{"items":[],"total":0,"currency":"EUR"}`)
	order := orderEvent("order_placed", "a@x.io", `{"order_id":"1","total":5,"currency":"EUR"}`)
	for name, c := range map[string]struct {
		play func(r *recorder, flow string)
		want string
	}{
		"left":               {func(r *recorder, _ string) { r.events(cart) }, "#1 cart:yes wait:done open:yes remind:skipped_not_subscribed completed"},
		"left without total": {func(r *recorder, _ string) { r.events(cartWithoutTotal) }, "#1 cart:yes wait:done open:yes remind:skipped_not_subscribed completed"},
		"ordered":            {func(r *recorder, _ string) { r.events(cart); r.now += hour; r.events(order) }, "#1 cart:yes wait:done open:no completed"},
		"ordered in the same batch, by their own times": {func(r *recorder, _ string) {
			c, o := cart, order
			c.HasTime, c.TimeMs, o.HasTime, o.TimeMs = true, r.now-55_000, true, r.now-20_000
			r.events(c, o)
		}, "#1 cart:yes wait:done open:no completed"},
		"ordered in the same batch": {func(r *recorder, _ string) { r.events(cart, order) }, "#1 cart:yes wait:done open:no completed"},
		"emptied":                   {func(r *recorder, _ string) { r.events(cart); r.now += hour; r.events(empty) }, "#1 cart:yes wait:done open:no completed"},
		"ordered before a pause of three days": {func(r *recorder, flow string) {
			r.events(cart)
			r.now += hour
			r.events(order)
			r.pausedFor(flow, 72*hour)
		}, "#1 cart:yes wait:done open:no completed"},
		"ordered in a pause of three days": {func(r *recorder, flow string) {
			r.events(cart)
			r.must(automation.CommandPause, automation.ID{ID: flow})
			r.now += 10 * hour
			r.events(order)
			r.now += 62 * hour
			r.must(automation.CommandResume, automation.ID{ID: flow})
		}, "#1 cart:yes wait:done open:no completed"},
		"emptied before a pause of ten hours": {func(r *recorder, flow string) {
			r.events(cart)
			r.now += hour
			r.events(empty)
			r.pausedFor(flow, 10*hour)
		}, "#1 cart:yes wait:done open:no completed"},
		"left before a pause of ten hours":  {func(r *recorder, flow string) { r.events(cart); r.pausedFor(flow, 10*hour) }, "#1 cart:yes wait:done open:yes remind:skipped_not_subscribed completed"},
		"left before a pause of three days": {func(r *recorder, flow string) { r.events(cart); r.pausedFor(flow, 72*hour) }, "#1 cart:yes wait:done open:no completed"},
		"ordered, and another cart after it": {func(r *recorder, flow string) {
			r.events(cart, order)
			r.must(automation.CommandPause, automation.ID{ID: flow})
			r.now += 70 * hour
			r.events(cart)
			r.must(automation.CommandResume, automation.ID{ID: flow})
		}, "#1 cart:yes wait:done open:yes remind:skipped_not_subscribed completed"},
		"empty":                 {func(r *recorder, _ string) { r.events(empty) }, "none"},
		"empty without a total": {func(r *recorder, _ string) { r.events(orderEvent("cart_updated", "a@x.io", `{"items":[]}`)) }, "#1 cart:no completed"},
		"emptied by a list without items": {func(r *recorder, _ string) {
			r.events(cart)
			r.now += hour
			r.events(orderEvent("cart_updated", "a@x.io", `{"items":[]}`))
		}, "#1 cart:yes wait:done open:no completed"},
		"emptied by no items": {func(r *recorder, _ string) {
			r.events(cart)
			r.now += hour
			r.events(orderEvent("cart_updated", "a@x.io", `{"cart_id":"c"}`))
		}, "#1 cart:yes wait:done open:no completed"},
		"emptied by a total alone": {func(r *recorder, _ string) {
			r.events(cart)
			r.now += hour
			r.events(orderEvent("cart_updated", "a@x.io", `{"total":0}`))
		}, "#1 cart:yes wait:done open:no completed"},
		"emptied, and filled again": {func(r *recorder, _ string) { r.events(cart, empty); r.now += hour; r.events(cart) }, "#1 cart:yes wait:done open:yes remind:skipped_not_subscribed completed"},
		"a total alone":             {func(r *recorder, _ string) { r.events(orderEvent("cart_updated", "a@x.io", `{"total":5}`)) }, "#1 cart:yes wait:done open:yes remind:skipped_not_subscribed completed"},
		"another cart an hour after an order": {func(r *recorder, _ string) { r.events(order); r.now += hour; r.events(cart) },
			"#1 cart:yes wait:done open:yes remind:skipped_not_subscribed completed"},
		"ordered, and another cart within the wait": {func(r *recorder, _ string) {
			r.events(cart)
			r.now += hour
			r.events(order)
			r.now += hour
			r.events(cart)
		}, "#1 cart:yes wait:done open:yes remind:skipped_not_subscribed completed"},
		"an older order that comes after the cart": {func(r *recorder, _ string) {
			o := order
			o.HasTime, o.TimeMs = true, r.now-1000
			r.events(cart)
			r.now++
			r.events(o)
		}, "#1 cart:yes wait:done open:yes remind:skipped_not_subscribed completed"},
		"a cart that comes after its order": {func(r *recorder, _ string) {
			c := cart
			c.HasTime, c.TimeMs = true, r.now-1000
			r.events(order)
			r.now++
			r.events(c)
		}, "#1 cart:no completed"},
		"ordered with a browser's key": {func(r *recorder, _ string) {
			o := order
			o.Public = true
			r.events(cart)
			r.now += hour
			r.events(o)
		}, "#1 cart:yes wait:done open:no completed"},
		"ordered with a bad order": {func(r *recorder, _ string) {
			r.events(cart)
			r.now += hour
			r.events(orderEvent("order_placed", "a@x.io", `{"order_id":"1"}`))
		}, "#1 cart:yes wait:done open:no completed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRecorder(t, DefaultSettings())
			var definition map[string]any
			if err := json.Unmarshal(ready.Flows()[0].Definition, &definition); err != nil {
				t.Fatal(err)
			}
			step := definition["steps"].([]any)[3].(map[string]any)
			step["sender"] = "news@muster.local"
			text, err := json.Marshal(definition)
			if err != nil {
				t.Fatal(err)
			}
			flow := r.flow(string(text))
			c.play(r, flow)
			r.now += 4*hour + 1
			r.continueOnce()
			r.rest()
			r.expectEnrolment(flow, r.events(orderEvent("seen", "a@x.io", `{}`)).Events[0].Profile, c.want)
		})
	}
}

// TestR1OpenCartBeginsWithVersion25: a record of older rules whose flow asks for an open cart, or
// sends a template with named parameters, is refused, as it was by the builds of that time.
func TestR1OpenCartBeginsWithVersion25(t *testing.T) {
	t.Parallel()
	definition := json.RawMessage(`{"name":"x","steps":[{"id":"a","type":"condition","open_cart":true,"if":{"kind":"activity","event":"seen"},"yes":null,"no":null}]}`)
	d := newDurableUnder(t, DefaultSettings(), 24)
	d.refuses("open_cart", automation.CommandCreate, automation.Save{Definition: definition})
	named := json.RawMessage(`{"name":"x","steps":[{"id":"a","type":"whatsapp","template":"t","language":"en","named_parameters":{"name":"x"}}]}`)
	d.refuses("named_parameters", automation.CommandCreate, automation.Save{Definition: named})
	d.rules(ApplyVersion)
	d.must(automation.CommandCreate, automation.Save{Definition: definition})
	d.must(automation.CommandCreate, automation.Save{Definition: named})
}
