package duckdb

import (
	"context"
	"errors"
)

// OpenColumned opens a store that keeps columns, with row groups of so many rows.
func OpenColumned(path string, groupRows int) (*Store, error) {
	s, err := Open(path, Options{Columns: true})
	if err == nil {
		s.groupRows = groupRows
	}
	return s, err
}

// BuildColumns makes at most so many files, and returns how many files there are. An
// erasure meanwhile ends it early, as it ends what the server makes in the background.
func (s *Store) BuildColumns(ctx context.Context, most int) (files int, err error) {
	for more := true; more && err == nil && most > 0; most-- {
		more, err = s.buildColumns(ctx)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = nil
	}
	return len(s.columns.set.Files(0)), err
}
