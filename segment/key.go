package segment

import (
	"slices"

	"github.com/musterhq/muster/internal/int128"
)

// Key names a leaf by what it asks, however it was written. Two leaves with
// one key hold for the same profiles at every time once their negation
// ([Node.Negated]) is taken off. The key of a group is its canonical text.
func (n *Node) Key() string {
	switch n.Kind {
	case KindActivity:
		return n.Activity.Key()
	case KindAttribute:
		return n.Attribute.Key()
	case KindConsent:
		return n.Consent.Key()
	case KindList:
		return n.List.Key()
	case KindSegment:
		return n.Segment.Key()
	}
	return string(n.Canonical())
}

// Negated reports whether the leaf is the complement of the leaf its key stands
// for: did or member is false.
func (n *Node) Negated() bool {
	switch n.Kind {
	case KindActivity:
		return !n.Activity.Did
	case KindList:
		return !n.List.Member
	case KindSegment:
		return !n.Segment.Member
	}
	return false
}

// Key is the condition's canonical text without did. Comparisons that mean the
// same are written the same: a list of one value as =, between of equal bounds
// as =, and for counts > 2 as >= 3 and < 3 as <= 2.
func (a *Activity) Key() string {
	k := *a
	k.Did = true
	where := make([]Predicate, len(a.Where))
	for i := range a.Where {
		where[i] = a.Where[i].plain()
	}
	k.Where = normalWhere(where)
	if a.Aggregate != nil {
		g := *a.Aggregate
		g.Compare = g.Compare.plain(false)
		k.Aggregate = &g
	} else {
		c := a.Count.plain(true)
		k.Count = &c
	}
	return string(appendActivity(nil, &k))
}

// Key is the condition's canonical text, with comparisons written as in
// [Activity.Key].
func (a *Attribute) Key() string {
	return string(appendAttribute(nil, &Attribute{Field: a.Field, Predicate: a.Predicate.plain()}))
}

// Key is the condition's canonical text.
func (c *Consent) Key() string { return string(appendConsent(nil, c)) }

// Key is the condition's canonical text without member.
func (l *List) Key() string {
	return string(appendMembership(nil, KindList, "list_id", l.ListID, true))
}

// Key is the condition's canonical text without member.
func (r *Ref) Key() string {
	return string(appendMembership(nil, KindSegment, "segment_id", r.SegmentID, true))
}

// plain is an equal predicate in the simplest words.
func (p Predicate) plain() Predicate {
	p.Values = slices.Clone(p.Values)
	p.normal()
	var ok bool
	if p.Op, ok = plainOp(p.Op, len(p.Values), func() bool { return p.Values[0] == p.Values[1] }); ok {
		p.Values = p.Values[:1]
	}
	return p
}

// plain is an equal comparison in the simplest words; whole says that only
// whole numbers are compared.
func (c Compare) plain(whole bool) Compare {
	c.Micros = slices.Clone(c.Micros)
	c.normal()
	var ok bool
	if c.Op, ok = plainOp(c.Op, len(c.Micros), func() bool { return c.Micros[0] == c.Micros[1] }); ok {
		c.Micros = c.Micros[:1]
	}
	one := int128.From(MicrosPerUnit)
	switch {
	case whole && c.Op == OpGt:
		c.Op, c.Micros[0] = OpGe, c.Micros[0].Add(one)
	case whole && c.Op == OpLt:
		c.Op, c.Micros[0] = OpLe, c.Micros[0].Sub(one)
	}
	return c
}

// plainOp is the operator that says the same with one value, if one is enough.
func plainOp(op Op, values int, same func() bool) (Op, bool) {
	switch {
	case op == OpIn && values == 1, op == OpBetween && same():
		return OpEq, true
	case op == OpNotIn && values == 1:
		return OpNe, true
	}
	return op, false
}
