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
		About:      "Reminds people by e-mail of what they left in their cart: four hours after cart_updated, unless they ordered meanwhile.",
		Definition: json.RawMessage(abandonedCart),
	}}
}

// The window of the condition is as long as the wait: an order counts that came since the
// person entered.
const abandonedCart = `{
	"name": "Abandoned cart",
	"reentry": "after_exit",
	"trigger": {"type": "event", "event": "cart_updated"},
	"steps": [
		{"id": "wait", "type": "wait", "seconds": 14400, "next": "ordered"},
		{"id": "ordered", "type": "condition", "if": {"kind": "activity", "event": "order_placed", "window": {"last_days": 0.16666666666666666}}, "yes": null, "no": "remind"},
		{"id": "remind", "type": "email", "subject": "You left something in your cart", "body": "<p>Hi {{first_name|there}},</p><p>your cart is waiting for you.</p><p><a href=\"{{unsubscribe_url}}\">Unsubscribe</a></p>", "next": null}
	]
}`
