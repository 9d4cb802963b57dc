package segments

import (
	"fmt"
	"strings"
)

// definition is a segment to be saved. %s in the text stands for the ids of the
// segments in refs.
type definition struct {
	name, text string
	refs       []int
}

func activity(event, rest string) string {
	if rest != "" {
		rest = "," + rest
	}
	return fmt.Sprintf(`{"kind":"activity","event":%q%s}`, event, rest)
}

func lastDays(x float64) string { return fmt.Sprintf(`"window":{"last_days":%g}`, x) }

func count(op string, n int) string { return fmt.Sprintf(`"count":{"op":%q,"value":%d}`, op, n) }

func aggregate(fn, property, op string, n float64) string {
	return fmt.Sprintf(`"aggregate":{"fn":%q,"property":%q,"op":%q,"value":%g}`, fn, property, op, n)
}

func where(property, op, value string) string {
	return fmt.Sprintf(`"where":[{"property":%q,"op":%q,"value":%s}]`, property, op, value)
}

func attribute(field, op, value string) string {
	return fmt.Sprintf(`{"kind":"attribute","field":%q,"op":%q,"value":%s}`, field, op, value)
}

func group(match string, conditions ...string) string {
	return fmt.Sprintf(`{"match":%q,"conditions":[%s]}`, match, strings.Join(conditions, ","))
}

func inSegment(member bool) string {
	return fmt.Sprintf(`{"kind":"segment","segment_id":"%%s","member":%t}`, member)
}

// liveDefinitions are the 20 segments that are live while ingest and counts are
// measured.
func liveDefinitions() []definition {
	return []definition{
		{name: "bought", text: activity("purchased", "")},
		{name: "viewed pages 3 times in a week", text: activity("page_viewed", lastDays(7)+","+count(">=", 3))},
		{name: "bought nothing in 30 days", text: activity("purchased", lastDays(30)+","+count("=", 0))},
		{name: "viewed at most 2 items in 14 days", text: activity("item_viewed", lastDays(14)+","+count("<=", 2))},
		{name: "spent 100 in all", text: activity("purchased", aggregate("sum", "value", ">=", 100))},
		{name: "spent over 60 in 30 days", text: activity("purchased", lastDays(30)+","+aggregate("sum", "value", ">", 60))},
		{name: "average below 40", text: activity("purchased", aggregate("avg", "value", "<", 40))},
		{name: "least below 5 in 60 days", text: activity("purchased", lastDays(60)+","+aggregate("min", "value", "<", 5))},
		{name: "largest 95 or more", text: activity("purchased", aggregate("max", "value", ">=", 95))},
		{name: "3 different items in 10 days", text: activity("item_viewed", lastDays(10)+","+aggregate("distinct", "product", ">=", 3))},
		{name: "bought twice in EUR", text: activity("purchased", where("currency", "=", `"EUR"`)+","+count(">=", 2))},
		{name: "sku-1 to cart in 3 days", text: activity("cart_added", lastDays(3)+","+where("product", "starts_with", `"sku-1"`))},
		{name: "on plan pro", text: attribute("attributes.plan", "=", `"pro"`)},
		{name: "in DE or FR and active today", text: group("all", attribute("geo.country", "in", `["DE","FR"]`), activity("page_viewed", lastDays(1)))},
		{name: "new and never bought", text: group("all", attribute("created_at", "in_last_days", "7"), activity("purchased", `"did":false`))},
		{name: "cart in 2 days or searched twice in 10", text: group("any", activity("cart_added", lastDays(2)), activity("searched", lastDays(10)+","+count(">=", 2)))},
		{name: "bought, seldom seen", text: group("all", inSegment(true), inSegment(false)), refs: []int{0, 1}},
		{name: "cart left behind", text: group("all", activity("cart_added", lastDays(3)), activity("purchased", `"did":false,`+lastDays(3)))},
		{name: "paying, spent 100", text: group("all", attribute("attributes.plan", "!=", `"free"`), inSegment(true)), refs: []int{4}},
		{name: "40 or older, no SMS consent", text: group("all", attribute("attributes.age", ">=", "40"),
			`{"kind":"consent","channel":"sms","status":"never_subscribed"}`)},
	}
}

// probe is a definition that is built and deleted again to see how long that
// takes. No live definition shares a condition with it.
type probe struct{ kind, text string }

func probes() []probe {
	return []probe{
		{"count", activity("purchased", where("quantity", ">=", "3")+","+count(">=", 2))},
		{"windowed count", activity("item_viewed", lastDays(21)+","+count(">=", 2))},
		{"sum", activity("purchased", where("currency", "=", `"EUR"`)+","+aggregate("sum", "value", ">=", 50))},
		{"attribute", attribute("attributes.age", "<", "30")},
	}
}

// Previews: the conditions of the first all belong to live definitions, the
// second has one that no live definition has.
func knownPreview() string {
	return group("all", activity("purchased", ""), activity("page_viewed", lastDays(7)+","+count(">=", 3)), attribute("attributes.plan", "=", `"pro"`))
}

func unknownPreview() string {
	return group("all", activity("purchased", ""), activity("searched", lastDays(5)+","+count(">=", 2)))
}

// scaleDefinition is the i-th of many segments on one event type.
func scaleDefinition(event string, i int) string {
	n := i/4 + 1
	switch i % 4 {
	case 0:
		return activity(event, count(">=", n))
	case 1:
		return activity(event, lastDays(float64(n))+","+count(">=", 2))
	case 2:
		return activity(event, aggregate("sum", "value", ">=", float64(10*n)))
	}
	return activity(event, where("product", "=", fmt.Sprintf("%q", fmt.Sprintf("sku-%d", n))))
}
