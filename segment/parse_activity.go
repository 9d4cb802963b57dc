package segment

import (
	"slices"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/rawjson"
)

func (d *decoder) activity(o *jsonform.Object) (*Activity, error) {
	if err := o.Only("an activity condition", "kind", "event", "did", "window", "where", "count", "aggregate"); err != nil {
		return nil, err
	}
	event, err := o.NeedText("event", 8*maxEventTypeBytes)
	if err != nil {
		return nil, err
	}
	if !ValidEventType(event) {
		if key, ok := SnakeCase(event); ok {
			return nil, jsonform.Faultf(o.At("event"), "must be a snake_case key; did you mean %q?", key)
		}
		return nil, jsonform.Faultf(o.At("event"), `must be a snake_case key of at most %d bytes, such as "item_purchased"`, maxEventTypeBytes)
	}
	a := &Activity{Event: event}
	if a.Did, err = o.Bool("did", true); err != nil {
		return nil, err
	}
	if raw := o.Get("window"); raw != nil {
		if a.WindowMs, err = d.window(o.At("window"), raw); err != nil {
			return nil, err
		}
	}
	if raw := o.Get("where"); raw != nil {
		if a.Where, err = d.where(o.At("where"), raw); err != nil {
			return nil, err
		}
	}
	if raw := o.Get("aggregate"); raw != nil {
		if o.Get("count") != nil {
			return nil, jsonform.Faultf(o.At("count"), "must not be given together with aggregate")
		}
		if a.Aggregate, err = d.aggregate(o.At("aggregate"), raw); err != nil {
			return nil, err
		}
		return a, nil
	}
	if raw := o.Get("count"); raw != nil {
		if a.Count, err = d.count(o.At("count"), raw); err != nil {
			return nil, err
		}
		return a, nil
	}
	a.Count = atLeastOne()
	return a, nil
}

// atLeastOne is the comparison of an activity that names none.
func atLeastOne() *Compare {
	return &Compare{Op: OpGe, Micros: []Int128{int128.From(MicrosPerUnit)}}
}

func (d *decoder) window(path string, raw []byte) (ms int64, err error) {
	o, err := jsonform.ReadObject(path, raw)
	if err != nil {
		return 0, err
	}
	if err := o.Only("a window", "last_days", "all_time"); err != nil {
		return 0, err
	}
	days, all := o.Get("last_days"), o.Get("all_time")
	switch {
	case days == nil && all == nil:
		return 0, jsonform.Faultf(path, "must have last_days or all_time")
	case days != nil && all != nil:
		return 0, jsonform.Faultf(path, "must have only one of last_days and all_time")
	case days != nil:
		return lastDays(o.At("last_days"), days)
	case rawjson.KindOf(all) != rawjson.True:
		return 0, jsonform.Faultf(o.At("all_time"), "must be true; for a bounded window give last_days instead")
	}
	return 0, nil
}

func (d *decoder) where(path string, raw []byte) ([]Predicate, error) {
	parts, err := jsonform.Elements(path, raw, d.limits.Where)
	if err != nil {
		return nil, err
	}
	if len(parts) > d.limits.Where {
		return nil, jsonform.Faultf(path, "must have at most %d filters", d.limits.Where)
	}
	var where []Predicate
	for i, part := range parts {
		o, err := jsonform.ReadObject(jsonform.Index(path, i), part)
		if err != nil {
			return nil, err
		}
		if err := o.Only("a filter", "property", "op", "value"); err != nil {
			return nil, err
		}
		property, err := d.property(o)
		if err != nil {
			return nil, err
		}
		p, err := d.predicate(o, property, &freeField)
		if err != nil {
			return nil, err
		}
		where = append(where, *p)
	}
	return normalWhere(where), nil
}

// property reads the dotted path to a property.
func (d *decoder) property(o *jsonform.Object) ([]string, error) {
	s, err := o.NeedText("property", d.limits.PathBytes)
	if err != nil {
		return nil, err
	}
	return d.path(o.At("property"), s)
}

var (
	countOps = []Op{OpEq, OpNe, OpGt, OpGe, OpLt, OpLe, OpIn, OpNotIn, OpBetween}
	fns      = []Fn{FnSum, FnAvg, FnMin, FnMax, FnDistinct}
)

func (d *decoder) count(path string, raw []byte) (*Compare, error) {
	o, err := jsonform.ReadObject(path, raw)
	if err != nil {
		return nil, err
	}
	if err := o.Only("count", "op", "value"); err != nil {
		return nil, err
	}
	return d.compare(o, "a count", true)
}

func (d *decoder) aggregate(path string, raw []byte) (*Aggregate, error) {
	o, err := jsonform.ReadObject(path, raw)
	if err != nil {
		return nil, err
	}
	if err := o.Only("aggregate", "fn", "property", "op", "value"); err != nil {
		return nil, err
	}
	fn, err := jsonform.OneOf(o, "fn", fns)
	if err != nil {
		return nil, err
	}
	property, err := d.property(o)
	if err != nil {
		return nil, err
	}
	c, err := d.compare(o, "an aggregate", false)
	if err != nil {
		return nil, err
	}
	return &Aggregate{Fn: fn, Property: property, Compare: *c}, nil
}

// compare reads op and value; whole asks for counts: whole numbers from 0 on.
func (d *decoder) compare(o *jsonform.Object, what string, whole bool) (*Compare, error) {
	op, err := operator(o, countOps, what)
	if err != nil {
		return nil, err
	}
	paths, raws, err := d.operands(o, op)
	if err != nil {
		return nil, err
	}
	c := &Compare{Op: op}
	for i, raw := range raws {
		if rawjson.KindOf(raw) != rawjson.Number {
			return nil, jsonform.Faultf(paths[i], "must be a number, not %s", jsonform.KindName(raw))
		}
		v, reason := parseThreshold(string(raw))
		if whole && reason == "must have at most 6 decimals" {
			reason = "must be a whole number"
		}
		if reason != "" {
			return nil, jsonform.Faultf(paths[i], "%s", reason)
		}
		if whole && v.Sign() < 0 {
			return nil, jsonform.Faultf(paths[i], "must not be negative")
		}
		if whole && !wholeMicros(v) {
			return nil, jsonform.Faultf(paths[i], "must be a whole number")
		}
		c.Micros = append(c.Micros, v)
	}
	if op == OpBetween && c.Micros[0].Cmp(c.Micros[1]) > 0 {
		return nil, jsonform.Faultf(o.At("value"), "must be [low, high] with low not above high")
	}
	c.normal()
	return c, nil
}

// wholeMicros reports whether v, of at most 10²⁴, is a whole number of units.
func wholeMicros(v Int128) bool {
	text := v.String()
	if text == "0" {
		return true
	}
	return len(text) > 6 && text[len(text)-6:] == "000000"
}

// operands splits value into what the operator takes: the elements of a list
// or pair, or the one value. null is refused everywhere.
func (d *decoder) operands(o *jsonform.Object, op Op) (paths []string, raws [][]byte, err error) {
	path := o.At("value")
	raw, err := o.Need("value")
	if err != nil {
		return nil, nil, err
	}
	switch op {
	case OpIn, OpNotIn:
		if raws, err = jsonform.Elements(path, raw, d.limits.ListValues); err != nil {
			return nil, nil, err
		}
		if len(raws) == 0 {
			return nil, nil, jsonform.Faultf(path, "must have at least one value")
		}
		if len(raws) > d.limits.ListValues {
			return nil, nil, jsonform.Faultf(path, "must have at most %d values", d.limits.ListValues)
		}
	case OpBetween:
		if raws, err = jsonform.Elements(path, raw, 2); err != nil {
			return nil, nil, err
		}
		if len(raws) != 2 {
			return nil, nil, jsonform.Faultf(path, "must be [low, high], both included")
		}
	default:
		raws, paths = [][]byte{raw}, []string{path}
	}
	for i := len(paths); i < len(raws); i++ {
		paths = append(paths, jsonform.Index(path, i))
	}
	for i, raw := range raws {
		switch rawjson.KindOf(raw) {
		case rawjson.Null:
			return nil, nil, jsonform.Faultf(paths[i], "must not be null; ask with exists or not_exists whether a value is there")
		case rawjson.Array, rawjson.Object:
			return nil, nil, jsonform.Faultf(paths[i], "must be a string, a number or a boolean, not %s", jsonform.KindName(raw))
		}
	}
	return paths, raws, nil
}

func operator(o *jsonform.Object, ops []Op, what string) (Op, error) {
	raw, err := o.Need("op")
	if err != nil {
		return "", err
	}
	s, err := jsonform.Text(o.At("op"), raw, maxIDBytes)
	if err != nil {
		return "", err
	}
	if !slices.Contains(ops, Op(s)) {
		return "", jsonform.Faultf(o.At("op"), "must be one of %s for %s", jsonform.Choice(ops), what)
	}
	return Op(s), nil
}
