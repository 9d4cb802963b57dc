package segment

import "github.com/musterhq/muster/internal/jsontext"

var leafKinds = []Kind{KindActivity, KindAttribute, KindConsent, KindList, KindSegment}

// node reads a group or a leaf. depth is 1 at the root.
func (d *decoder) node(path string, raw []byte, depth int) (*Node, error) {
	d.conditions++
	if depth > d.limits.Depth {
		return nil, fault(path, "must not be nested deeper than %d levels", d.limits.Depth)
	}
	o, err := d.object(path, raw)
	if err != nil {
		return nil, err
	}
	if o.get("kind") == nil {
		if o.get("match") != nil || o.get("conditions") != nil {
			return d.group(o, depth)
		}
		return nil, fault(o.at("kind"), "must be one of %s, or the condition must be a group "+
			"with the fields match and conditions", choice(leafKinds))
	}
	kind, err := oneOf(o, "kind", append(leafKinds[:len(leafKinds):len(leafKinds)], KindGroup))
	if err != nil {
		return nil, err
	}
	n := &Node{Kind: kind}
	switch kind {
	case KindGroup:
		return d.group(o, depth)
	case KindActivity:
		n.Activity, err = d.activity(o)
	case KindAttribute:
		n.Attribute, err = d.attribute(o)
	case KindConsent:
		n.Consent, err = consent(o)
	case KindList:
		n.List, err = listMembership(o)
	case KindSegment:
		n.Segment, err = segmentMembership(o)
	}
	if err != nil {
		return nil, err
	}
	return n, nil
}

func (d *decoder) group(o *object, depth int) (*Node, error) {
	if err := o.only("a group", "kind", "match", "conditions"); err != nil {
		return nil, err
	}
	match, err := oneOf(o, "match", []Match{MatchAll, MatchAny})
	if err != nil {
		return nil, err
	}
	raw, err := o.need("conditions")
	if err != nil {
		return nil, err
	}
	path := o.at("conditions")
	parts, err := elements(path, raw, d.limits.Conditions)
	switch {
	case err != nil:
		return nil, err
	case len(parts) == 0:
		return nil, fault(path, "must have at least one condition")
	case len(parts)+d.conditions > d.limits.Conditions:
		// Told before any of them is read, rather than after a fault in one.
		return nil, fault("", "must have at most %d conditions, groups included; "+
			"split it into segments that refer to each other", d.limits.Conditions)
	}
	n := &Node{Kind: KindGroup, Match: match, Conditions: make([]*Node, 0, len(parts))}
	for i, part := range parts {
		c, err := d.node(index(path, i), part, depth+1)
		if err != nil {
			return nil, err
		}
		n.Conditions = append(n.Conditions, c)
	}
	return n, nil
}

// The channels and statuses of consent.
var (
	channels = []string{"email", "sms", "push", "whatsapp", "im", "in_app"}
	statuses = []string{StatusSubscribed, StatusUnsubscribed, StatusNeverSubscribed}
)

func consent(o *object) (*Consent, error) {
	if err := o.only("a consent condition", "kind", "channel", "status", "since", "until"); err != nil {
		return nil, err
	}
	channel, err := oneOf(o, "channel", channels)
	if err != nil {
		return nil, err
	}
	status, err := oneOf(o, "status", statuses)
	if err != nil {
		return nil, err
	}
	c := &Consent{Channel: channel, Status: status}
	if c.SinceMs, err = bound(o, "since", status); err != nil {
		return nil, err
	}
	if c.UntilMs, err = bound(o, "until", status); err != nil {
		return nil, err
	}
	if c.SinceMs != nil && c.UntilMs != nil && *c.SinceMs >= *c.UntilMs {
		return nil, fault(o.at("until"), "must be after since")
	}
	return c, nil
}

func bound(o *object, name, status string) (*int64, error) {
	raw := o.get(name)
	if raw == nil {
		return nil, nil
	}
	if status == StatusNeverSubscribed {
		return nil, fault(o.at(name), "must not be given with %s, which has no subscribe date", status)
	}
	ms, err := instant(o.at(name), raw)
	if err != nil {
		return nil, err
	}
	return &ms, nil
}

func listMembership(o *object) (*List, error) {
	if err := o.only("a list condition", "kind", "list_id", "member"); err != nil {
		return nil, err
	}
	id, err := o.needText("list_id", maxIDBytes)
	if err != nil {
		return nil, err
	}
	member, err := o.boolean("member", true)
	if err != nil {
		return nil, err
	}
	return &List{ListID: id, Member: member}, nil
}

func segmentMembership(o *object) (*Ref, error) {
	if err := o.only("a segment condition", "kind", "segment_id", "member"); err != nil {
		return nil, err
	}
	id, err := o.needText("segment_id", maxIDBytes)
	if err != nil {
		return nil, err
	}
	member, err := o.boolean("member", true)
	if err != nil {
		return nil, err
	}
	return &Ref{SegmentID: id, Member: member}, nil
}

// instant reads a time of a definition.
func instant(path string, raw []byte) (ms int64, err error) {
	s, err := text(path, raw, 64)
	if err != nil {
		return 0, err
	}
	ms, ok := ParseTime(s)
	if !ok {
		return 0, fault(path, `must be a time, such as "2024-01-31T12:00:00Z" or "2024-01-31"`)
	}
	if ms < minTimeMs || ms > maxTimeMs {
		return 0, fault(path, "must lie in the years 0001 to 9999 in UTC")
	}
	return ms, nil
}

// lastDays reads the width of a sliding window.
func lastDays(path string, raw []byte) (windowMs int64, err error) {
	if jsontext.KindOf(raw) != jsontext.Number {
		return 0, fault(path, "must be a number of days, not %s", kindName(raw))
	}
	// A number beyond float64 reads as infinite, which is too long as well.
	days, ok := jsontext.Float(raw)
	switch {
	case ok && days <= 0 && !(days == 0 && positive(raw)):
		return 0, fault(path, "must be greater than 0")
	case !ok && raw[0] == '-':
		return 0, fault(path, "must be greater than 0")
	case !ok || days > maxLastDays:
		return 0, fault(path, "must be at most %d", maxLastDays)
	}
	if windowMs = windowOf(days); windowMs < 1 {
		return 0, fault(path, "must be at least one millisecond, 1/%d of a day", msPerDay)
	}
	return windowMs, nil
}

// positive tells a number above 0 that float64 rounds to 0 from 0 itself.
func positive(raw []byte) bool {
	digits, _ := splitDecimal(string(raw))
	return digits != "" && raw[0] != '-'
}
