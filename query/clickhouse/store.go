package clickhouse

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/musterhq/muster/query"
)

// Store is a [query.History] in a ClickHouse database. All methods are safe for
// concurrent use, and several stores, also of other processes, may use one
// database.
type Store struct {
	opts                      Options
	conn                      driver.Conn
	readers, replays, writers semaphore
	// blockRows and pieceRows are maxBlockRows and maxPieceRows but in tests.
	blockRows, pieceRows int
	closed               atomic.Bool
	stop                 context.CancelFunc
	sweeper              sync.WaitGroup

	mu struct {
		sync.Mutex
		partitions map[int]*partition
	}
}

var _ query.History = (*Store)(nil)

// Open connects, and creates the database and the tables or brings them to this
// version. Several nodes may do so at once.
func Open(ctx context.Context, opts Options) (*Store, error) {
	opts, co, err := opts.resolve()
	if err != nil {
		return nil, fmt.Errorf("history: ClickHouse: options: %w", err)
	}
	s := &Store{opts: opts, readers: make(semaphore, opts.Readers), replays: make(semaphore, opts.Replays), writers: make(semaphore, opts.Writers),
		blockRows: maxBlockRows, pieceRows: maxPieceRows}
	s.mu.partitions = make(map[int]*partition)
	if err := s.open(ctx, co); err != nil {
		return nil, fmt.Errorf("history: open database %s of ClickHouse at %s: %w", opts.Database, co.Addr[0], err)
	}
	ctx, s.stop = context.WithCancel(context.Background())
	s.sweeper.Go(func() { s.sweepNowAndThen(ctx) })
	return s, nil
}

func (s *Store) open(ctx context.Context, co *clickhouse.Options) error {
	// One cannot connect to a database that is not there.
	first := *co
	first.Auth.Database = ""
	if err := s.connect(&first); err != nil {
		return err
	}
	err := s.exec(ctx, s.opts.QueryTimeout, "CREATE DATABASE IF NOT EXISTS "+identifier(s.opts.Database))
	_ = s.conn.Close()
	if err != nil {
		return err
	}
	co.Auth.Database = s.opts.Database
	if err := s.connect(co); err != nil {
		return err
	}
	err = s.ensureOwner(ctx)
	if err == nil {
		err = s.ensureSchema(ctx)
	}
	if err != nil {
		_ = s.conn.Close()
	}
	return err
}

func (s *Store) connect(co *clickhouse.Options) (err error) {
	s.conn, err = clickhouse.Open(co)
	return err
}

// Usage implements [query.History]. Rows are those of events, also what the
// next sweep will remove; bytes are those of all tables on the server's disk.
func (s *Store) Usage(ctx context.Context) (query.Usage, error) {
	var u query.Usage
	err := s.ask(ctx, `SELECT toInt64((SELECT count() FROM events)), toInt64(sum(bytes_on_disk)) FROM system.parts WHERE active AND database = currentDatabase()`,
		func(r driver.Rows) error { return r.Scan(&u.Rows, &u.Bytes) })
	if err != nil {
		return u, fmt.Errorf("history: usage: %w", err)
	}
	return u, nil
}

// Close ends what is under way and closes the connections. Calls after the
// first return [ErrClosed].
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return ErrClosed
	}
	s.stop()
	s.sweeper.Wait()
	// Every connection is given back once all slots are taken.
	for _, kind := range []semaphore{s.replays, s.readers, s.writers} {
		for range cap(kind) {
			kind <- struct{}{}
		}
		for range cap(kind) {
			<-kind
		}
	}
	if err := s.conn.Close(); err != nil {
		return fmt.Errorf("history: close: %w", err)
	}
	return nil
}
