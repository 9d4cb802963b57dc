package editor

import (
	"fmt"

	"github.com/musterhq/muster/bench/internal/condition"
)

// known are the conditions that saved segments have, so that the engine knows them.
func known() []string {
	return []string{
		condition.Activity("purchased"),
		condition.Activity("page_viewed", condition.LastDays(30), condition.Count(">=", 2)),
		condition.Activity("item_viewed", condition.LastDays(60), condition.Count(">=", 1)),
		condition.Activity("purchased", condition.Aggregate("sum", "value", ">=", 50)),
		condition.Activity("cart_added", condition.LastDays(45)),
		condition.Attribute("attributes.plan", "in", `["plus","pro"]`),
		condition.Attribute("geo.country", "in", `["DE","FR","NL"]`),
	}
}

// fresh are three conditions that were not asked before: n makes them others.
func fresh(n, threshold int) []string {
	return []string{
		condition.Activity("item_viewed", condition.LastDays(90), condition.Where("product", "starts_with", fmt.Sprintf(`"sku-%d"`, 1+n%49)), condition.Count(">=", 1+threshold%2)),
		condition.Activity("searched", condition.LastDays(30+float64(n)/8), condition.Count(">=", 1+threshold%3)),
		condition.Activity("purchased", condition.Where("category", "=", fmt.Sprintf(`"cat-%d"`, n%20)), condition.Aggregate("sum", "value", ">", float64(10*n/20+threshold))),
	}
}

// definition is the n-th of ten conditions, three of them fresh: "all of these, or any of
// those", as people write them.
func definition(n, threshold int) string {
	k, f := known(), fresh(n, threshold)
	return condition.Any(condition.All(k[1], k[2], k[5], f[0]), condition.All(k[0], k[3], k[6], f[1]), condition.All(k[4], f[2]))
}
