package demo

type object = map[string]any

func lastDays(n float64) object { return object{"last_days": n} }

// purchases is a condition on what a person bought.
func purchases(more object) object {
	out := object{"kind": "activity", "event": "item_purchased"}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func all(conditions ...any) object { return object{"match": "all", "conditions": conditions} }

// segments are saved in this order; the last one is what a flow wins back.
func segments(list string) []object {
	return []object{
		{"name": "Bought in the last 30 days", "definition": purchases(object{"window": lastDays(30)})},
		{"name": "Spent 300 or more in 30 days", "definition": purchases(object{"window": lastDays(30), "aggregate": object{"fn": "sum", "property": "value", "op": ">=", "value": 300}})},
		{"name": "Cart left behind", "definition": all(
			object{"kind": "activity", "event": "item_added_to_cart", "window": lastDays(3)},
			purchases(object{"did": false, "window": lastDays(3)}))},
		{"name": "Gold customers in Germany or Austria", "definition": all(
			object{"kind": "attribute", "field": "attributes.tier", "op": "=", "value": "gold"},
			object{"kind": "attribute", "field": "geo.country", "op": "in", "value": []string{"DE", "AT"}})},
		{"name": "Reads the newsletter", "definition": all(
			object{"kind": "list", "list_id": list},
			object{"kind": "consent", "channel": "email", "status": "subscribed"},
			object{"kind": "activity", "event": "newsletter_clicked", "window": lastDays(14)})},
		{"name": "Looked three times, bought nothing", "definition": all(
			object{"kind": "activity", "event": "product_viewed", "window": lastDays(7), "count": object{"op": ">=", "value": 3}},
			purchases(object{"did": false}))},
		{"name": "Bought twice, away for 3 weeks", "definition": all(
			purchases(object{"count": object{"op": ">=", "value": 2}}),
			object{"kind": "activity", "event": "page_viewed", "did": false, "window": lastDays(21)})},
	}
}

const (
	sender   = "shop@muster.local"
	footer   = `<p style="color:#777">You get this because you subscribed. <a href="{{unsubscribe_url}}">Unsubscribe</a></p>`
	saleHTML = `<h1>Spring is here, {{first_name|friend}}</h1><p>20 % off everything that grows, until Sunday.</p>` +
		`<p><a href="https://shop.example/sale">To the sale</a> or <a href="https://shop.example/new">see what is new</a></p>` + footer
	cartHTML = `<p>Hi {{first_name|friend}},</p><p>your cart still waits for you.</p><p><a href="https://shop.example/cart">Back to the cart</a></p>` + footer
	backHTML = `<p>Hi {{first_name|friend}},</p><p>we have not seen each other for a while. Here is what is new since.</p><p><a href="https://shop.example/new">Have a look</a></p>` + footer
)

func templates() []object {
	return []object{
		{"name": "Cart reminder", "subject": "You left something behind", "html": cartHTML},
		{"name": "We miss you", "subject": "What is new, {{first_name|friend}}", "html": backHTML},
	}
}

// flows remind of carts, and win people back. In both, enrolments are always
// waiting.
func flows(cart, back, awaySegment string) []object {
	return []object{
		{"name": "Cart reminder", "reentry": "after_exit", "trigger": object{"type": "event", "event": "item_added_to_cart"}, "steps": []object{
			{"id": "patience", "type": "wait", "seconds": 3600, "next": "bought"},
			{"id": "bought", "type": "condition", "if": purchases(object{"window": lastDays(1)}), "yes": nil, "no": "remind"},
			{"id": "remind", "type": "email", "template_id": cart, "next": nil},
		}},
		{"name": "Win back", "trigger": object{"type": "segment_entered", "segment_id": awaySegment}, "steps": []object{
			{"id": "settle", "type": "wait", "seconds": 86_400, "next": "draw"},
			{"id": "draw", "type": "split", "branches": []object{{"weight": 1, "next": "mail"}, {"weight": 1, "next": "mark"}}},
			{"id": "mail", "type": "email", "template_id": back, "next": "later"},
			{"id": "later", "type": "wait", "seconds": 3 * 86_400, "next": "mark"},
			{"id": "mark", "type": "tag", "add": []string{"asked_back"}, "next": nil},
		}},
	}
}
