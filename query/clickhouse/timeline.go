package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/query"
)

// maxTimeline bounds the entries of one answer.
const maxTimeline = 10_000

// Timeline implements [query.History]. A limit beyond 10,000
// counts as 10,000.
func (s *Store) Timeline(ctx context.Context, q query.TimelineQuery) ([]query.TimelineEntry, error) {
	if len(q.Ordinals) == 0 || q.Limit <= 0 {
		return nil, nil
	}
	fail := func(err error) ([]query.TimelineEntry, error) {
		return nil, fmt.Errorf("history: timeline of account %d: %w", q.Account, err)
	}
	c, err := s.coverFor(ctx, q.Cut.Partition, q.Cut.UpTo)
	if err != nil {
		return fail(err)
	}
	var out []query.TimelineEntry
	err = s.ask(ctx, timelineSQL(q, c), func(r driver.Rows) error {
		var e query.TimelineEntry
		if err := r.Scan(&e.Key.TimeMs, &e.Key.Offset, &e.Key.Index, &e.EventType, &e.Properties, &e.IdempotencyKey); err != nil {
			return err
		}
		e.Key.Late = slices.Contains(q.Late, e.EventType)
		e.IdempotencyKey, e.Sent = query.SentKey(e.EventType, e.IdempotencyKey)
		out = append(out, e)
		return nil
	})
	if err != nil {
		return fail(err)
	}
	return out, nil
}

func timelineSQL(q query.TimelineQuery, c kept) string {
	where := fmt.Sprintf(`account = %d AND "partition" = %d AND ordinal IN (%s) AND record_offset < %d AND %s`,
		q.Account, q.Cut.Partition, list(q.Ordinals), q.Cut.UpTo, c.condition(""))
	where += q.TimelineTypes(func(texts ...string) string { return quoted(texts) })
	late, order := "", ""
	if len(q.Late) > 0 {
		late = "toUInt8(event_type IN (" + quoted(q.Late) + ")), "
		order = strings.TrimSuffix(late, ", ") + " DESC, "
	}
	if b := q.Before; b != nil {
		isLate := ""
		switch {
		case late == "":
		case b.Late:
			isLate = "toUInt8(1), "
		default:
			isLate = "toUInt8(0), "
		}
		where += fmt.Sprintf(" AND (time_ms, %srecord_offset, record_index) < (toInt64(%d), %stoInt64(%d), toUInt32(%d)) AND time_ms <= %d",
			late, b.TimeMs, isLate, b.Offset, b.Index, b.TimeMs)
	}
	return "SELECT time_ms, record_offset, record_index, event_type, properties, idempotency_key FROM events WHERE " + where +
		fmt.Sprintf(" ORDER BY time_ms DESC, %srecord_offset DESC, record_index DESC LIMIT %d", order, min(q.Limit, maxTimeline))
}

// quoted is the texts in SQL with commas between.
func quoted(texts []string) string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = quote(t)
	}
	return strings.Join(out, ", ")
}

// list is the numbers with commas between.
func list(numbers []uint32) string {
	var out strings.Builder
	for i, n := range numbers {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprint(&out, n)
	}
	return out.String()
}
