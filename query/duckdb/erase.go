package duckdb

import (
	"context"
	"fmt"
	"strings"

	"github.com/musterhq/muster/query"
)

// Erase implements [query.History]. Each table is a transaction of its own: a
// crash between leaves some of it, which the repetition finds.
//
// A deleted row stays where it was until its row group is written anew, so the
// texts of what goes are overwritten first: that makes the checkpoint write
// them. The blocks they were in are free from then on, and written over (see
// scrub) unless there are too many, or a statement under way keeps them.
func (s *Store) Erase(ctx context.Context, q query.EraseQuery) error {
	if len(q.Ordinals) == 0 {
		return nil
	}
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
	return s.scrub(ctx)
}

// maxScrubBytes bounds how much of the file's free space is written over.
const maxScrubBytes = 1 << 30

// scrub writes over the free blocks of the file, which still hold what was in
// them: a table takes them, and goes again.
func (s *Store) scrub(ctx context.Context) error {
	w := &s.writer
	// Refused while a statement is under way elsewhere. Then what was deleted is
	// in the file still, out of reach, until a later checkpoint and its reuse.
	if w.exec("CHECKPOINT") != nil {
		return nil
	}
	free := int64(0)
	err := w.query(ctx, "SELECT CAST(free_blocks * block_size AS BIGINT) FROM pragma_database_size()", nil, func(ch chunk) error {
		free = column[int64](ch, 0)[0]
		return nil
	})
	if err != nil || free == 0 {
		return err
	}
	values := min(free, maxScrubBytes)/8 + 1
	for _, sql := range []string{
		"CREATE OR REPLACE TABLE scrub (x BIGINT USING COMPRESSION uncompressed)",
		fmt.Sprintf("INSERT INTO scrub SELECT range FROM range(%d)", values),
	} {
		if err := w.exec(sql); err != nil {
			return err
		}
	}
	_ = w.exec("CHECKPOINT")
	if err := w.exec("DROP TABLE scrub"); err != nil {
		return err
	}
	_ = w.exec("CHECKPOINT")
	return nil
}

func (s *Store) erase(ctx context.Context, q query.EraseQuery) error {
	for _, verb := range []string{
		"UPDATE events_sealed SET properties = '', idempotency_key = ''",
		"UPDATE events_recent SET properties = '', idempotency_key = ''",
	} {
		if err := s.eraseStep(ctx, verb, "", q); err != nil {
			return err
		}
	}
	// Before they are deleted: else they would not be written anew.
	_ = s.writer.exec("CHECKPOINT")
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
