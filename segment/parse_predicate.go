package segment

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/rawjson"
)

// fieldType says what a field of a condition may be compared with.
type fieldType struct {
	what string
	ops  []Op
	// only, when set, is the one kind of value, words the only texts.
	only  ValueKind
	words []string
	// instants marks a field that is a time: its values are times throughout.
	instants bool
	// normal brings a value into the form the field is compared in.
	normal func(string) string
}

var (
	anyOps = []Op{
		OpEq, OpNe, OpGt, OpGe, OpLt, OpLe, OpIn, OpNotIn, OpContains, OpNotContains, OpStartsWith, OpEndsWith,
		OpExists, OpNotExists, OpBetween, OpBefore, OpAfter, OpInLastDays, OpNotInLastDays,
	}
	textOps = []Op{
		OpEq, OpNe, OpGt, OpGe, OpLt, OpLe, OpIn, OpNotIn, OpContains, OpNotContains, OpStartsWith, OpEndsWith,
		OpExists, OpNotExists, OpBetween,
	}
	timeOps = []Op{
		OpEq, OpNe, OpGt, OpGe, OpLt, OpLe, OpExists, OpNotExists, OpBetween,
		OpBefore, OpAfter, OpInLastDays, OpNotInLastDays,
	}

	wordOps = []Op{OpEq, OpNe, OpIn, OpNotIn, OpExists, OpNotExists}

	freeField  = fieldType{what: "a property", ops: anyOps}
	status     = fieldType{what: "a status", ops: wordOps, only: ValueString, words: ContactStatuses}
	yesOrNo    = fieldType{what: "a boolean", ops: []Op{OpEq, OpNe}, only: ValueBool}
	profileOps = map[string]*fieldType{
		FieldEmail:      {what: "an e-mail address", ops: textOps, only: ValueString, normal: identity.NormalizeEmail},
		FieldPhone:      {what: "a phone number", ops: textOps, only: ValueString, normal: identity.NormalizePhone},
		FieldExternalID: {what: "a text", ops: textOps, only: ValueString},
		FieldFirstName:  {what: "a text", ops: textOps, only: ValueString},
		FieldLastName:   {what: "a text", ops: textOps, only: ValueString},
		FieldCreatedAt:  {what: "a time", ops: timeOps, instants: true},
		FieldFirstSeen:  {what: "a time", ops: timeOps, instants: true},
		FieldLastEvent:  {what: "a time", ops: timeOps, instants: true},
		FieldSubscribed: &yesOrNo,
		FieldScore:      {what: "a number", ops: countOps, only: ValueNumber},
		FieldPushDevices: {what: "a kind of device", ops: wordOps, only: ValueString,
			words: []string{DeviceWebPush, DeviceFCM, DeviceAPNs}},
	}
)

// channelField is the type of a field that continues with a channel.
func channelField(at string, path []string) (*fieldType, error) {
	if len(path) != 2 || !slices.Contains(channels, path[1]) {
		return nil, jsonform.Faultf(at, "must go on behind %s with a channel: %s", path[0], jsonform.Choice(channels))
	}
	if path[0] == FieldStatus {
		return &status, nil
	}
	return &yesOrNo, nil
}

// attribute reads a condition on a field. The number of events is one on what a
// profile has done.
func (d *decoder) attribute(o *jsonform.Object) (*Attribute, *Activity, error) {
	if err := o.Only("an attribute condition", "kind", "field", "op", "value"); err != nil {
		return nil, nil, err
	}
	name, err := o.NeedText("field", d.limits.PathBytes)
	if err != nil {
		return nil, nil, err
	}
	switch name {
	case FieldEventCount:
		c, err := d.compare(o, "a number of events", true)
		if err != nil {
			return nil, nil, err
		}
		return nil, &Activity{Event: AnyEvent, Did: true, Count: c}, nil
	case FieldTags:
		name = FieldAttributes + "." + FieldTags
	case FieldStatus:
		name = FieldStatus + "." + channelEmail
	}
	path, err := d.path(o.At("field"), name)
	if err != nil {
		return nil, nil, err
	}
	typ := profileOps[name]
	if path[0] == FieldStatus || path[0] == FieldSuppressed {
		if typ, err = channelField(o.At("field"), path); err != nil {
			return nil, nil, err
		}
	}
	if typ == nil {
		if path[0] != FieldGeo && path[0] != FieldAttributes {
			return nil, nil, jsonform.Faultf(o.At("field"), "must be email, phone, external_id, first_name, last_name, created_at, first_seen_at, "+
				"last_event_at, event_count, tags, status, subscribed, engagement_score, push_devices, or begin with status., suppressed., geo. or attributes.")
		}
		if len(path) == 1 {
			return nil, nil, jsonform.Faultf(o.At("field"), "must go on behind %s, as in %s", name, map[string]string{
				FieldGeo: "geo.country", FieldAttributes: "attributes.plan",
			}[name])
		}
		typ = &freeField
	}
	p, err := d.predicate(o, path, typ)
	if err != nil {
		return nil, nil, err
	}
	return &Attribute{Field: name, Predicate: *p}, nil, nil
}

// path splits a dotted path.
func (d *decoder) path(at, s string) ([]string, error) {
	path := strings.Split(s, ".")
	if len(path) > d.limits.PathDepth {
		return nil, jsonform.Faultf(at, "must have at most %d keys", d.limits.PathDepth)
	}
	if slices.Contains(path, "") {
		return nil, jsonform.Faultf(at, "must not have an empty key beside a dot")
	}
	return path, nil
}

// predicate reads op and value of a filter or an attribute condition.
func (d *decoder) predicate(o *jsonform.Object, path []string, typ *fieldType) (*Predicate, error) {
	op, err := operator(o, typ.ops, typ.what)
	if err != nil {
		return nil, err
	}
	p := &Predicate{Path: path, Op: op}
	switch op {
	case OpExists, OpNotExists:
		if o.Get("value") != nil {
			return nil, jsonform.Faultf(o.At("value"), "must not be given with %s", op)
		}
		return p, nil
	case OpInLastDays, OpNotInLastDays:
		raw, err := o.Need("value")
		if err != nil {
			return nil, err
		}
		p.WindowMs, err = lastDays(o.At("value"), raw)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	paths, raws, err := d.operands(o, op)
	if err != nil {
		return nil, err
	}
	for i, raw := range raws {
		v, err := d.value(paths[i], raw, p, typ)
		if err != nil {
			return nil, err
		}
		p.Values = append(p.Values, v)
	}
	if op == OpBetween {
		low, high := p.Values[0], p.Values[1]
		if low.Kind != high.Kind {
			return nil, jsonform.Faultf(o.At("value"), "must be two numbers or two strings")
		}
		if compareValues(low, high) > 0 {
			return nil, jsonform.Faultf(o.At("value"), "must be [low, high] with low not above high")
		}
	}
	p.normal()
	return p, nil
}

// value reads one constant of p.
func (d *decoder) value(path string, raw []byte, p *Predicate, typ *fieldType) (Value, error) {
	if typ.instants || p.Op == OpBefore || p.Op == OpAfter {
		ms, err := instant(path, raw)
		if err != nil {
			return Value{}, err
		}
		if p.Op == OpBefore || p.Op == OpAfter {
			p.TimeMs = ms
		}
		return Value{Kind: ValueString, Str: string(AppendTime(nil, ms))}, nil
	}
	kind := rawjson.KindOf(raw)
	switch p.Op {
	case OpContains, OpNotContains, OpStartsWith, OpEndsWith:
		if kind != rawjson.String {
			return Value{}, jsonform.Faultf(path, "must be a string for %s, not %s", p.Op, jsonform.KindName(raw))
		}
	case OpGt, OpGe, OpLt, OpLe, OpBetween:
		if kind != rawjson.String && kind != rawjson.Number {
			return Value{}, jsonform.Faultf(path, "must be a number or a string for %s, not %s", p.Op, jsonform.KindName(raw))
		}
	}
	switch {
	case typ.only == ValueString && kind != rawjson.String:
		return Value{}, jsonform.Faultf(path, "must be a string, because the field is %s", typ.what)
	case typ.only == ValueNumber && kind != rawjson.Number:
		return Value{}, jsonform.Faultf(path, "must be a number, because the field is %s", typ.what)
	case typ.only == ValueBool && kind != rawjson.True && kind != rawjson.False:
		return Value{}, jsonform.Faultf(path, "must be true or false, because the field is %s", typ.what)
	}
	switch kind {
	case rawjson.True, rawjson.False:
		return Value{Kind: ValueBool, Bool: kind == rawjson.True}, nil
	case rawjson.Number:
		f, err := jsonform.Number(path, raw)
		return Value{Kind: ValueNumber, Num: f}, err
	}
	s, err := jsonform.Text(path, raw, d.limits.StringBytes)
	if err != nil {
		return Value{}, err
	}
	if typ.words != nil && !slices.Contains(typ.words, s) {
		return Value{}, jsonform.Faultf(path, "must be one of %s", jsonform.Choice(typ.words))
	}
	if typ.normal != nil {
		if s = typ.normal(s); s == "" {
			return Value{}, jsonform.Faultf(path, "must have something to compare %s with", typ.what)
		}
		// Lower case can be longer, and the canonical text must be accepted too.
		if len(s) > d.limits.StringBytes {
			return Value{}, jsonform.Faultf(path, "must have at most %d bytes in lower case, it has %d", d.limits.StringBytes, len(s))
		}
	}
	return Value{Kind: ValueString, Str: s}, nil
}
