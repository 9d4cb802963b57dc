package duckdb

import (
	"context"
	"fmt"
	"slices"
	"strings"

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
	sql, args := timelineSQL(q)
	c, done, err := s.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var out []query.TimelineEntry
	err = c.query(ctx, sql, args, func(ch chunk) error {
		times, offsets, indexes := column[int64](ch, 0), column[int64](ch, 1), column[uint32](ch, 2)
		types, properties, keys := ch.text(3), ch.text(4), ch.text(5)
		for i := range times {
			key, sent := query.SentKey(types[i], keys[i])
			out = append(out, query.TimelineEntry{
				Key:       query.TimelineKey{TimeMs: times[i], Late: slices.Contains(q.Late, types[i]), Offset: offsets[i], Index: indexes[i]},
				EventType: types[i], Properties: properties[i], IdempotencyKey: key, Sent: sent,
			})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("history: timeline of account %d: %w", q.Account, err)
	}
	return out, nil
}

func timelineSQL(q query.TimelineQuery) (sql string, args []any) {
	bind := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	where := fmt.Sprintf(`ordinal IN (%s) AND account = %s AND "partition" = %s AND record_offset < %s`,
		listed(bind, q.Ordinals), bind(q.Account), bind(uint32(q.Cut.Partition)), bind(q.Cut.UpTo))
	where += q.TimelineTypes(func(texts ...string) string { return listed(bind, texts) })
	late, order := "", "time_ms DESC"
	if len(q.Late) > 0 {
		late = "(event_type IN (" + listed(bind, q.Late) + "))"
		order += ", " + late + " DESC"
	}
	if b := q.Before; b != nil {
		t, o := bind(b.TimeMs), bind(b.Offset)
		within := fmt.Sprintf("(record_offset < %s OR record_offset = %s AND record_index < %s)", o, o, bind(b.Index))
		switch {
		case late == "":
		case b.Late:
			within = "(NOT " + late + " OR " + within + ")"
		default:
			within = "(NOT " + late + " AND " + within + ")"
		}
		where += fmt.Sprintf(" AND time_ms <= %s AND (time_ms < %s OR %s)", t, t, within)
	}
	return "SELECT time_ms, record_offset, record_index, event_type, properties, idempotency_key FROM events WHERE " + where +
		" ORDER BY " + order + ", record_offset DESC, record_index DESC LIMIT " + bind(int64(min(q.Limit, maxTimeline))), args
}

// listed binds values and lists them with commas between.
func listed[T any](bind func(any) string, values []T) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = bind(v)
	}
	return strings.Join(out, ", ")
}
