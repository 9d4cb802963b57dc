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
		About:      "Reminds people by e-mail of what they left in their cart: four hours after cart_updated, unless they have ordered since or emptied the cart. A cart older than a day is not reminded of.",
		Definition: json.RawMessage(abandonedCart),
	}}
}

// Both conditions ask for an open cart. The first keeps a cart that was emptied without a total from a wait, in
// which the next cart would be reminded of too early. A flow that was paused continues late: then
// the cart has to be of this day as well. A cart has a time of its own, so that the day is longer
// than the wait.
const abandonedCart = `{
	"name": "Abandoned cart",
	"reentry": "after_exit",
	"trigger": {"type": "event", "event": "cart_updated", "where": [{"property": "total", "op": "!=", "value": 0}]},
	"steps": [
		{"id": "cart", "type": "condition", "open_cart": true, "if": {"kind": "activity", "event": "cart_updated", "window": {"last_days": 1}}, "yes": "wait", "no": null},
		{"id": "wait", "type": "wait", "seconds": 14400, "next": "open"},
		{"id": "open", "type": "condition", "open_cart": true, "if": {"kind": "activity", "event": "cart_updated", "window": {"last_days": 1}}, "yes": "remind", "no": null},
		{"id": "remind", "type": "email", "subject": "You left something in your cart", "body": "<p>Hi {{first_name|there}},</p><p>your cart is waiting for you.</p><p><a href=\"{{unsubscribe_url}}\">Unsubscribe</a></p>", "next": null}
	]
}`
