package services

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

func connect(t *testing.T, dsn, database string) driver.Conn {
	t.Helper()
	opt, err := clickhouse.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	opt.Auth.Database = database
	opt.Protocol = clickhouse.Native
	// The handshake ends by this time-out alone, not by a query's context.
	opt.DialTimeout = 2 * time.Second
	conn, err := clickhouse.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

func execute(ctx context.Context, t *testing.T, conn driver.Conn, query string) {
	t.Helper()
	if err := conn.Exec(ctx, query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func one[T any](ctx context.Context, t *testing.T, conn driver.Conn, query string) T {
	t.Helper()
	var v T
	if err := conn.QueryRow(ctx, query).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// insertRows inserts rows from … from+n-1 as one batch.
func insertRows(ctx context.Context, t *testing.T, conn driver.Conn, from, n uint64) {
	t.Helper()
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO events (position, type, at)")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := batch.Append(from+i, "order_placed", time.UnixMilli(int64(from+i)).UTC()); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
}

const createEvents = `CREATE TABLE events (position UInt64, type LowCardinality(String), at DateTime64(3, 'UTC'))
	ENGINE = MergeTree ORDER BY position SETTINGS non_replicated_deduplication_window = 100`

// What the history needs of ClickHouse is there: batches over the native
// protocol, sets as bitmaps, inserts that are known again by a token, inserts
// that the server gathers, settings of a query, mutations and materialised views.
func TestSharedClickHouseIsAServer(t *testing.T) {
	conn := connect(t, ClickHouse(t), Database(t))
	ctx := within(t, patience)
	execute(ctx, t, conn, createEvents)
	insertRows(ctx, t, conn, 0, 1000)
	if got := one[uint64](ctx, t, conn, "SELECT count() FROM events"); got != 1000 {
		t.Errorf("%d rows after a batch of 1000", got)
	}

	got := one[uint64](ctx, t, conn, `SELECT bitmapAndCardinality(
		(SELECT groupBitmapState(position) FROM events WHERE position < 600),
		(SELECT groupBitmapState(position) FROM events WHERE position >= 500))`)
	if got != 100 {
		t.Errorf("the bitmaps have %d in common, want 100", got)
	}

	token := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"insert_deduplication_token": "p0-1000"}))
	insertRows(token, t, conn, 1000, 10)
	insertRows(token, t, conn, 2000, 10)
	if got := one[uint64](ctx, t, conn, "SELECT count() FROM events"); got != 1010 {
		t.Errorf("%d rows after the token's second use, want 1010", got)
	}

	async := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"async_insert": 1, "wait_for_async_insert": 1}))
	execute(async, t, conn, "INSERT INTO events VALUES (5000, 'signed_up', now64(3))")
	if got := one[uint64](ctx, t, conn, "SELECT count() FROM events WHERE type = 'signed_up'"); got != 1 {
		t.Errorf("%d rows by an asynchronous insert, want 1", got)
	}

	execute(ctx, t, conn, "ALTER TABLE events DELETE WHERE position < 500 SETTINGS mutations_sync = 2")
	execute(ctx, t, conn, "OPTIMIZE TABLE events FINAL")
	if got := one[uint64](ctx, t, conn, "SELECT count() FROM events"); got != 511 {
		t.Errorf("%d rows after a deletion, want 511", got)
	}

	execute(ctx, t, conn, "CREATE TABLE counts (type String, n AggregateFunction(uniqExact, UInt64)) ENGINE = AggregatingMergeTree ORDER BY type")
	execute(ctx, t, conn, "CREATE MATERIALIZED VIEW counts_mv TO counts AS SELECT type, uniqExactState(position) AS n FROM events GROUP BY type")
	insertRows(ctx, t, conn, 10_000, 7)
	if got := one[uint64](ctx, t, conn, "SELECT uniqExactMerge(n) FROM counts"); got != 7 {
		t.Errorf("the view counts %d, want 7", got)
	}

	_, err := conn.Query(clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_rows_to_read": 10})), "SELECT position FROM events")
	var refused *clickhouse.Exception
	if !errors.As(err, &refused) || refused.Code != 158 {
		t.Errorf("reading more than max_rows_to_read: %v, want code 158", err)
	}
}

func TestDatabasesEndWithTheirTest(t *testing.T) {
	conn := connect(t, ClickHouse(t), "")
	ctx := within(t, patience)
	var name string
	t.Run("inner", func(t *testing.T) {
		name = Database(t)
		execute(ctx, t, conn, "CREATE DATABASE "+name+"_more")
		if got := one[uint64](ctx, t, conn, "SELECT count() FROM system.databases WHERE startsWith(name, '"+name+"')"); got != 2 {
			t.Fatalf("%d databases were created, want 2", got)
		}
	})
	if got := one[uint64](ctx, t, conn, "SELECT count() FROM system.databases WHERE startsWith(name, '"+name+"')"); got != 0 {
		t.Errorf("%d databases are left of a test that has ended", got)
	}
}

// Kill -9 loses nothing that was acknowledged, the tokens of inserts included.
func TestOwnClickHouseKeepsItsDataWhenKilled(t *testing.T) {
	s := OwnClickHouse(t)
	ctx := within(t, patience)
	conn := connect(t, s.DSN(), "")
	execute(ctx, t, conn, "CREATE DATABASE muster")
	conn = connect(t, s.DSN(), "muster")
	execute(ctx, t, conn, createEvents)
	token := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"insert_deduplication_token": "first"}))
	insertRows(token, t, conn, 0, 1000)

	before := s.PID()
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := probeClickHouse(s.DSN()); err == nil {
		t.Fatal("it answers although it was killed")
	}
	if err := s.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if s.PID() == before {
		t.Fatalf("process %d was not started again", before)
	}
	conn = connect(t, s.DSN(), "muster")
	insertRows(token, t, conn, 0, 1000)
	if got := one[uint64](ctx, t, conn, "SELECT count() FROM events"); got != 1000 {
		t.Errorf("%d rows after a restart and the same insert once more, want 1000", got)
	}
}

func TestOwnClickHouseFreezesAndThaws(t *testing.T) {
	s := OwnClickHouse(t)
	if err := s.Freeze(); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, s.DSN(), "")
	if err := conn.Ping(within(t, time.Second)); err == nil {
		t.Error("it answers although it is frozen")
	}
	if err := s.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := conn.Ping(within(t, patience)); err != nil {
		t.Errorf("thawed: %v", err)
	}
}

func TestClickHouseDiffersFromItsDefaultsOnlyAsMeant(t *testing.T) {
	conn := connect(t, ClickHouse(t), "")
	if os.Getenv(EnvClickHouse) != "" {
		t.Skipf("%s names a server of unknown settings", EnvClickHouse)
	}
	rows, err := conn.Query(context.Background(), "SELECT name FROM system.settings WHERE changed AND value != default ORDER BY name")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var changed []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		changed = append(changed, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"enable_producing_buckets_out_of_order_in_aggregation", "output_format_arrow_use_native_writer"}; !slices.Equal(changed, want) {
		t.Errorf("settings that are not ClickHouse's defaults: %v, want %v", changed, want)
	}
}
