package query

import (
	"fmt"
	"strings"

	"github.com/musterhq/muster/segment"
)

// ReplaySQL is the statement that answers a replay over the tables events and
// aliases (docs/formats.md), for the records from ≤ offset < to below the cut.
// Aliases are those of the cut whatever the records. Its columns, none ever NULL: the ordinal,
// the time in Unix milliseconds, with q.Properties the properties, with q.Keys the
// idempotency key, with q.Number the number as of [AsMicros], and with q.Where whether the
// row matches.
//
// Rows that do not match are in the answer, with empty texts, for the
// reason [ActivitySQL] has its filter in a column.
func ReplaySQL(d Dialect, q ReplayQuery, from, to int64) (sql string, args []any, err error) {
	b := builder{d: d}
	sql, err = supported(func() string { return b.replay(q, from, to) })
	if err != nil {
		return "", nil, fmt.Errorf("replay: %w", err)
	}
	return sql, b.args, nil
}

func (b *builder) replay(q ReplayQuery, from, to int64) string {
	filter := make([]string, len(q.Where))
	for i := range q.Where {
		p := &q.Where[i]
		if p.Op == segment.OpInLastDays || p.Op == segment.OpNotInLastDays {
			panic(unsupported(fmt.Sprintf("filter %d is %s, which depends on the instant: judge it on the properties", i, p.Op)))
		}
		filter[i] = b.predicate(b.column(p.Path), p)
	}
	events := selection{cut: q.Cut, account: q.Account, eventType: q.EventType, afterMs: q.AfterMs, also: ", e.time_ms AS t"}
	if from > 0 {
		events.from = &from
	}
	if to < q.Cut.UpTo {
		events.to = &to
	}
	texts := ""
	for _, x := range []struct {
		on           bool
		column, name string
	}{{q.Properties, "properties", "p"}, {q.Keys, "idempotency_key", "k"}} {
		if x.on {
			events.also += fmt.Sprintf(", e.%s AS %s", x.column, x.name)
			texts += ", " + x.name
		}
	}
	value := ""
	if q.Number != nil {
		value = b.column(q.Number)
	}
	rows := b.rows(events)
	if len(filter) == 0 && value == "" {
		return fmt.Sprintf("SELECT o, t%s FROM %s", texts, rows)
	}
	// Each is worked out once, in a statement of its own.
	inner, outer := texts, texts
	if value != "" {
		inner += fmt.Sprintf(", %s AS j, %s AS n", value, b.d.Number(value))
		outer += ", " + b.micros()
	}
	if len(filter) > 0 {
		inner += ", " + strings.Join(filter, " AND ") + " AS m"
		outer = strings.NewReplacer(", p", ", CASE WHEN m THEN p ELSE '' END", ", k", ", CASE WHEN m THEN k ELSE '' END").Replace(texts) + outer[len(texts):] + ", m"
	}
	return fmt.Sprintf("SELECT o, t%s FROM (SELECT o, t%s FROM %s)", outer, inner, rows)
}
