package segment

import (
	"slices"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/internal/rawjson"
)

// helped judges a profile with the exported helpers on stored bytes, as the
// engines do: the second opinion beside the oracle.
func helped(n *Node, p *NaiveProfile, atMs int64, refs func(string) (*Node, bool), depth int) bool {
	if depth > 4 { // a segment that leads back to itself has no members
		return false
	}
	facts := p.Facts()
	return n.Admits(p.Anonymous) && n.Eval(func(leaf *Node) bool {
		switch leaf.Kind {
		case KindAttribute:
			return leaf.Attribute.Match(facts, atMs)
		case KindConsent:
			return leaf.Consent.Match(facts)
		}
		var holds bool
		switch leaf.Kind {
		case KindList:
			holds = slices.Contains(p.Lists, leaf.List.ListID)
		case KindSegment:
			other, ok := refs(leaf.Segment.SegmentID)
			holds = ok && helped(other, p, atMs, refs, depth+1)
		case KindActivity:
			holds = helpedActivity(leaf.Activity, p.Events, atMs)
		}
		return holds != leaf.Negated()
	})
}

// helpedActivity ignores did.
func helpedActivity(a *Activity, events []NaiveEvent, atMs int64) bool {
	var matching, numbers uint64
	var sum, low, high Int128
	distinct := map[string]bool{}
next:
	for _, e := range events {
		if !OfType(a.Event, e.Type, e.Sent) || e.TimeMs > atMs || a.WindowMs > 0 && e.TimeMs <= atMs-a.WindowMs {
			continue
		}
		for i := range a.Where {
			if !a.Where[i].Match(e.Properties, atMs) {
				continue next
			}
		}
		matching++
		if a.Aggregate == nil {
			continue
		}
		raw, _ := rawjson.Lookup(e.Properties, a.Aggregate.Property)
		f, isNumber := rawjson.Float(raw)
		switch rawjson.KindOf(raw) {
		case rawjson.Number:
			distinct[string(appendFloat(nil, f+0))] = true
		case rawjson.String, rawjson.True, rawjson.False:
			distinct[string(raw)] = true
		}
		if m, ok := MicrosOf(f); isNumber && ok {
			v := int128.From(m)
			sum = sum.Add(v)
			if numbers == 0 || v.Cmp(low) < 0 {
				low = v
			}
			if numbers == 0 || v.Cmp(high) > 0 {
				high = v
			}
			numbers++
		}
	}
	count := func(n uint64) Int128 { v, _ := int128.From(MicrosPerUnit).MulUint64(n); return v }
	switch {
	case matching == 0:
		return a.HoldsForNone()
	case a.Aggregate == nil:
		return a.Count.Holds(count(matching))
	}
	c := &a.Aggregate.Compare
	switch a.Aggregate.Fn {
	case FnSum:
		return c.Holds(sum)
	case FnDistinct:
		return c.Holds(count(uint64(len(distinct))))
	case FnAvg:
		return numbers > 0 && c.HoldsRatio(sum, numbers)
	case FnMin:
		return numbers > 0 && c.Holds(low)
	}
	return numbers > 0 && c.Holds(high)
}
