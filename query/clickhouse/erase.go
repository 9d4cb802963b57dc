package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/query"
)

// Erase implements [query.History]. When it returns, no query sees the rows
// again. They are marked as deleted in their place (a lightweight delete); the
// next sweep rewrites the parts that hold marked rows, and the old parts are
// gone a minute later: [Options.SweepEvery] and the time of that, by default
// within two hours. Each table is a statement of its own: an error between
// leaves some of it, which the repetition finds.
func (s *Store) Erase(ctx context.Context, q query.EraseQuery) error {
	if len(q.Ordinals) == 0 {
		return nil
	}
	done, err := s.writers.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	at, err := s.Position(ctx, q.Cut.Partition)
	if err != nil {
		return err
	}
	if at < q.Cut.UpTo {
		return fmt.Errorf("%w: erase below %d, partition %d stands at %d", query.ErrGap, q.Cut.UpTo, q.Cut.Partition, at)
	}
	who := list(q.Ordinals)
	for _, x := range [][2]string{
		{"events", "ordinal IN (" + who + ")"},
		{"transitions", "ordinal IN (" + who + ")"},
		{"aliases", "(ordinal IN (" + who + ") OR winner IN (" + who + "))"},
	} {
		// Whose writer's rows they are does not matter: garbage goes too.
		_, err := s.remove(ctx, x[0], q.Cut.Partition, fmt.Sprintf("account = %d AND record_offset < %d AND %s", q.Account, q.Cut.UpTo, x[1]))
		if err != nil {
			return fmt.Errorf("history: erase %s in account %d: %w", x[0], q.Account, err)
		}
	}
	return nil
}

// remove marks rows of a table as deleted, and returns how many there were. Without any it
// asks for nothing: a delete rewrites something in each part.
func (s *Store) remove(ctx context.Context, table string, partition int, where string) (rows uint64, err error) {
	where = fmt.Sprintf(`"partition" = %d AND %s`, partition, where)
	err = s.query(ctx, s.opts.QueryTimeout, "SELECT count() FROM "+table+" WHERE "+where, func(r driver.Rows) error { return r.Scan(&rows) })
	if err != nil || rows == 0 {
		return 0, err
	}
	return rows, s.alter(ctx, fmt.Sprintf("DELETE FROM %s IN PARTITION %d WHERE %s", table, partition, where))
}
