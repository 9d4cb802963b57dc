package segment

import (
	"bytes"
	"slices"
	"strings"
)

// normal sorts and thins out what has no order.
func (c *Compare) normal() {
	if c.Op == OpIn || c.Op == OpNotIn {
		slices.SortFunc(c.Micros, Int128.Cmp)
		c.Micros = slices.Compact(c.Micros)
	}
}

func (p *Predicate) normal() {
	if p.Op == OpIn || p.Op == OpNotIn {
		slices.SortFunc(p.Values, compareValues)
		p.Values = slices.Compact(p.Values)
	}
}

// compareValues orders values, those of different kinds by kind.
func compareValues(a, b Value) int {
	switch {
	case a.Kind != b.Kind:
		return int(a.Kind) - int(b.Kind)
	case a.Kind == ValueString:
		return strings.Compare(a.Str, b.Str)
	case a.Num < b.Num || !a.Bool && b.Bool:
		return -1
	case a.Num > b.Num || a.Bool && !b.Bool:
		return 1
	}
	return 0
}

// normalWhere sorts filters, which must all hold, by their text and drops
// repeated ones.
func normalWhere(where []Predicate) []Predicate {
	type filter struct {
		text []byte
		p    Predicate
	}
	filters := make([]filter, len(where))
	for i := range where {
		filters[i] = filter{appendFilter(nil, &where[i]), where[i]}
	}
	slices.SortStableFunc(filters, func(a, b filter) int { return bytes.Compare(a.text, b.text) })
	filters = slices.CompactFunc(filters, func(a, b filter) bool { return bytes.Equal(a.text, b.text) })
	var out []Predicate
	for _, f := range filters {
		out = append(out, f.p)
	}
	return out
}
