package segmenttest

import (
	"strconv"

	"github.com/musterhq/muster/segment"
)

func (g *Gen) group(depth int, refs bool) []byte {
	var parts []string
	for range 1 + g.r.IntN(3) {
		if depth > 1 && g.chance(30) {
			parts = append(parts, string(g.group(depth-1, refs)))
			continue
		}
		parts = append(parts, string(g.leaf(refs)))
	}
	kind := ""
	if g.chance(20) {
		kind = `"group"`
	}
	return g.object(
		[2]string{"kind", kind},
		[2]string{"match", pick(g, []string{`"all"`, `"any"`})},
		[2]string{"conditions", array(parts)},
	)
}

func (g *Gen) leaf(refs bool) []byte {
	switch n := g.r.IntN(100); {
	case n < 60:
		return g.activity()
	case n < 82:
		return g.attribute()
	case n < 90:
		return g.consent()
	case n < 95 || !refs:
		return g.membership("list", "list_id", listIDs)
	}
	return g.membership("segment", "segment_id", segmentIDs)
}

// flag writes a boolean field whose default is true.
func (g *Gen) flag(percentTrue int) string {
	switch {
	case !g.chance(percentTrue):
		return "false"
	case g.chance(50):
		return "true"
	}
	return ""
}

func (g *Gen) membership(kind, field string, from []string) []byte {
	return g.object(
		[2]string{"kind", quote(kind)},
		[2]string{field, g.escaped(pick(g, from))},
		[2]string{"member", g.flag(75)},
	)
}

func (g *Gen) consent() []byte {
	status := pick(g, []string{segment.StatusSubscribed, segment.StatusUnsubscribed, segment.StatusNeverSubscribed, segment.StatusPending})
	since, until := "", ""
	if status != segment.StatusNeverSubscribed {
		a, b := g.when(), g.when()
		if a == b {
			b++
		}
		if g.chance(40) {
			since = quote(string(segment.AppendTime(nil, min(a, b))))
		}
		if g.chance(40) {
			until = quote(string(segment.AppendTime(nil, max(a, b))))
		}
	}
	return g.object(
		[2]string{"kind", `"consent"`},
		[2]string{"channel", quote(pick(g, channels))},
		[2]string{"status", quote(status)},
		[2]string{"since", since},
		[2]string{"until", until},
	)
}

func (g *Gen) activity() []byte {
	window := ""
	switch {
	case g.chance(60):
		window = string(g.object([2]string{"last_days", pick(g, windows).days}))
	case g.chance(30):
		window = `{"all_time":true}`
	}
	where := ""
	if g.chance(45) {
		var filters []string
		for range g.r.IntN(3) {
			filters = append(filters, string(g.filter()))
		}
		where = array(filters)
	}
	count, aggregate := "", ""
	switch {
	case g.chance(45):
		aggregate = g.aggregate()
	case g.chance(75):
		count = g.comparison(func() string {
			return pick(g, []string{"0", "1", "1.0", "2", "2e0", "3", "20e-1"})
		})
	}
	return g.object(
		[2]string{"kind", `"activity"`},
		[2]string{"event", quote(eventTypes[g.r.IntN(1+g.r.IntN(len(eventTypes)))])},
		[2]string{"did", g.flag(80)},
		[2]string{"window", window},
		[2]string{"where", where},
		[2]string{"count", count},
		[2]string{"aggregate", aggregate},
	)
}

// comparison writes {op, value} over the numbers that draw gives.
func (g *Gen) comparison(draw func() string) string { return string(g.object(g.compare(draw)...)) }

func (g *Gen) compare(draw func() string) [][2]string {
	op := pick(g, []segment.Op{
		segment.OpEq, segment.OpNe, segment.OpGt, segment.OpGe, segment.OpGe, segment.OpLt, segment.OpLe,
		segment.OpIn, segment.OpNotIn, segment.OpBetween,
	})
	return [][2]string{{"op", quote(string(op))}, {"value", g.operands(op, draw, numberLess)}}
}

func numberLess(a, b string) bool {
	x, _ := strconv.ParseFloat(a, 64)
	y, _ := strconv.ParseFloat(b, 64)
	return x < y
}

// operands writes the value an operator takes.
func (g *Gen) operands(op segment.Op, draw func() string, less func(a, b string) bool) string {
	switch op {
	case segment.OpIn, segment.OpNotIn:
		var values []string
		for range 1 + g.r.IntN(4) {
			values = append(values, draw())
		}
		return array(values)
	case segment.OpBetween:
		a, b := draw(), draw()
		if less(b, a) {
			a, b = b, a
		}
		return array([]string{a, b})
	}
	return draw()
}

// thresholds are what aggregates are compared with: values of sums and
// averages of the numbers, exact and just beside.
var thresholds = []string{
	"0", "1", "1.0", "2", "3", "10", "11", "50", "51", "100", "0.1", "0.3", "0.2", "0.15", "0.6", "-1", "-50",
	"0.000001", "0.000002", "1e-6", "-0.000002", "1.000002", "0.333333", "0.5", "25", "25.5", "16.666666",
	"999999999999", "999999999999.9999", "1e12", "1000000000049.9999", "-999999999999.9999", "1e18", "-1e18", "2000000000000",
}

func (g *Gen) aggregate() string {
	fn := pick(g, []segment.Fn{segment.FnSum, segment.FnAvg, segment.FnMin, segment.FnMax, segment.FnDistinct})
	p := pick(g, properties[:3])
	if fn == segment.FnDistinct && g.chance(60) || g.chance(25) {
		p = pick(g, properties)
	}
	draw := func() string {
		if fn == segment.FnDistinct {
			return pick(g, []string{"0", "1", "2", "3", "1.5"})
		}
		if g.chance(60) {
			return pick(g, thresholds[:11])
		}
		return pick(g, thresholds)
	}
	fields := append(g.compare(draw), [2]string{"fn", quote(string(fn))}, [2]string{"property", g.escaped(p.path)})
	return string(g.object(fields...))
}

func (g *Gen) filter() []byte {
	p := pick(g, properties)
	return g.object(append(g.predicate(p), [2]string{"property", g.escaped(p.path)})...)
}

var freeOps = []segment.Op{
	segment.OpEq, segment.OpEq, segment.OpNe, segment.OpGt, segment.OpGe, segment.OpLt, segment.OpLe,
	segment.OpIn, segment.OpNotIn, segment.OpContains, segment.OpNotContains, segment.OpStartsWith, segment.OpEndsWith,
	segment.OpExists, segment.OpNotExists, segment.OpBetween,
	segment.OpBefore, segment.OpAfter, segment.OpInLastDays, segment.OpNotInLastDays,
}

// predicate writes op and value for a free field that mostly holds p.
func (g *Gen) predicate(p property) [][2]string {
	op := pick(g, freeOps)
	switch {
	case p.time && g.chance(70):
		op = pick(g, freeOps[len(freeOps)-4:])
	case p.kind == segment.ValueNumber && g.chance(70):
		op = pick(g, freeOps[:9])
	}
	kind := p.kind
	if kind == 0 {
		kind = segment.ValueKind(1 + g.r.IntN(3))
	}
	value := ""
	switch op {
	case segment.OpExists, segment.OpNotExists:
	case segment.OpInLastDays, segment.OpNotInLastDays:
		value = pick(g, windows).days
	case segment.OpBefore, segment.OpAfter:
		value = g.constantTime()
	case segment.OpContains, segment.OpNotContains, segment.OpStartsWith, segment.OpEndsWith:
		value = g.escaped(g.text())
	case segment.OpGt, segment.OpGe, segment.OpLt, segment.OpLe, segment.OpBetween:
		if kind == segment.ValueNumber {
			value = g.operands(op, g.number, numberLess)
			break
		}
		value = g.operands(op, func() string { return quote(g.text()) }, func(a, b string) bool {
			return unquote(a) < unquote(b)
		})
	default:
		value = g.operands(op, func() string {
			v := g.scalar(property{path: p.path, kind: kind, time: p.time})
			if v == "null" {
				return g.number()
			}
			return v
		}, nil)
	}
	return [][2]string{{"op", quote(string(op))}, {"value", value}}
}

// constantTime draws a time that a definition may name, as JSON.
func (g *Gen) constantTime() string {
	for {
		text := g.timeText()
		if ms, ok := segment.ParseTime(text); ok && ms > -60_000_000_000_000 && ms < 253_000_000_000_000 {
			return quote(text)
		}
	}
}

func (g *Gen) attribute() []byte {
	if g.chance(40) {
		return g.profileField()
	}
	field, value := "", ""
	draw := g.text
	switch g.r.IntN(10) {
	case 0:
		field, draw = "email", func() string { return pick(g, emails) }
	case 1:
		field, draw = "phone", func() string { return pick(g, phones) }
	case 2:
		field, draw = "external_id", func() string { return pick(g, ids) }
	case 3:
		field, draw = "first_name", func() string { return pick(g, names) }
	case 4:
		field, draw = "last_name", func() string { return pick(g, names) }
	case 5:
		return g.instant("created_at")
	case 6:
		p := property{path: "geo." + pick(g, []string{"country", "city", "loc.lat", "loc"}), kind: segment.ValueString}
		return g.object(append(g.predicate(p), [2]string{"kind", `"attribute"`}, [2]string{"field", quote(p.path)})...)
	default:
		p := pick(g, properties)
		return g.object(append(g.predicate(p), [2]string{"kind", `"attribute"`}, [2]string{"field", g.escaped("attributes." + p.path)})...)
	}
	op := pick(g, freeOps[:len(freeOps)-4])
	switch op {
	case segment.OpExists, segment.OpNotExists:
	case segment.OpContains, segment.OpNotContains, segment.OpStartsWith, segment.OpEndsWith:
		part := pick(g, domains)
		if field == "phone" {
			part = pick(g, []string{"170", "+49", "555", "0"})
		}
		value = quote(part)
	case segment.OpBetween:
		value = map[string]string{
			"email": `["a","k"]`, "phone": `["+1","+5"]`, "external_id": `["u","u2"]`,
		}[field]
		if value == "" {
			value = `["A","Jo"]`
		}
	default:
		value = g.operands(op, func() string { return quote(draw()) }, nil)
	}
	return g.object(
		[2]string{"kind", `"attribute"`},
		[2]string{"field", quote(field)},
		[2]string{"op", quote(string(op))},
		[2]string{"value", value},
	)
}

func (g *Gen) instant(field string) []byte {
	op := pick(g, []segment.Op{
		segment.OpEq, segment.OpNe, segment.OpGt, segment.OpGe, segment.OpLt, segment.OpLe, segment.OpExists,
		segment.OpNotExists, segment.OpBetween, segment.OpBefore, segment.OpAfter, segment.OpInLastDays, segment.OpNotInLastDays,
	})
	value := ""
	switch op {
	case segment.OpExists, segment.OpNotExists:
	case segment.OpInLastDays, segment.OpNotInLastDays:
		value = pick(g, windows).days
	default:
		value = g.operands(op, g.constantTime, func(a, b string) bool {
			x, _ := segment.ParseTime(unquote(a))
			y, _ := segment.ParseTime(unquote(b))
			return x < y
		})
	}
	return g.object(
		[2]string{"kind", `"attribute"`},
		[2]string{"field", quote(field)},
		[2]string{"op", quote(string(op))},
		[2]string{"value", value},
	)
}

// profileField draws a condition on a field that the service keeps itself.
func (g *Gen) profileField() []byte {
	field, op, value := "", segment.OpEq, ""
	word := func(words []string) {
		op = pick(g, []segment.Op{segment.OpEq, segment.OpNe, segment.OpIn, segment.OpNotIn, segment.OpExists, segment.OpNotExists})
		if op != segment.OpExists && op != segment.OpNotExists {
			value = g.operands(op, func() string { return quote(pick(g, words)) }, nil)
		}
	}
	yes := func() {
		op, value = pick(g, []segment.Op{segment.OpEq, segment.OpNe}), pick(g, []string{"true", "false"})
	}
	switch g.r.IntN(10) {
	case 9:
		fields := g.compare(func() string { return pick(g, []string{"0", "1", "2", "3e0", "5"}) })
		return g.object(append(fields, [2]string{"kind", `"attribute"`}, [2]string{"field", quote(segment.FieldEventCount)})...)
	case 0:
		return g.instant(segment.FieldFirstSeen)
	case 1:
		return g.instant(segment.FieldLastEvent)
	case 2:
		field = segment.FieldSubscribed
		yes()
	case 3:
		field = segment.FieldSuppressed + "." + pick(g, channels)
		yes()
	case 4:
		field = segment.FieldPushDevices
		word(deviceKinds)
	case 5:
		field = segment.FieldStatus + "." + pick(g, channels)
		word(segment.ContactStatuses)
	case 6:
		field = pick(g, []string{"status", "status.email"})
		word([]string{segment.ContactSubscribed, segment.ContactEngaged, segment.ContactAtRisk, segment.ContactPending})
	default:
		fields := g.compare(func() string {
			return pick(g, []string{"0", "1", "3", "5", "12", "15", "2e1", "25", "50", "100", "7.5"})
		})
		return g.object(append(fields, [2]string{"kind", `"attribute"`}, [2]string{"field", quote(segment.FieldScore)})...)
	}
	return g.object(
		[2]string{"kind", `"attribute"`},
		[2]string{"field", quote(field)},
		[2]string{"op", quote(string(op))},
		[2]string{"value", value},
	)
}
