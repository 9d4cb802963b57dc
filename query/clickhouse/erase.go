package clickhouse

import (
	"context"
	"fmt"

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
		err := s.alter(ctx, fmt.Sprintf(`DELETE FROM %s IN PARTITION %d WHERE account = %d AND "partition" = %d AND record_offset < %d AND %s`,
			x[0], q.Cut.Partition, q.Account, q.Cut.Partition, q.Cut.UpTo, x[1]))
		if err != nil {
			return fmt.Errorf("history: erase %s in account %d: %w", x[0], q.Account, err)
		}
	}
	return nil
}
