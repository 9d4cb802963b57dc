package query

import (
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/segment"
)

// MatchQuery asks for the events behind an activity condition or a series, with
// what of them is counted: to be kept, and to be extended by those of later
// records.
type MatchQuery struct {
	Cut     Cut
	Account uint64
	// From leaves out records below that offset. Aliases are those of the cut
	// whatever the records.
	From int64
	// To, when set, leaves out records from that offset on, which may be below the cut.
	To int64
	// EventType may be [segment.AnyEvent]. With ByType it is not looked at.
	EventType string
	// ByType asks for the events of Types, of all when there are none, each with
	// its type.
	ByType bool
	Types  []string
	// AfterMs and UntilMs, when set, leave out events at or before, and after,
	// that time (Unix milliseconds).
	AfterMs, UntilMs *int64
	// Where must all hold on the properties, as in [ReplayQuery].
	Where []segment.Predicate
	// Value is the path of the property that is returned of each event, As its
	// form.
	Value []string
	As    MatchValue
}

// MatchValue is how the property of a [MatchQuery] is returned.
type MatchValue uint8

const (
	// NoValue returns no property.
	NoValue MatchValue = iota
	// AsMicros returns numbers as [segment.MicrosOf], all else as [NoMicros].
	AsMicros
	// AsScalar returns scalars as texts that are equal for equal ones, numbers by
	// value, all else as "".
	AsScalar
	// AsText returns the content of strings, all else as "".
	AsText
)

// NoMicros stands for a property that enters no aggregate. It is beyond what
// [segment.MicrosOf] gives.
const NoMicros = -9_000_000_000_000_000_000

// MicrosAt is the number of an event as AsMicros returns it, for histories that have the
// properties at hand.
func MicrosAt(properties []byte, path []string) int64 {
	raw, _ := rawjson.Lookup(properties, path)
	if m, ok := segment.MicrosOfJSON(raw); ok {
		return m
	}
	return NoMicros
}

// MatchBlock is some matching events, column by column. Columns that were not
// asked for are empty.
type MatchBlock struct {
	Ordinal []uint32
	TimeMs  []int64
	Micros  []int64
	Text    Strings // scalars or texts
	Type    Strings
}

// MatchSQL is the statement that answers a match query over the tables events
// and aliases (docs/formats.md). Its columns, none ever NULL: the ordinal, the
// time in Unix milliseconds, with q.ByType the type, with q.As the value.
func MatchSQL(d Dialect, q MatchQuery) (sql string, args []any, err error) {
	b := builder{d: d}
	sql, err = supported(func() string { return b.matches(q) })
	if err != nil {
		return "", nil, fmt.Errorf("matches: %w", err)
	}
	return sql, b.args, nil
}

// micros is the column x of [AsMicros], of a JSON value j and its number n.
func (b *builder) micros() string {
	return fmt.Sprintf("CAST(coalesce(%s, %d) AS BIGINT) AS x", b.d.Micros("j", "n"), int64(NoMicros))
}

// matches is a pyramid like that of [ActivitySQL].
func (b *builder) matches(q MatchQuery) string {
	filter := make([]string, len(q.Where))
	for i := range q.Where {
		p := &q.Where[i]
		if p.Timed() {
			panic(unsupported(fmt.Sprintf("filter %d is %s, which depends on the instant", i, p.Op)))
		}
		filter[i] = b.predicate(b.column(p.Path), p)
	}
	value := ""
	if q.As != NoValue {
		value = b.column(q.Value)
	}
	events := selection{cut: q.Cut, account: q.Account, eventType: q.EventType, afterMs: q.AfterMs, untilMs: q.UntilMs, also: ", e.time_ms AS t"}
	columns := "o, t"
	if q.ByType {
		events.eventTypes = orNone(q.Types)
		events.also += ", e.event_type AS ty"
		columns += ", ty"
	}
	if q.From > 0 {
		events.from = &q.From
	}
	if q.To > 0 && q.To < q.Cut.UpTo {
		events.to = &q.To
	}
	for i := range q.Where {
		events.needles += b.needle(&q.Where[i])
	}
	from := b.rows(events)
	if len(filter) == 0 && value == "" {
		return fmt.Sprintf("SELECT %s FROM %s", columns, from)
	}
	m, where := "", ""
	if len(filter) > 0 {
		m, where = ", "+strings.Join(filter, " AND ")+" AS m", " WHERE m"
	}
	x := ""
	if value != "" {
		from = fmt.Sprintf("(SELECT %s%s, %s AS j, %s AS n FROM %s)", columns, m, value, b.d.Number(value), from)
		m = strings.Repeat(", m", min(1, len(filter)))
		switch q.As {
		case AsMicros:
			x = ", " + b.micros()
		case AsScalar:
			x = ", coalesce(" + b.d.ScalarKey("j", "n") + ", '') AS x"
		case AsText:
			x = ", coalesce(" + b.d.Text("j") + ", '') AS x"
		default:
			panic(unsupported(fmt.Sprintf("value %d", q.As)))
		}
	}
	from = fmt.Sprintf("(SELECT %s%s%s FROM %s)", columns, m, x, from)
	if value != "" {
		columns += ", x"
	}
	return fmt.Sprintf("SELECT %s FROM %s%s", columns, from, where)
}
