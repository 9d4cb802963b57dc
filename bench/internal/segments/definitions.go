package segments

import (
	"fmt"

	"github.com/musterhq/muster/bench/internal/condition"
)

// definition is a segment to be saved. %s in the text stands for the ids of the
// segments in refs.
type definition struct {
	name, text string
	refs       []int
}

func inSegment(member bool) string {
	return fmt.Sprintf(`{"kind":"segment","segment_id":"%%s","member":%t}`, member)
}

// liveDefinitions are the 20 segments that are live while ingest and counts are
// measured.
func liveDefinitions() []definition {
	return []definition{
		{name: "bought", text: condition.Activity("purchased")},
		{name: "viewed pages 3 times in a week", text: condition.Activity("page_viewed", condition.LastDays(7), condition.Count(">=", 3))},
		{name: "bought nothing in 30 days", text: condition.Activity("purchased", condition.LastDays(30), condition.Count("=", 0))},
		{name: "viewed at most 2 items in 14 days", text: condition.Activity("item_viewed", condition.LastDays(14), condition.Count("<=", 2))},
		{name: "spent 100 in all", text: condition.Activity("purchased", condition.Aggregate("sum", "value", ">=", 100))},
		{name: "spent over 60 in 30 days", text: condition.Activity("purchased", condition.LastDays(30), condition.Aggregate("sum", "value", ">", 60))},
		{name: "average below 40", text: condition.Activity("purchased", condition.Aggregate("avg", "value", "<", 40))},
		{name: "least below 5 in 60 days", text: condition.Activity("purchased", condition.LastDays(60), condition.Aggregate("min", "value", "<", 5))},
		{name: "largest 95 or more", text: condition.Activity("purchased", condition.Aggregate("max", "value", ">=", 95))},
		{name: "3 different items in 10 days", text: condition.Activity("item_viewed", condition.LastDays(10), condition.Aggregate("distinct", "product", ">=", 3))},
		{name: "bought twice in EUR", text: condition.Activity("purchased", condition.Where("currency", "=", `"EUR"`), condition.Count(">=", 2))},
		{name: "sku-1 to cart in 3 days", text: condition.Activity("cart_added", condition.LastDays(3), condition.Where("product", "starts_with", `"sku-1"`))},
		{name: "on plan pro", text: condition.Attribute("attributes.plan", "=", `"pro"`)},
		{name: "in DE or FR and active today", text: condition.All(condition.Attribute("geo.country", "in", `["DE","FR"]`), condition.Activity("page_viewed", condition.LastDays(1)))},
		{name: "new and never bought", text: condition.All(condition.Attribute("created_at", "in_last_days", "7"), condition.Activity("purchased", `"did":false`))},
		{name: "cart in 2 days or searched twice in 10", text: condition.Any(condition.Activity("cart_added", condition.LastDays(2)), condition.Activity("searched", condition.LastDays(10), condition.Count(">=", 2)))},
		{name: "bought, seldom seen", text: condition.All(inSegment(true), inSegment(false)), refs: []int{0, 1}},
		{name: "cart left behind", text: condition.All(condition.Activity("cart_added", condition.LastDays(3)), condition.Activity("purchased", `"did":false`, condition.LastDays(3)))},
		{name: "paying, spent 100", text: condition.All(condition.Attribute("attributes.plan", "!=", `"free"`), inSegment(true)), refs: []int{4}},
		{name: "40 or older, no SMS consent", text: condition.All(condition.Attribute("attributes.age", ">=", "40"),
			`{"kind":"consent","channel":"sms","status":"never_subscribed"}`)},
	}
}

// probe is a definition that is built and deleted again to see how long that
// takes. No live definition shares a condition with it.
type probe struct{ kind, text string }

func probes() []probe {
	return []probe{
		{"count", condition.Activity("purchased", condition.Where("quantity", ">=", "3"), condition.Count(">=", 2))},
		{"windowed count", condition.Activity("item_viewed", condition.LastDays(21), condition.Count(">=", 2))},
		{"sum", condition.Activity("purchased", condition.Where("currency", "=", `"EUR"`), condition.Aggregate("sum", "value", ">=", 50))},
		{"attribute", condition.Attribute("attributes.age", "<", "30")},
	}
}

// knownPreview has no condition that no live definition has.
func knownPreview() string {
	return wholePreview("purchased", 7)
}

// wholePreview is asked from history alone, or is known. Other event types and windows make
// conditions that were never asked.
func wholePreview(did string, days int) string {
	return condition.All(condition.Activity(did), condition.Activity("page_viewed", condition.LastDays(float64(days)), condition.Count(">=", 3)), condition.Attribute("attributes.plan", "=", `"pro"`))
}

// wholePreviews are as many previews without a common condition on events.
func wholePreviews() []string {
	return []string{wholePreview("purchased", 7), wholePreview("cart_added", 8), wholePreview("item_viewed", 9)}
}

// unknownPreviews each have one condition that no live definition has, and none of the
// others.
func unknownPreviews() (out []string) {
	for days := range 3 {
		out = append(out, condition.All(condition.Activity("purchased"), condition.Activity("searched", condition.LastDays(float64(5+days)), condition.Count(">=", 2))))
	}
	return out
}

// scaleDefinition is the i-th of many segments on one event type.
func scaleDefinition(event string, i int) string {
	n := i/4 + 1
	switch i % 4 {
	case 0:
		return condition.Activity(event, condition.Count(">=", n))
	case 1:
		return condition.Activity(event, condition.LastDays(float64(n)), condition.Count(">=", 2))
	case 2:
		return condition.Activity(event, condition.Aggregate("sum", "value", ">=", float64(10*n)))
	}
	return condition.Activity(event, condition.Where("product", "=", fmt.Sprintf("%q", fmt.Sprintf("sku-%d", n))))
}
