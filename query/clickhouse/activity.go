package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
)

// Activity implements [query.History]. The ordinals come as one bitmap.
func (s *Store) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	fail := func(err error) (*roaring.Bitmap, error) {
		return nil, fmt.Errorf("history: activity %s of account %d: %w", q.Leaf.Event, q.Account, err)
	}
	c, err := s.coverFor(ctx, q.Cut.Partition, q.Cut.UpTo)
	if err != nil {
		return fail(err)
	}
	sql, args, err := query.ActivitySQL(dialect{c}, q)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	set := roaring.New()
	err = s.ask(ctx, "SELECT CAST(groupBitmapState(toUInt32(o)) AS String) FROM ("+bound(sql, args)+")", func(r driver.Rows) error {
		var state []byte
		if err := r.Scan(&state); err != nil {
			return err
		}
		return readBitmap(set, state)
	})
	if err != nil {
		return fail(err)
	}
	return set, nil
}
