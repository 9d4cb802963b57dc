package duckdb

import (
	"context"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
)

// Activity implements [query.History].
func (s *Store) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	sql, args, err := query.ActivitySQL(dialect{}, q)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	c, done, err := s.reader(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	var set denseSet
	err = c.query(ctx, sql, args, func(ch chunk) error {
		set.add(column[uint32](ch, 0))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("history: activity %s of account %d: %w", q.Leaf.Event, q.Account, err)
	}
	return set.bitmap(), nil
}

// denseSet collects ordinals that come in no order. Ordinals of an account are
// dense, so one bit for each up to the greatest is small: 1.25 MB for 10 M
// profiles.
type denseSet struct{ words []uint64 }

func (d *denseSet) add(ordinals []uint32) {
	for _, o := range ordinals {
		w := int(o / 64)
		if w >= len(d.words) {
			d.words = append(d.words, make([]uint64, max(w+1-len(d.words), len(d.words)))...)
		}
		d.words[w] |= 1 << (o % 64)
	}
}

func (d *denseSet) bitmap() *roaring.Bitmap {
	if len(d.words) == 0 {
		return roaring.New()
	}
	return roaring.FromDense(d.words, true)
}
