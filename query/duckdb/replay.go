package duckdb

import (
	"context"
	"errors"

	"github.com/musterhq/muster/query"
)

// Replay implements [query.History].
func (s *Store) Replay(context.Context, query.ReplayQuery, func(*query.ReplayBlock) error) error {
	return errors.ErrUnsupported
}

// Transitions implements [query.History].
func (s *Store) Transitions(context.Context, query.TransitionsQuery) ([]query.Transition, error) {
	return nil, errors.ErrUnsupported
}
