package query

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/segment"
)

// MaxSeriesRows bounds the rows of one answer.
const MaxSeriesRows = 100_000

// ErrSeriesTooLarge reports that an answer would have more than [MaxSeriesRows]
// rows: ask for fewer types, a shorter time or longer spans.
var ErrSeriesTooLarge = errors.New("the answer would have too many rows")

// Granularity is how long the spans of a series are.
type Granularity string

// Spans begin in UTC; weeks on Monday. Whole is one span for everything.
const (
	Whole Granularity = ""
	Hour  Granularity = "hour"
	Day   Granularity = "day"
	Week  Granularity = "week"
	Month Granularity = "month"
)

const (
	hourMs = 3_600_000
	dayMs  = 24 * hourMs
	weekMs = 7 * dayMs
	// mondayMs is the first Monday after the epoch, a Thursday.
	mondayMs = 4 * dayMs
)

// span is the length of a span and an instant at which one begins; months have
// no such length.
func (g Granularity) span() (lengthMs, originMs int64) {
	switch g {
	case Hour:
		return hourMs, 0
	case Day:
		return dayMs, 0
	case Week:
		return weekMs, mondayMs
	}
	return 0, 0
}

// Start is when the span begins that an instant is in, both in Unix
// milliseconds; 0 for [Whole].
func (g Granularity) Start(ms int64) int64 {
	if length, origin := g.span(); length > 0 {
		past := (ms - origin) % length
		if past < 0 {
			past += length
		}
		return ms - past
	}
	if g == Month {
		t := time.UnixMilli(ms).UTC()
		return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	}
	return 0
}

// Next is when the span behind the one begins that begins at startMs.
func (g Granularity) Next(startMs int64) int64 {
	if length, _ := g.span(); length > 0 {
		return startMs + length
	}
	return time.UnixMilli(startMs).UTC().AddDate(0, 1, 0).UnixMilli()
}

// SeriesQuery asks how many events there were.
type SeriesQuery struct {
	Cut     Cut
	Account uint64
	// Types are the types of events; all when there are none.
	Types []string
	// FromMs and ToMs bound the time of events: FromMs ≤ t < ToMs, in Unix
	// milliseconds.
	FromMs, ToMs int64
	Granularity  Granularity
	// Where must all hold on the properties, as in [ReplayQuery].
	Where []segment.Predicate
	// By, when set, is the path of a property by whose text events are told
	// apart; those without are under "".
	By []string
}

// SeriesRow is the number of events of a type in a span of time.
type SeriesRow struct {
	Type    string
	Value   string // of the property By
	StartMs int64  // of the span
	Events  uint64
	// Profiles is how many different profiles they are of, merged ones counted as
	// one.
	Profiles uint64
}

// DeedsQuery asks what profiles did.
type DeedsQuery struct {
	Cut     Cut
	Account uint64
	// Ordinals are the profiles, as they are after merges. Events of those merged
	// into them count as theirs.
	Ordinals []uint32
	Types    []string // at least one
	Where    []segment.Predicate
	By       []string // as in [SeriesQuery]
}

// Deed is all that a profile did of one type.
type Deed struct {
	Ordinal         uint32
	Type            string
	Value           string // of the property By
	Events          uint64
	FirstMs, LastMs int64
}

// MovesQuery asks how many entered and left segments.
type MovesQuery struct {
	Cut         Cut
	Account     uint64
	Segment     string // "" for all segments
	Granularity Granularity
	// FromMs and ToMs bound the time of entries and exits, as in [SeriesQuery].
	FromMs, ToMs int64
}

// MovesRow is how often profiles entered and left a segment.
type MovesRow struct {
	Segment        string
	StartMs        int64 // of the span
	Entered, Exits uint64
}

// EraseQuery names profiles whose rows are to go.
type EraseQuery struct {
	Cut     Cut
	Account uint64
	// Ordinals are the profiles and those merged into them.
	Ordinals []uint32
}

// SeriesSQL is the statement that answers a series over the tables events and
// aliases. Its columns, none ever NULL: type, value, start, events, profiles.
// It asks for one row more than there may be.
func SeriesSQL(d Dialect, q SeriesQuery) (sql string, args []any, err error) {
	b := builder{d: d}
	sql, err = supported(func() string {
		events := selection{cut: q.Cut, account: q.Account, eventTypes: orNone(q.Types), also: ", e.event_type AS ty, e.time_ms AS t"}
		after, until := q.FromMs-1, q.ToMs-1
		events.afterMs, events.untilMs = &after, &until
		from := b.matching(events, q.Where, q.By)
		return fmt.Sprintf("SELECT ty, v, %s AS s, CAST(count(*) AS BIGINT), CAST(count(DISTINCT o) AS BIGINT) FROM %s GROUP BY ty, v, s ORDER BY ty, v, s LIMIT %d",
			b.start(q.Granularity), from, MaxSeriesRows+1)
	})
	if err != nil {
		return "", nil, fmt.Errorf("series: %w", err)
	}
	return sql, b.args, nil
}

// DeedsSQL is the statement that answers a question for deeds. Its columns,
// none ever NULL: ordinal, type, value, events, first and last time. It asks
// for one row more than there may be.
func DeedsSQL(d Dialect, q DeedsQuery) (sql string, args []any, err error) {
	b := builder{d: d}
	sql, err = supported(func() string {
		if len(q.Types) == 0 {
			panic(unsupported("no types of events"))
		}
		events := selection{cut: q.Cut, account: q.Account, eventTypes: q.Types, also: ", e.event_type AS ty, e.time_ms AS t"}
		from := b.matching(events, q.Where, q.By)
		return fmt.Sprintf("SELECT o, ty, v, CAST(count(*) AS BIGINT), min(t), max(t) FROM %s WHERE true%s GROUP BY o, ty, v ORDER BY o, ty, v LIMIT %d",
			from, oneOf(&b, "o", q.Ordinals), MaxSeriesRows+1)
	})
	if err != nil {
		return "", nil, fmt.Errorf("deeds: %w", err)
	}
	return sql, b.args, nil
}

// MovesSQL is the statement that counts entries and exits over the table transitions.
// Its columns, none ever NULL: segment, start, entered, exits. It asks for one row more
// than there may be.
func MovesSQL(d Dialect, q MovesQuery) (sql string, args []any, err error) {
	b := builder{d: d}
	sql, err = supported(func() string {
		where := fmt.Sprintf(`account = %s AND "partition" = %s AND record_offset < %s AND at_ms >= %s AND at_ms < %s%s`,
			b.bind(q.Account), b.bind(uint32(q.Cut.Partition)), b.bind(q.Cut.UpTo), b.bind(q.FromMs), b.bind(q.ToMs), d.Stored(""))
		if q.Segment != "" {
			where += " AND segment = " + b.bind(q.Segment)
		}
		return fmt.Sprintf("SELECT segment, %s AS s, CAST(count(*) FILTER (WHERE entered) AS BIGINT), CAST(count(*) FILTER (WHERE NOT entered) AS BIGINT)"+
			" FROM (SELECT segment, entered, at_ms AS t FROM transitions WHERE %s) GROUP BY segment, s ORDER BY segment, s LIMIT %d",
			b.start(q.Granularity), where, MaxSeriesRows+1)
	})
	if err != nil {
		return "", nil, fmt.Errorf("moves: %w", err)
	}
	return sql, b.args, nil
}

func orNone(types []string) []string {
	if types == nil {
		return []string{}
	}
	return types
}

// matching is the rows o, ty, t and v (the text of the property by) of the
// events that pass the filters.
func (b *builder) matching(events selection, where []segment.Predicate, by []string) string {
	m := "true"
	for i := range where {
		p := &where[i]
		if p.Timed() {
			panic(unsupported(fmt.Sprintf("filter %d is %s, which depends on the instant", i, p.Op)))
		}
		m += " AND " + b.predicate(b.column(p.Path), p)
	}
	v := "''"
	if len(by) > 0 {
		v = "coalesce(" + b.d.Text(b.column(by)) + ", '')"
	}
	return fmt.Sprintf("(SELECT o, ty, t, v FROM (SELECT o, ty, t, %s AS v, %s AS m FROM %s) WHERE m)", v, m, b.rows(events))
}

// start is the beginning of the span that time t is in.
func (b *builder) start(g Granularity) string {
	switch length, origin := g.span(); {
	case length > 0:
		// The remainder of a time before the origin is below zero.
		return fmt.Sprintf("t - ((t - %d) %% %d + %d) %% %d", origin, length, length, length)
	case g == Month:
		return b.d.MonthStart("t")
	case g == Whole:
		return "CAST(0 AS BIGINT)"
	}
	panic(unsupported("granularity " + string(g)))
}

// oneOf is a condition that a column has one of the values. No row meets it when
// there are none.
func oneOf[T any](b *builder, column string, values []T) string {
	if len(values) == 0 {
		return " AND false"
	}
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = b.bind(v)
	}
	return " AND " + column + " IN (" + strings.Join(list, ", ") + ")"
}
