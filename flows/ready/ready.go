// Package ready has definitions of flows that are ready to be made: they can be published as
// they are, but for the sender of their messages where the account has no sender of its own.
package ready

import "encoding/json"

// Flow is a definition and what it is for.
type Flow struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	About      string          `json:"about"`
	Definition json.RawMessage `json:"definition"`
}

// Flows are all of them.
func Flows() []Flow {
	return []Flow{{
		ID: "abandoned_cart", Name: "Abandoned cart",
		About:      "Reminds people by e-mail of what they left in their cart: four hours after cart_updated, unless they ordered within a day or emptied the cart (a cart with a total of 0).",
		Definition: json.RawMessage(abandonedCart),
	}}
}

// The condition asks for a day, longer than the wait: an order has a time of its own, which may
// be before the cart's record, and a flow that was paused goes on late. A cart with a total of
// 0 is empty.
const abandonedCart = `{
	"name": "Abandoned cart",
	"reentry": "after_exit",
	"trigger": {"type": "event", "event": "cart_updated", "where": [{"property": "total", "op": "!=", "value": 0}]},
	"steps": [
		{"id": "wait", "type": "wait", "seconds": 14400, "next": "ordered"},
		{"id": "ordered", "type": "condition", "if": {"match": "any", "conditions": [
			{"kind": "activity", "event": "order_placed", "window": {"last_days": 1}},
			{"kind": "activity", "event": "cart_updated", "window": {"last_days": 0.25}, "where": [{"property": "total", "op": "=", "value": 0}]}]}, "yes": null, "no": "remind"},
		{"id": "remind", "type": "email", "subject": "You left something in your cart", "body": "<p>Hi {{first_name|there}},</p><p>your cart is waiting for you.</p><p><a href=\"{{unsubscribe_url}}\">Unsubscribe</a></p>", "next": null}
	]
}`
