package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// maxTransitions bounds the transitions of one answer.
const maxTransitions = 10_000

// Transitions implements [query.History]. A limit beyond 10,000 counts as
// 10,000.
func (s *Store) Transitions(ctx context.Context, q query.TransitionsQuery) ([]query.Transition, error) {
	if q.Limit <= 0 {
		return nil, nil
	}
	fail := func(err error) ([]query.Transition, error) {
		return nil, fmt.Errorf("history: transitions of account %d: %w", q.Account, err)
	}
	c, err := s.coverFor(ctx, q.Cut.Partition, q.Cut.UpTo)
	if err != nil {
		return fail(err)
	}
	var out []query.Transition
	err = s.ask(ctx, transitionsSQL(q, c), func(r driver.Rows) error {
		t, cause := query.Transition{Account: q.Account}, uint8(0)
		if err := r.Scan(&t.Key.Offset, &t.Key.Seq, &t.Segment, &t.Ordinal, &t.Entered, &cause, &t.AtMs); err != nil {
			return err
		}
		t.Cause = segment.Cause(cause)
		out = append(out, t)
		return nil
	})
	if err != nil {
		return fail(err)
	}
	return out, nil
}

// transitionsSQL reads in the order of the table, as far as the limit.
func transitionsSQL(q query.TransitionsQuery, c cover) string {
	where := fmt.Sprintf(`account = %d AND "partition" = %d AND record_offset < %d AND %s`, q.Account, q.Cut.Partition, q.Cut.UpTo, c.condition(""))
	if a := q.After; a != (query.TransitionKey{}) {
		where += fmt.Sprintf(" AND (record_offset, seq) > (toInt64(%d), toUInt32(%d)) AND record_offset >= %d", a.Offset, a.Seq, a.Offset)
	}
	if q.Segment != "" {
		where += " AND segment = " + quote(q.Segment)
	}
	return "SELECT record_offset, seq, segment, ordinal, entered, cause, at_ms FROM transitions WHERE " + where +
		fmt.Sprintf(" ORDER BY record_offset, seq LIMIT %d", min(q.Limit, maxTransitions))
}
