package duckdb

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/query"
)

// Erase implements [query.History]. Each table is a transaction of its own: a
// crash between leaves some of it, which the repetition finds. Then the file is
// rewritten, see rewrite: nothing else takes out of it what was deleted.
func (s *Store) Erase(ctx context.Context, q query.EraseQuery) error {
	if len(q.Ordinals) == 0 {
		return nil
	}
	s.changing.Lock()
	wait := time.Until(s.nextRewrite)
	s.changing.Unlock()
	if err := pause.For(ctx, wait); err != nil {
		return err
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	again, err := s.columns.forget(&q)
	defer again()
	if err != nil {
		return fmt.Errorf("history: erase: %w", err)
	}
	if err := s.eraseRows(ctx, q); err != nil {
		return err
	}
	if err := s.rewrite(ctx); err != nil {
		return fmt.Errorf("history: rewrite %s: %w", s.path, err)
	}
	return nil
}

func (s *Store) eraseRows(ctx context.Context, q query.EraseQuery) error {
	s.writer.Lock()
	defer s.writer.Unlock()
	w := &s.writer
	if err := s.mirror(ctx); err != nil {
		return fmt.Errorf("history: erase: %w", err)
	}
	if at := w.stored.positions[q.Cut.Partition]; at < q.Cut.UpTo {
		return fmt.Errorf("%w: erase below %d, partition %d stands at %d", query.ErrGap, q.Cut.UpTo, q.Cut.Partition, at)
	}
	// Whatever happens, the tables know what is left of the rows that wait.
	w.stored = nil
	if err := s.erase(ctx, q); err != nil {
		return fmt.Errorf("history: erase in account %d: %w", q.Account, err)
	}
	return nil
}

func (s *Store) erase(ctx context.Context, q query.EraseQuery) error {
	for _, verb := range []string{"DELETE FROM events_sealed", "DELETE FROM events_recent", "DELETE FROM transitions"} {
		if err := s.eraseStep(ctx, verb, "", q); err != nil {
			return err
		}
	}
	return s.eraseStep(ctx, "DELETE FROM aliases", "winner", q)
}

// eraseStep runs a statement for the rows to be erased; also names a second
// column that may have one of the ordinals.
func (s *Store) eraseStep(ctx context.Context, verb, also string, q query.EraseQuery) error {
	args := []any{q.Account, uint32(q.Cut.Partition), q.Cut.UpTo}
	list := make([]string, len(q.Ordinals))
	for i, o := range q.Ordinals {
		args = append(args, o)
		list[i] = fmt.Sprintf("$%d", len(args))
	}
	in := " IN (" + strings.Join(list, ", ") + ")"
	who := "ordinal" + in
	if also != "" {
		who = "(" + who + " OR " + also + in + ")"
	}
	return s.writer.query(ctx, verb+` WHERE account = $1 AND "partition" = $2 AND record_offset < $3 AND `+who, args, nil)
}
