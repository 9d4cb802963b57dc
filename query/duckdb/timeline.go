package duckdb

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
)

func (s *Store) Timeline(ctx context.Context, q query.TimelineQuery) ([]query.TimelineEntry, error) {
	panic("todo")
}
func (s *Store) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	panic("todo")
}
