package editor

import (
	"encoding/json"
	"fmt"
)

type object = map[string]any

func activity(event string, more object) object {
	out := object{"kind": "activity", "event": event}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func days(n float64) object { return object{"last_days": n} }

func where(property, op string, value any) []object {
	return []object{{"property": property, "op": op, "value": value}}
}

func count(op string, n int) object { return object{"op": op, "value": n} }

func attribute(field, op string, value any) object {
	return object{"kind": "attribute", "field": field, "op": op, "value": value}
}

// known are the conditions that saved segments have, so that the engine knows them.
func known() []object {
	return []object{
		activity("purchased", object{}),
		activity("page_viewed", object{"window": days(30), "count": count(">=", 2)}),
		activity("item_viewed", object{"window": days(60), "count": count(">=", 1)}),
		activity("purchased", object{"aggregate": object{"fn": "sum", "property": "value", "op": ">=", "value": 50}}),
		activity("cart_added", object{"window": days(45)}),
		attribute("attributes.plan", "in", []string{"plus", "pro"}),
		attribute("geo.country", "in", []string{"DE", "FR", "NL"}),
	}
}

// fresh are three conditions that were not asked before: n makes them others.
func fresh(n, threshold int) []object {
	return []object{
		activity("item_viewed", object{"window": days(90), "where": where("product", "starts_with", fmt.Sprintf("sku-%d", 1+n%49)), "count": count(">=", 1+threshold%2)}),
		activity("searched", object{"window": days(30 + float64(n)/8), "count": count(">=", 1+threshold%3)}),
		activity("purchased", object{"where": where("category", "=", fmt.Sprintf("cat-%d", n%20)), "aggregate": object{"fn": "sum", "property": "value", "op": ">", "value": 10*n/20 + threshold}}),
	}
}

// definition is the n-th of ten conditions, three of them fresh: "all of these, or any of
// those", as people write them.
func definition(n, threshold int) (string, error) {
	k, f := known(), fresh(n, threshold)
	text, err := json.Marshal(object{"match": "any", "conditions": []any{
		object{"match": "all", "conditions": []object{k[1], k[2], k[5], f[0]}},
		object{"match": "all", "conditions": []object{k[0], k[3], k[6], f[1]}},
		object{"match": "all", "conditions": []object{k[4], f[2]}},
	}})
	return string(text), err
}
