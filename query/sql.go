package query

import (
	"errors"
	"fmt"
	"strings"

	"github.com/musterhq/muster/segment"
)

// Dialect is what activity conditions need of a database beyond plain SQL.
// Arguments and results are SQL expressions. A JSON value is a string
// expression of its text in the database's own canonical form, NULL when there
// is none; it is named by a column, so it may be used several times.
type Dialect interface {
	// Placeholder is the n-th bound parameter, from 1. It may be used several
	// times and in any order.
	Placeholder(n int) string
	// Extract is the JSON text behind path in the object's text (empty for no
	// object), NULL when there is nothing or null. Paths go through objects only.
	// bind adds a parameter and returns its placeholder.
	Extract(object string, path []string, bind func(any) string) string
	// Number is the float64 of a JSON number, NULL for other values.
	Number(json string) string
	// Text is the content of a JSON string, NULL for other values.
	Text(json string) string
	// TextKey is the JSON text of a string parameter, as Extract gives it.
	TextKey(param string) string
	// IsArray reports whether the JSON value is an array.
	IsArray(json string) string
	// AnyElement reports whether the condition holds for any element of a JSON
	// array. Elements are JSON values.
	AnyElement(array string, condition func(element string) string) string
	// ScalarKey is a string that is equal for equal scalars, numbers by value,
	// and NULL for arrays and objects; number is Number(json).
	ScalarKey(json, number string) string
	// Micros is [segment.MicrosOf] of a JSON number as an integer, NULL where
	// that is not ok; number is Number(json).
	Micros(json, number string) string
	// TimeMs is [segment.ParseTime] of a text, NULL where that is not ok.
	TimeMs(text string) string
	// Contains, StartsWith and EndsWith compare bytes.
	Contains(text, part string) string
	StartsWith(text, prefix string) string
	EndsWith(text, suffix string) string
	// Sieve is a condition that the text of an object has a part in it, by which rows are
	// left out before they are read as JSON; "" where that is not known to pay.
	Sieve(object, part string) string
	// Integer is a parameter of decimal digits as an integer of 128 bits, and
	// Wide an integer expression widened to that.
	Integer(param string) string
	Wide(integer string) string
	// MonthStart is the first instant of the calendar month, in UTC, that a time
	// in Unix milliseconds is in.
	MonthStart(ms string) string
	// Stored is a further condition, after " AND ", that the rows of a table meet
	// that is named by table ("" for the only one); "" for none. Tables may hold
	// rows of appends that were never completed.
	Stored(table string) string
	// Latest is the aggregate that takes value from the row with the greatest
	// key.
	Latest(value string, key ...string) string
}

// ActivitySQL is the statement that answers an activity query over the tables
// events and aliases (docs/formats.md): one column, the ordinals.
//
// It is a pyramid of sub-queries, so that each value is computed once whatever
// uses it: first the rows with the JSON behind every path, then the filter and
// the number to aggregate, then its exact millionths, then the groups. The
// filter is a column, not a WHERE: optimizers push a WHERE down by writing the
// expressions it uses twice.
func ActivitySQL(d Dialect, q ActivityQuery) (sql string, args []any, err error) {
	b := builder{d: d, atMs: q.AtMs, leaf: q.Leaf}
	sql, err = supported(func() string { return b.statement(q) })
	if err != nil {
		return "", nil, fmt.Errorf("activity condition: %w", err)
	}
	return sql, b.args, nil
}

// unsupported is a condition that [segment.Parse] would not have let through.
type unsupported string

// supported builds a statement; a panic with unsupported is an error.
func supported(build func() string) (sql string, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case unsupported:
			err = errors.New(string(r))
		default:
			panic(r)
		}
	}()
	return build(), nil
}

type builder struct {
	d    Dialect
	atMs int64
	leaf *segment.Activity
	args []any
	// paths are those behind columns j0, j1 …, their keys joined by NUL, which
	// no key holds.
	paths []string
}

func (b *builder) bind(v any) string {
	b.args = append(b.args, v)
	return b.d.Placeholder(len(b.args))
}

// column names the column with the JSON behind the path.
func (b *builder) column(path []string) string {
	key := strings.Join(path, "\x00")
	for i, p := range b.paths {
		if p == key {
			return fmt.Sprintf("j%d", i)
		}
	}
	b.paths = append(b.paths, key)
	return fmt.Sprintf("j%d", len(b.paths)-1)
}

func (b *builder) statement(q ActivityQuery) string {
	a := b.leaf
	filter := make([]string, len(a.Where))
	for i := range a.Where {
		filter[i] = b.predicate(b.column(a.Where[i].Path), &a.Where[i])
	}
	value := ""
	if a.Aggregate != nil {
		value = b.column(a.Aggregate.Property)
	}
	events := selection{cut: q.Cut, account: q.Account, eventType: a.Event, untilMs: &q.AtMs}
	if a.WindowMs > 0 {
		after := q.AtMs - a.WindowMs
		events.afterMs = &after
	}
	from := b.rows(events)
	m := ""
	if len(filter) > 0 {
		m = ", " + strings.Join(filter, " AND ") + " AS m"
	}
	if value != "" {
		from = fmt.Sprintf("(SELECT o%s, %s AS j, %s AS n FROM %s)", m, value, b.d.Number(value), from)
		x := b.d.Micros("j", "n")
		if a.Aggregate.Fn == segment.FnDistinct {
			x = b.d.ScalarKey("j", "n")
		}
		if m != "" {
			m = ", m"
		}
		from = fmt.Sprintf("(SELECT o%s, %s AS x FROM %s)", m, x, from)
	} else if m != "" {
		from = fmt.Sprintf("(SELECT o%s FROM %s)", m, from)
	}
	return "SELECT o FROM " + from + " GROUP BY o HAVING " + b.having(q.Negate)
}

// selection is which events a statement reads.
type selection struct {
	cut     Cut
	account uint64
	// eventType may be [segment.AnyEvent].
	eventType string
	// eventTypes, when not nil, are the types in place of eventType; without any
	// in it, all are read.
	eventTypes []string
	// afterMs and untilMs leave out events at or before, and after, that time;
	// nil for no bound.
	afterMs, untilMs *int64
	// from and to leave out records before, and from, that offset; nil for no
	// bound but the cut, which aliases keep to.
	from, to *int64
	// needles are further conditions on the text of properties, each after " AND ".
	needles string
	// also are further columns of the events, in SQL.
	also string
}

// rows selects events with their winners and the JSON behind each path.
func (b *builder) rows(q selection) string {
	var s strings.Builder
	account, partition, upTo := b.bind(q.account), b.bind(uint32(q.cut.Partition)), b.bind(q.cut.UpTo)
	s.WriteString("(SELECT coalesce(a.winner, e.ordinal) AS o" + q.also)
	for i, p := range b.paths {
		fmt.Fprintf(&s, ", %s AS j%d", b.d.Extract("e.properties", strings.Split(p, "\x00"), b.bind), i)
	}
	fmt.Fprintf(&s, ` FROM events e LEFT JOIN (SELECT ordinal, %s AS winner FROM aliases`+
		` WHERE account = %s AND "partition" = %s AND record_offset < %s%s GROUP BY ordinal) a ON a.ordinal = e.ordinal`,
		b.d.Latest("winner", "record_offset", "record_index", "seq"), account, partition, upTo, b.d.Stored(""))
	fmt.Fprintf(&s, ` WHERE e.account = %s AND e."partition" = %s AND e.record_offset < %s%s`, account, partition, upTo, b.d.Stored("e"))
	switch {
	case q.eventTypes == nil && q.eventType == segment.AnyEvent:
		s.WriteString(" AND NOT (" + notSent("e.idempotency_key", func(text string) string { return b.bind(text) }) + oneOf(b, "e.event_type", segment.OwnEvents()) + ")")
	case q.eventTypes == nil:
		s.WriteString(" AND e.event_type = " + b.bind(q.eventType))
	case len(q.eventTypes) > 0:
		s.WriteString(oneOf(b, "e.event_type", q.eventTypes))
	}
	if q.untilMs != nil {
		fmt.Fprintf(&s, " AND e.time_ms <= %s", b.bind(*q.untilMs))
	}
	if q.afterMs != nil {
		fmt.Fprintf(&s, " AND e.time_ms > %s", b.bind(*q.afterMs))
	}
	if q.from != nil {
		fmt.Fprintf(&s, " AND e.record_offset >= %s", b.bind(*q.from))
	}
	if q.to != nil {
		fmt.Fprintf(&s, " AND e.record_offset < %s", b.bind(*q.to))
	}
	s.WriteString(q.needles)
	s.WriteString(")")
	return s.String()
}

// having judges a group. Only groups with a matching event are there or pass.
func (b *builder) having(negate bool) string {
	a := b.leaf
	only := ""
	if len(a.Where) > 0 {
		only = " FILTER (WHERE m)"
	}
	of := func(aggregate string) string { return aggregate + only }
	var compare *segment.Compare
	var holds func(op, constant string) string
	absent := "false"
	million := fmt.Sprint(segment.MicrosPerUnit)
	switch {
	case a.Aggregate == nil:
		compare = a.Count
		holds = func(op, c string) string { return b.d.Wide(of("count(*)")) + " * " + million + op + c }
	case a.Aggregate.Fn == segment.FnDistinct:
		holds = func(op, c string) string { return b.d.Wide(of("count(DISTINCT x)")) + " * " + million + op + c }
	case a.Aggregate.Fn == segment.FnSum:
		holds = func(op, c string) string { return "coalesce(" + b.d.Wide(of("sum(x)")) + ", 0)" + op + c }
	case a.Aggregate.Fn == segment.FnAvg:
		// The exact ratio: sum/n against c is sum against c·n.
		absent = of("count(x)") + " = 0"
		holds = func(op, c string) string {
			return b.d.Wide(of("sum(x)")) + op + c + " * " + b.d.Wide(of("count(x)"))
		}
	case a.Aggregate.Fn == segment.FnMin, a.Aggregate.Fn == segment.FnMax:
		absent = of("count(x)") + " = 0"
		holds = func(op, c string) string { return b.d.Wide(of(string(a.Aggregate.Fn)+"(x)")) + op + c }
	default:
		panic(unsupported("aggregate " + string(a.Aggregate.Fn)))
	}
	if a.Aggregate != nil {
		compare = &a.Aggregate.Compare
	}
	condition := fmt.Sprintf("CASE WHEN %s THEN false ELSE coalesce(%s, false) END", absent, b.compare(compare, holds))
	if negate {
		condition = "NOT " + condition
	}
	return of("count(*)") + " > 0 AND " + condition
}

func (b *builder) compare(c *segment.Compare, holds func(op, constant string) string) string {
	constant := func(i int) string { return b.d.Integer(b.bind(c.Micros[i].String())) }
	switch c.Op {
	case segment.OpEq, segment.OpNe, segment.OpGt, segment.OpGe, segment.OpLt, segment.OpLe:
		return "(" + holds(" "+sqlOp(c.Op)+" ", constant(0)) + ")"
	case segment.OpBetween:
		return "(" + holds(" >= ", constant(0)) + " AND " + holds(" <= ", constant(1)) + ")"
	case segment.OpIn, segment.OpNotIn:
		among := make([]string, len(c.Micros))
		for i := range c.Micros {
			among[i] = holds(" = ", constant(i))
		}
		any := "(" + strings.Join(among, " OR ") + ")"
		if c.Op == segment.OpNotIn {
			return "NOT " + any
		}
		return any
	}
	panic(unsupported("comparison " + string(c.Op)))
}

func sqlOp(op segment.Op) string {
	if op == segment.OpNe {
		return "<>"
	}
	return string(op)
}

// predicate is never NULL: missing values make positive operators false, and
// negative operators are complements.
func (b *builder) predicate(json string, p *segment.Predicate) string {
	switch p.Op {
	case segment.OpNe:
		return "NOT " + b.positive(json, p, segment.OpEq)
	case segment.OpNotIn:
		return "NOT " + b.positive(json, p, segment.OpIn)
	case segment.OpNotContains:
		return "NOT " + b.positive(json, p, segment.OpContains)
	case segment.OpNotExists:
		return "NOT " + b.positive(json, p, segment.OpExists)
	case segment.OpNotInLastDays:
		return "NOT " + b.positive(json, p, segment.OpInLastDays)
	}
	return b.positive(json, p, p.Op)
}

func (b *builder) positive(json string, p *segment.Predicate, op segment.Op) string {
	if op == segment.OpExists {
		return "(" + json + " IS NOT NULL)"
	}
	return fmt.Sprintf("coalesce(CASE WHEN %s THEN %s ELSE %s END, false)", b.d.IsArray(json),
		b.d.AnyElement(json, func(element string) string { return b.scalar(element, p, op) }),
		b.scalar(json, p, op))
}

// scalar is a positive condition on a JSON value that is no array; false or
// NULL where it does not hold.
func (b *builder) scalar(json string, p *segment.Predicate, op segment.Op) string {
	switch op {
	case segment.OpEq, segment.OpIn:
		return b.among(json, p.Values)
	case segment.OpGt, segment.OpGe, segment.OpLt, segment.OpLe:
		return fmt.Sprintf("%s %s %s", b.typed(json, p.Values[0]), op, b.constant(p.Values[0]))
	case segment.OpBetween:
		return fmt.Sprintf("%s BETWEEN %s AND %s", b.typed(json, p.Values[0]), b.constant(p.Values[0]), b.constant(p.Values[1]))
	case segment.OpContains:
		return b.d.Contains(b.d.Text(json), b.bind(p.Values[0].Str))
	case segment.OpStartsWith:
		return b.d.StartsWith(b.d.Text(json), b.bind(p.Values[0].Str))
	case segment.OpEndsWith:
		return b.d.EndsWith(b.d.Text(json), b.bind(p.Values[0].Str))
	case segment.OpBefore:
		return fmt.Sprintf("%s < %s", b.d.TimeMs(b.d.Text(json)), b.bind(p.TimeMs))
	case segment.OpAfter:
		return fmt.Sprintf("%s > %s", b.d.TimeMs(b.d.Text(json)), b.bind(p.TimeMs))
	case segment.OpInLastDays:
		return fmt.Sprintf("%s BETWEEN %s AND %s", b.d.TimeMs(b.d.Text(json)), b.bind(b.atMs-p.WindowMs+1), b.bind(b.atMs))
	}
	panic(unsupported("operator " + string(op)))
}

// typed is the value as the constant's type, NULL when it is of another.
func (b *builder) typed(json string, constant segment.Value) string {
	switch constant.Kind {
	case segment.ValueNumber:
		return b.d.Number(json)
	case segment.ValueString:
		return b.d.Text(json)
	}
	panic(unsupported("order of booleans"))
}

func (b *builder) constant(v segment.Value) string {
	if v.Kind == segment.ValueNumber {
		return b.bind(v.Num)
	}
	return b.bind(v.Str)
}

// among reports whether the value equals one of the constants.
func (b *builder) among(json string, values []segment.Value) string {
	var keys, numbers []string
	for _, v := range values {
		switch v.Kind {
		case segment.ValueString:
			keys = append(keys, b.d.TextKey(b.bind(v.Str)))
		case segment.ValueBool:
			keys = append(keys, fmt.Sprintf("'%t'", v.Bool))
		}
	}
	for _, v := range values {
		if v.Kind == segment.ValueNumber {
			numbers = append(numbers, b.bind(v.Num))
		}
	}
	var parts []string
	if len(keys) > 0 {
		parts = append(parts, json+" IN ("+strings.Join(keys, ", ")+")")
	}
	if len(numbers) > 0 {
		parts = append(parts, b.d.Number(json)+" IN ("+strings.Join(numbers, ", ")+")")
	}
	if len(parts) == 0 {
		panic(unsupported("no constants"))
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}
