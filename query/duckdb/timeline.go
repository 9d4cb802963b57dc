package duckdb

import (
	"context"
	"fmt"
	"strings"

	"github.com/musterhq/muster/query"
)

// maxTimeline bounds the entries of one answer.
const maxTimeline = 10_000

// Timeline implements [query.History].
func (s *Store) Timeline(ctx context.Context, q query.TimelineQuery) ([]query.TimelineEntry, error) {
	if len(q.Ordinals) == 0 || q.Limit <= 0 {
		return nil, nil
	}
	b := &sqlBuilder{}
	ordinals := make([]string, len(q.Ordinals))
	for i, o := range q.Ordinals {
		ordinals[i] = b.bind(o)
	}
	conds := []string{
		"account = " + b.bind(q.Account),
		`"partition" = ` + b.bind(uint32(q.Cut.Partition)),
		"record_offset < " + b.bind(q.Cut.UpTo),
		"ordinal IN (" + strings.Join(ordinals, ", ") + ")",
	}
	if k := q.Before; k != nil {
		conds = append(conds, fmt.Sprintf("(time_ms, record_offset, record_index) < (%s, %s, %s)", b.bind(k.TimeMs), b.bind(k.Offset), b.bind(k.Index)))
	}
	sql := fmt.Sprintf(`SELECT time_ms, record_offset, record_index, event_type, properties, idempotency_key FROM events WHERE %s
ORDER BY time_ms DESC, record_offset DESC, record_index DESC LIMIT %s`,
		strings.Join(conds, " AND "), b.bind(int64(min(q.Limit, maxTimeline))))
	c, done, err := s.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var out []query.TimelineEntry
	err = c.query(ctx, sql, b.args, func(ch chunk) error {
		times, offsets, indexes := column[int64](ch, 0), column[int64](ch, 1), column[uint32](ch, 2)
		types, properties, keys := ch.text(3), ch.text(4), ch.text(5)
		for i := range times {
			out = append(out, query.TimelineEntry{
				Key:       query.TimelineKey{TimeMs: times[i], Offset: offsets[i], Index: indexes[i]},
				EventType: types[i], Properties: properties[i], IdempotencyKey: keys[i],
			})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("history: timeline: %w", err)
	}
	return out, nil
}
