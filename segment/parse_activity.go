package segment

import (
	"slices"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/internal/jsontext"
)

func (d *decoder) activity(o *object) (*Activity, error) {
	if err := o.only("an activity condition", "kind", "event", "did", "window", "where", "count", "aggregate"); err != nil {
		return nil, err
	}
	event, err := o.needText("event", 8*maxEventTypeBytes)
	if err != nil {
		return nil, err
	}
	if !ValidEventType(event) {
		if key, ok := SnakeCase(event); ok {
			return nil, fault(o.at("event"), "must be a snake_case key; did you mean %q?", key)
		}
		return nil, fault(o.at("event"), `must be a snake_case key of at most %d bytes, such as "item_purchased"`, maxEventTypeBytes)
	}
	a := &Activity{Event: event}
	if a.Did, err = o.boolean("did", true); err != nil {
		return nil, err
	}
	if raw := o.get("window"); raw != nil {
		if a.WindowMs, err = d.window(o.at("window"), raw); err != nil {
			return nil, err
		}
	}
	if raw := o.get("where"); raw != nil {
		if a.Where, err = d.where(o.at("where"), raw); err != nil {
			return nil, err
		}
	}
	if raw := o.get("aggregate"); raw != nil {
		if o.get("count") != nil {
			return nil, fault(o.at("count"), "must not be given together with aggregate")
		}
		if a.Aggregate, err = d.aggregate(o.at("aggregate"), raw); err != nil {
			return nil, err
		}
		return a, nil
	}
	if raw := o.get("count"); raw != nil {
		if a.Count, err = d.count(o.at("count"), raw); err != nil {
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
	o, err := d.object(path, raw)
	if err != nil {
		return 0, err
	}
	if err := o.only("a window", "last_days", "all_time"); err != nil {
		return 0, err
	}
	days, all := o.get("last_days"), o.get("all_time")
	switch {
	case days == nil && all == nil:
		return 0, fault(path, "must have last_days or all_time")
	case days != nil && all != nil:
		return 0, fault(path, "must have only one of last_days and all_time")
	case days != nil:
		return lastDays(o.at("last_days"), days)
	case jsontext.KindOf(all) != jsontext.True:
		return 0, fault(o.at("all_time"), "must be true; for a bounded window give last_days instead")
	}
	return 0, nil
}

func (d *decoder) where(path string, raw []byte) ([]Predicate, error) {
	parts, err := elements(path, raw, d.limits.Where)
	if err != nil {
		return nil, err
	}
	if len(parts) > d.limits.Where {
		return nil, fault(path, "must have at most %d filters", d.limits.Where)
	}
	var where []Predicate
	for i, part := range parts {
		o, err := d.object(index(path, i), part)
		if err != nil {
			return nil, err
		}
		if err := o.only("a filter", "property", "op", "value"); err != nil {
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
func (d *decoder) property(o *object) ([]string, error) {
	s, err := o.needText("property", d.limits.PathBytes)
	if err != nil {
		return nil, err
	}
	return d.path(o.at("property"), s)
}

var (
	countOps = []Op{OpEq, OpNe, OpGt, OpGe, OpLt, OpLe, OpIn, OpNotIn, OpBetween}
	fns      = []Fn{FnSum, FnAvg, FnMin, FnMax, FnDistinct}
)

func (d *decoder) count(path string, raw []byte) (*Compare, error) {
	o, err := d.object(path, raw)
	if err != nil {
		return nil, err
	}
	if err := o.only("count", "op", "value"); err != nil {
		return nil, err
	}
	return d.compare(o, "a count", true)
}

func (d *decoder) aggregate(path string, raw []byte) (*Aggregate, error) {
	o, err := d.object(path, raw)
	if err != nil {
		return nil, err
	}
	if err := o.only("aggregate", "fn", "property", "op", "value"); err != nil {
		return nil, err
	}
	fn, err := oneOf(o, "fn", fns)
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
func (d *decoder) compare(o *object, what string, whole bool) (*Compare, error) {
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
		if jsontext.KindOf(raw) != jsontext.Number {
			return nil, fault(paths[i], "must be a number, not %s", kindName(raw))
		}
		v, reason := parseThreshold(string(raw))
		if whole && reason == "must have at most 6 decimals" {
			reason = "must be a whole number"
		}
		if reason != "" {
			return nil, fault(paths[i], "%s", reason)
		}
		if whole && v.Sign() < 0 {
			return nil, fault(paths[i], "must not be negative")
		}
		if whole && !wholeMicros(v) {
			return nil, fault(paths[i], "must be a whole number")
		}
		c.Micros = append(c.Micros, v)
	}
	if op == OpBetween && c.Micros[0].Cmp(c.Micros[1]) > 0 {
		return nil, fault(o.at("value"), "must be [low, high] with low not above high")
	}
	c.normal()
	return c, nil
}

// wholeMicros tells whether v, of at most 10²⁴, is a whole number of units.
func wholeMicros(v Int128) bool {
	text := v.String()
	if text == "0" {
		return true
	}
	return len(text) > 6 && text[len(text)-6:] == "000000"
}

// operands splits value into what the operator takes: the elements of a list
// or pair, or the one value. null is refused everywhere.
func (d *decoder) operands(o *object, op Op) (paths []string, raws [][]byte, err error) {
	path := o.at("value")
	raw, err := o.need("value")
	if err != nil {
		return nil, nil, err
	}
	switch op {
	case OpIn, OpNotIn:
		if raws, err = elements(path, raw, d.limits.ListValues); err != nil {
			return nil, nil, err
		}
		if len(raws) == 0 {
			return nil, nil, fault(path, "must have at least one value")
		}
		if len(raws) > d.limits.ListValues {
			return nil, nil, fault(path, "must have at most %d values", d.limits.ListValues)
		}
	case OpBetween:
		if raws, err = elements(path, raw, 2); err != nil {
			return nil, nil, err
		}
		if len(raws) != 2 {
			return nil, nil, fault(path, "must be [low, high], both included")
		}
	default:
		raws, paths = [][]byte{raw}, []string{path}
	}
	for i := len(paths); i < len(raws); i++ {
		paths = append(paths, index(path, i))
	}
	for i, raw := range raws {
		switch jsontext.KindOf(raw) {
		case jsontext.Null:
			return nil, nil, fault(paths[i], "must not be null; ask with exists or not_exists whether a value is there")
		case jsontext.Array, jsontext.Object:
			return nil, nil, fault(paths[i], "must be a string, a number or a boolean, not %s", kindName(raw))
		}
	}
	return paths, raws, nil
}

func operator(o *object, ops []Op, what string) (Op, error) {
	raw, err := o.need("op")
	if err != nil {
		return "", err
	}
	s, err := text(o.at("op"), raw, maxIDBytes)
	if err != nil {
		return "", err
	}
	if !slices.Contains(ops, Op(s)) {
		return "", fault(o.at("op"), "must be one of %s for %s", choice(ops), what)
	}
	return Op(s), nil
}
