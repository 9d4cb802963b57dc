package segment

import (
	"strings"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/internal/rawjson"
)

// Canonical is the definition as JSON in one fixed form: minified, fields in
// one order, defaults left out, numbers shortest, times in UTC. Parsing it
// gives an equal tree.
func (n *Node) Canonical() []byte { return appendNode(nil, n) }

// MarshalJSON is [Node.Canonical].
func (n *Node) MarshalJSON() ([]byte, error) { return n.Canonical(), nil }

func appendNode(dst []byte, n *Node) []byte {
	switch n.Kind {
	case KindActivity:
		return appendActivity(dst, n.Activity)
	case KindAttribute:
		return appendAttribute(dst, n.Attribute)
	case KindConsent:
		return appendConsent(dst, n.Consent)
	case KindList:
		return appendMembership(dst, KindList, "list_id", n.List.ListID, n.List.Member)
	case KindSegment:
		return appendMembership(dst, KindSegment, "segment_id", n.Segment.SegmentID, n.Segment.Member)
	}
	dst = append(dst, `{"match":`...)
	dst = rawjson.AppendString(dst, string(n.Match))
	dst = append(dst, `,"conditions":[`...)
	for i, c := range n.Conditions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendNode(dst, c)
	}
	if n.IncludeAnonymous {
		return append(dst, `],"include_anonymous":true}`...)
	}
	return append(dst, "]}"...)
}

func appendActivity(dst []byte, a *Activity) []byte {
	if a.Event == AnyEvent {
		dst = append(dst, `{"kind":"attribute","field":"event_count",`...)
		return append(appendCompare(dst, a.Count), '}')
	}
	dst = append(dst, `{"kind":"activity","event":`...)
	dst = rawjson.AppendString(dst, a.Event)
	if !a.Did {
		dst = append(dst, `,"did":false`...)
	}
	if a.WindowMs > 0 {
		dst = append(dst, `,"window":{"last_days":`...)
		dst = appendFloat(dst, daysOf(a.WindowMs))
		dst = append(dst, '}')
	}
	if len(a.Where) > 0 {
		dst = AppendWhere(append(dst, `,"where":`...), a.Where)
	}
	if g := a.Aggregate; g != nil {
		dst = append(dst, `,"aggregate":{"fn":`...)
		dst = rawjson.AppendString(dst, string(g.Fn))
		dst = append(dst, `,"property":`...)
		dst = rawjson.AppendString(dst, strings.Join(g.Property, "."))
		dst = append(dst, ',')
		dst = appendCompare(dst, &g.Compare)
		return append(dst, "}}"...)
	}
	if c := a.Count; c.Op != OpGe || c.Micros[0] != int128.From(MicrosPerUnit) {
		dst = append(dst, `,"count":{`...)
		dst = appendCompare(dst, c)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func appendCompare(dst []byte, c *Compare) []byte {
	dst = append(dst, `"op":`...)
	dst = rawjson.AppendString(dst, string(c.Op))
	dst = append(dst, `,"value":`...)
	return appendOperands(dst, c.Op, len(c.Micros), func(dst []byte, i int) []byte {
		return appendThreshold(dst, c.Micros[i])
	})
}

// appendFilter appends an element of where.
func appendFilter(dst []byte, p *Predicate) []byte {
	dst = append(dst, `{"property":`...)
	dst = rawjson.AppendString(dst, strings.Join(p.Path, "."))
	dst = appendPredicate(dst, p)
	return append(dst, '}')
}

func appendAttribute(dst []byte, a *Attribute) []byte {
	dst = append(dst, `{"kind":"attribute","field":`...)
	dst = rawjson.AppendString(dst, a.Field)
	dst = appendPredicate(dst, &a.Predicate)
	return append(dst, '}')
}

func appendPredicate(dst []byte, p *Predicate) []byte {
	dst = append(dst, `,"op":`...)
	dst = rawjson.AppendString(dst, string(p.Op))
	switch p.Op {
	case OpExists, OpNotExists:
		return dst
	case OpInLastDays, OpNotInLastDays:
		dst = append(dst, `,"value":`...)
		return appendFloat(dst, daysOf(p.WindowMs))
	}
	dst = append(dst, `,"value":`...)
	return appendOperands(dst, p.Op, len(p.Values), func(dst []byte, i int) []byte {
		return appendValue(dst, p.Values[i])
	})
}

// appendOperands appends the one value of most operators, or the array of the
// others.
func appendOperands(dst []byte, op Op, n int, operand func(dst []byte, i int) []byte) []byte {
	if op != OpIn && op != OpNotIn && op != OpBetween {
		return operand(dst, 0)
	}
	dst = append(dst, '[')
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = operand(dst, i)
	}
	return append(dst, ']')
}

func appendValue(dst []byte, v Value) []byte {
	switch v.Kind {
	case ValueString:
		return rawjson.AppendString(dst, v.Str)
	case ValueNumber:
		return appendFloat(dst, v.Num)
	}
	if v.Bool {
		return append(dst, "true"...)
	}
	return append(dst, "false"...)
}

func appendConsent(dst []byte, c *Consent) []byte {
	dst = append(dst, `{"kind":"consent","channel":`...)
	dst = rawjson.AppendString(dst, c.Channel)
	dst = append(dst, `,"status":`...)
	dst = rawjson.AppendString(dst, c.Status)
	if c.SinceMs != nil {
		dst = append(dst, `,"since":"`...)
		dst = append(AppendTime(dst, *c.SinceMs), '"')
	}
	if c.UntilMs != nil {
		dst = append(dst, `,"until":"`...)
		dst = append(AppendTime(dst, *c.UntilMs), '"')
	}
	return append(dst, '}')
}

func appendMembership(dst []byte, kind Kind, field, id string, member bool) []byte {
	dst = append(dst, `{"kind":`...)
	dst = rawjson.AppendString(dst, string(kind))
	dst = append(dst, `,"`...)
	dst = append(dst, field...)
	dst = append(dst, `":`...)
	dst = rawjson.AppendString(dst, id)
	if !member {
		dst = append(dst, `,"member":false`...)
	}
	return append(dst, '}')
}
