package segment

import (
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/rawjson"
)

var leafKinds = []Kind{KindActivity, KindAttribute, KindConsent, KindList, KindSegment}

// node reads a group or a leaf. depth is 1 at the root.
func (d *decoder) node(path string, raw []byte, depth int) (*Node, error) {
	o, err := jsonform.ReadObject(path, raw)
	if err != nil {
		return nil, err
	}
	if o.Get("include_anonymous") != nil {
		return nil, jsonform.Faultf(o.At("include_anonymous"), "must stand at the root of a definition, not in a condition; it is about all members")
	}
	return d.object(o, depth)
}

// object reads a group or a leaf whose fields are known.
func (d *decoder) object(o *jsonform.Object, depth int) (*Node, error) {
	d.conditions++
	if depth > d.limits.Depth {
		return nil, jsonform.Faultf(o.Path, "must not be nested deeper than %d levels", d.limits.Depth)
	}
	if o.Get("kind") == nil {
		if o.Get("match") != nil || o.Get("conditions") != nil {
			return d.group(o, depth)
		}
		return nil, jsonform.Faultf(o.At("kind"), "must be one of %s, or the condition must be a group "+
			"with the fields match and conditions", jsonform.Choice(leafKinds))
	}
	kind, err := jsonform.OneOf(o, "kind", append(leafKinds[:len(leafKinds):len(leafKinds)], KindGroup))
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
		if n.Attribute, n.Activity, err = d.attribute(o); n.Activity != nil {
			n.Kind = KindActivity
		}
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

func (d *decoder) group(o *jsonform.Object, depth int) (*Node, error) {
	if err := o.Only("a group", "kind", "match", "conditions"); err != nil {
		return nil, err
	}
	match, err := jsonform.OneOf(o, "match", []Match{MatchAll, MatchAny})
	if err != nil {
		return nil, err
	}
	raw, err := o.Need("conditions")
	if err != nil {
		return nil, err
	}
	path := o.At("conditions")
	parts, err := jsonform.Elements(path, raw, d.limits.Conditions)
	switch {
	case err != nil:
		return nil, err
	case len(parts) == 0:
		return nil, jsonform.Faultf(path, "must have at least one condition")
	case len(parts)+d.conditions > d.limits.Conditions:
		// Told before any of them is read, rather than after a fault in one.
		return nil, jsonform.Faultf("", "must have at most %d conditions, groups included; "+
			"split it into segments that refer to each other", d.limits.Conditions)
	}
	n := &Node{Kind: KindGroup, Match: match, Conditions: make([]*Node, 0, len(parts))}
	for i, part := range parts {
		c, err := d.node(jsonform.Index(path, i), part, depth+1)
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
	statuses = []string{StatusSubscribed, StatusPending, StatusUnsubscribed, StatusNeverSubscribed}
)

func consent(o *jsonform.Object) (*Consent, error) {
	if err := o.Only("a consent condition", "kind", "channel", "status", "since", "until"); err != nil {
		return nil, err
	}
	channel, err := jsonform.OneOf(o, "channel", channels)
	if err != nil {
		return nil, err
	}
	status, err := jsonform.OneOf(o, "status", statuses)
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
		return nil, jsonform.Faultf(o.At("until"), "must be after since")
	}
	return c, nil
}

func bound(o *jsonform.Object, name, status string) (*int64, error) {
	raw := o.Get(name)
	if raw == nil {
		return nil, nil
	}
	if status == StatusNeverSubscribed {
		return nil, jsonform.Faultf(o.At(name), "must not be given with %s, which has no subscribe date", status)
	}
	ms, err := instant(o.At(name), raw)
	if err != nil {
		return nil, err
	}
	return &ms, nil
}

func listMembership(o *jsonform.Object) (*List, error) {
	if err := o.Only("a list condition", "kind", "list_id", "member"); err != nil {
		return nil, err
	}
	id, err := o.NeedText("list_id", maxIDBytes)
	if err != nil {
		return nil, err
	}
	member, err := o.Bool("member", true)
	if err != nil {
		return nil, err
	}
	return &List{ListID: id, Member: member}, nil
}

func segmentMembership(o *jsonform.Object) (*Ref, error) {
	if err := o.Only("a segment condition", "kind", "segment_id", "member"); err != nil {
		return nil, err
	}
	id, err := o.NeedText("segment_id", maxIDBytes)
	if err != nil {
		return nil, err
	}
	member, err := o.Bool("member", true)
	if err != nil {
		return nil, err
	}
	return &Ref{SegmentID: id, Member: member}, nil
}

// instant reads a time of a definition.
func instant(path string, raw []byte) (ms int64, err error) {
	s, err := jsonform.Text(path, raw, 64)
	if err != nil {
		return 0, err
	}
	ms, ok := ParseTime(s)
	if !ok {
		return 0, jsonform.Faultf(path, `must be a time, such as "2024-01-31T12:00:00Z" or "2024-01-31"`)
	}
	if ms < minTimeMs || ms > maxTimeMs {
		return 0, jsonform.Faultf(path, "must lie in the years 0001 to 9999 in UTC")
	}
	return ms, nil
}

// lastDays reads the width of a sliding window.
func lastDays(path string, raw []byte) (windowMs int64, err error) {
	if rawjson.KindOf(raw) != rawjson.Number {
		return 0, jsonform.Faultf(path, "must be a number of days, not %s", jsonform.KindName(raw))
	}
	// A number beyond float64 reads as infinite, which is too long as well.
	days, ok := rawjson.Float(raw)
	switch {
	case ok && days <= 0 && !(days == 0 && positive(raw)):
		return 0, jsonform.Faultf(path, "must be greater than 0")
	case !ok && raw[0] == '-':
		return 0, jsonform.Faultf(path, "must be greater than 0")
	case !ok || days > maxLastDays:
		return 0, jsonform.Faultf(path, "must be at most %d", maxLastDays)
	}
	if windowMs = windowOf(days); windowMs < 1 {
		return 0, jsonform.Faultf(path, "must be at least one millisecond, 1/%d of a day", msPerDay)
	}
	return windowMs, nil
}

// positive tells a number above 0 that float64 rounds to 0 from 0 itself.
func positive(raw []byte) bool {
	digits, _ := splitDecimal(string(raw))
	return digits != "" && raw[0] != '-'
}
