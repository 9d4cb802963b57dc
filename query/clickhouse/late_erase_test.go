package clickhouse

import (
	"context"
	"strings"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/query"
)

// overtaking is a connection on which others are at work before the next insert of
// events.
type overtaking struct {
	driver.Conn
	first func()
}

func (o *overtaking) PrepareBatch(ctx context.Context, sql string, opts ...driver.PrepareBatchOption) (driver.Batch, error) {
	if f := o.first; f != nil && strings.Contains(sql, "events") {
		o.first = nil
		f()
	}
	return o.Conn.PrepareBatch(ctx, sql, opts...)
}

// TestErasedStaysErasedBesideAnotherWriter: the next owner of a partition stores
// its rows beside the present one while it warms it. What it has under way when the
// present one stores a person's rows and erases them does not bring them back, and
// its append succeeds all the same.
func TestErasedStaysErasedBesideAnotherWriter(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	opts := Options{DSN: services.ClickHouse(t), Database: services.Database(t)}
	owner, next := openOptions(t, opts), openOptions(t, opts)
	appendRecords(t, owner, 0, 0, 100)
	appendRecords(t, next, 0, 100, 120) // it has a number to continue with
	rows := func() int64 {
		t.Helper()
		c, _, err := owner.readCover(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		return scalar(t, owner, "SELECT count() FROM events WHERE ordinal = 130 AND record_offset < 150 AND "+c.condition(""))
	}
	next.conn = &overtaking{Conn: next.conn, first: func() {
		appendRecords(t, owner, 0, 120, 150)
		if rows() == 0 {
			t.Error("there is nothing to erase")
		}
		if err := owner.Erase(ctx, query.EraseQuery{Cut: query.Cut{Partition: 0, UpTo: 150}, Account: 7, Ordinals: []uint32{130}}); err != nil {
			t.Error(err)
		}
		if n := rows(); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	}}
	appendRecords(t, next, 0, 120, 170)
	if n := rows(); n != 0 {
		t.Errorf("%d rows of the erased person are there again", n)
	}
	if at, err := owner.Position(ctx, 0); err != nil || at != 170 {
		t.Errorf("the position is %d (%v)", at, err)
	}
}

// TestErasingNothing: where there are no rows to erase, no delete goes through the parts.
func TestErasingNothing(t *testing.T) {
	t.Parallel()
	s := openTest(t)
	appendRecords(t, s, 0, 0, 100)
	mutations := func() int64 {
		return scalar(t, s, "SELECT toInt64(count()) FROM system.mutations WHERE database = currentDatabase()")
	}
	before := mutations()
	erase := func(ordinal uint32) {
		t.Helper()
		if err := s.Erase(context.Background(), query.EraseQuery{Cut: query.Cut{Partition: 0, UpTo: 100}, Account: 7, Ordinals: []uint32{ordinal}}); err != nil {
			t.Fatal(err)
		}
	}
	erase(1 << 30)
	if n := mutations() - before; n != 0 {
		t.Errorf("%d deletes for a person without rows", n)
	}
	erase(30)
	if mutations() == before {
		t.Error("no delete for a person with rows")
	}
}
