package segment

import "github.com/musterhq/muster/internal/jsonform"

// Parse reads a definition from JSON. It is strict: unknown fields, repeated
// keys, wrong types and everything beyond the limits are refused. The error is
// a *[DefinitionError] for the first fault found; the result is normal (see the
// package comment).
func Parse(data []byte, limits Limits) (*Node, error) {
	d := &decoder{limits: limits.withDefaults()}
	if len(data) > d.limits.Bytes {
		return nil, jsonform.Faultf("", "must have at most %d bytes and %d conditions, it has %d bytes; "+
			"split it into segments that refer to each other", d.limits.Bytes, d.limits.Conditions, len(data))
	}
	text, err := jsonform.Compact(data)
	if err != nil {
		return nil, err
	}
	return d.root(text)
}

// root reads the root of a definition. One that includes anonymous profiles is a group:
// what it asks of them is written beside its conditions.
func (d *decoder) root(text []byte) (*Node, error) {
	o, err := jsonform.ReadObject("", text)
	if err != nil {
		return nil, err
	}
	include, err := o.Bool("include_anonymous", false)
	if err != nil {
		return nil, err
	}
	n, err := d.object(o.Without("include_anonymous"), 1)
	if err != nil {
		return nil, err
	}
	if include && n.Kind != KindGroup {
		n = &Node{Kind: KindGroup, Match: MatchAll, Conditions: []*Node{n}}
	}
	n.IncludeAnonymous = include
	return n, nil
}

// decoder walks the compacted text of one definition.
type decoder struct {
	limits     Limits
	conditions int // seen so far
}
