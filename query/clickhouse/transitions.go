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
	return s.transitionRows(ctx, q.Account, q.Cut, func(c kept) string { return transitionsSQL(q, c) })
}

// ProfileTransitions implements [query.History]. A limit beyond 10,000 counts as
// 10,000.
func (s *Store) ProfileTransitions(ctx context.Context, q query.ProfileTransitionsQuery) ([]query.Transition, error) {
	if len(q.Ordinals) == 0 || q.Limit <= 0 {
		return nil, nil
	}
	return s.transitionRows(ctx, q.Account, q.Cut, func(c kept) string { return profileTransitionsSQL(q, c) })
}

// transitionColumns is what transitionRows reads.
const transitionColumns = "record_offset, seq, segment, ordinal, entered, cause, at_ms"

// transitionRows runs a statement for transitions.
func (s *Store) transitionRows(ctx context.Context, account uint64, cut query.Cut, build func(kept) string) ([]query.Transition, error) {
	fail := func(err error) ([]query.Transition, error) {
		return nil, fmt.Errorf("history: transitions of account %d: %w", account, err)
	}
	c, err := s.coverFor(ctx, cut.Partition, cut.UpTo)
	if err != nil {
		return fail(err)
	}
	var out []query.Transition
	err = s.ask(ctx, build(c), func(r driver.Rows) error {
		t, cause := query.Transition{Account: account}, uint8(0)
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

func profileTransitionsSQL(q query.ProfileTransitionsQuery, c kept) string {
	where := fmt.Sprintf(`account = %d AND "partition" = %d AND ordinal IN (%s) AND record_offset < %d AND %s`,
		q.Account, q.Cut.Partition, list(q.Ordinals), q.Cut.UpTo, c.condition(""))
	if b := q.Before; b != nil {
		where += fmt.Sprintf(" AND (at_ms, record_offset, seq) < (toInt64(%d), toInt64(%d), toUInt32(%d))", b.AtMs, b.Key.Offset, b.Key.Seq)
	}
	return "SELECT " + transitionColumns + " FROM transitions WHERE " + where +
		fmt.Sprintf(" ORDER BY at_ms DESC, record_offset DESC, seq DESC LIMIT %d", min(q.Limit, maxTransitions))
}

// transitionsSQL reads in the order of the table, as far as the limit.
func transitionsSQL(q query.TransitionsQuery, c kept) string {
	where := fmt.Sprintf(`account = %d AND "partition" = %d AND record_offset < %d AND %s`, q.Account, q.Cut.Partition, q.Cut.UpTo, c.condition(""))
	if a := q.After; a != (query.TransitionKey{}) {
		where += fmt.Sprintf(" AND (record_offset, seq) > (toInt64(%d), toUInt32(%d)) AND record_offset >= %d", a.Offset, a.Seq, a.Offset)
	}
	if q.Segment != "" {
		where += " AND segment = " + quote(q.Segment)
	}
	return "SELECT " + transitionColumns + " FROM transitions WHERE " + where +
		fmt.Sprintf(" ORDER BY record_offset, seq LIMIT %d", min(q.Limit, maxTransitions))
}
