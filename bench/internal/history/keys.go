package history

import (
	"context"
	"fmt"
)

// Key is one idempotency key as it stands in history.
type Key struct {
	Key       string
	EventType string
	// Rows is how often it is there.
	Rows int
	// Ordinal is the profile of one of the rows.
	Ordinal uint32
}

// Keys calls visit for every key, in no order.
func (f *File) Keys(ctx context.Context, visit func(Key) error) error {
	rows, err := f.db.QueryContext(ctx, fmt.Sprintf("SELECT %[1]s, any_value(%[2]s), count(*), any_value(%[3]s) FROM %[4]s GROUP BY %[1]s",
		columnKey, columnType, columnWho, tableEvents))
	if err != nil {
		return fmt.Errorf("reading keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var k Key
		if err := rows.Scan(&k.Key, &k.EventType, &k.Rows, &k.Ordinal); err != nil {
			return fmt.Errorf("reading keys: %w", err)
		}
		if err := visit(k); err != nil {
			return err
		}
	}
	return rows.Err()
}
