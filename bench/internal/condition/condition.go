// Package condition writes the conditions of segment definitions as JSON.
package condition

import (
	"fmt"
	"strings"
)

// Activity is a condition on events of a type. More are its other fields, as the
// functions below write them.
func Activity(event string, more ...string) string {
	return fmt.Sprintf(`{"kind":"activity","event":%q%s}`, event, strings.Join(append([]string{""}, more...), ","))
}

// LastDays is the window of an activity.
func LastDays(x float64) string { return fmt.Sprintf(`"window":{"last_days":%g}`, x) }

// Count is how many events there must be.
func Count(op string, n int) string { return fmt.Sprintf(`"count":{"op":%q,"value":%d}`, op, n) }

// Aggregate is what a property of the events must come to.
func Aggregate(fn, property, op string, n float64) string {
	return fmt.Sprintf(`"aggregate":{"fn":%q,"property":%q,"op":%q,"value":%g}`, fn, property, op, n)
}

// Where is what a property of each event must be; the value is JSON.
func Where(property, op, value string) string {
	return fmt.Sprintf(`"where":[{"property":%q,"op":%q,"value":%s}]`, property, op, value)
}

// Attribute is a condition on a field of a profile; the value is JSON.
func Attribute(field, op, value string) string {
	return fmt.Sprintf(`{"kind":"attribute","field":%q,"op":%q,"value":%s}`, field, op, value)
}

// All is met where all of the conditions are.
func All(conditions ...string) string { return group("all", conditions) }

// Any is met where one of the conditions is.
func Any(conditions ...string) string { return group("any", conditions) }

func group(match string, conditions []string) string {
	return fmt.Sprintf(`{"match":%q,"conditions":[%s]}`, match, strings.Join(conditions, ","))
}
