package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/query"
)

// Counts implements [query.Counter]: of what lies in the cover.
func (s *Store) Counts(ctx context.Context, cut query.Cut, remainder, modulus int) (n query.Counts, err error) {
	c, err := s.coverFor(ctx, cut.Partition, cut.UpTo)
	if err != nil {
		return n, fmt.Errorf("history: count: %w", err)
	}
	where := fmt.Sprintf(` WHERE "partition" = %d AND record_offset < %d AND account %% %d = %d AND %s`, cut.Partition, cut.UpTo, modulus, remainder, c.condition(""))
	for _, x := range []struct {
		sql string
		to  []any
	}{
		{"SELECT toInt64(count()), toInt64(sum(length(event_type) + length(properties) + length(idempotency_key))) FROM events", []any{&n.Events, &n.TextBytes}},
		{"SELECT toInt64(count()) FROM aliases", []any{&n.Aliases}},
		{"SELECT toInt64(count()) FROM transitions", []any{&n.Transitions}},
	} {
		if err := s.ask(ctx, x.sql+where, func(r driver.Rows) error { return r.Scan(x.to...) }); err != nil {
			return n, fmt.Errorf("history: count: %w", err)
		}
	}
	return n, nil
}

var _ query.Counter = (*Store)(nil)
