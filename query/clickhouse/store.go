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
	background           sync.WaitGroup
	// sick has a token when something of the schema is missing.
	sick   chan struct{}
	server *clickhouse.Options // without a database: one cannot connect to one that is not there

	mu struct {
		sync.Mutex
		partitions map[int]*partition
		onLoss     func() // nil until it is set
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
		blockRows: maxBlockRows, pieceRows: maxPieceRows, sick: make(chan struct{}, 1)}
	s.mu.partitions = make(map[int]*partition)
	if err := s.open(ctx, co); err != nil {
		return nil, fmt.Errorf("history: open database %s of ClickHouse at %s: %w", opts.Database, co.Addr[0], err)
	}
	ctx, s.stop = context.WithCancel(context.Background())
	s.background.Go(func() { s.sweepNowAndThen(ctx) })
	s.background.Go(func() { s.healNowAndThen(ctx) })
	return s, nil
}

func (s *Store) open(ctx context.Context, co *clickhouse.Options) error {
	server := *co
	server.Auth.Database = ""
	s.server = &server
	co.Auth.Database = s.opts.Database
	var err error
	if s.conn, err = clickhouse.Open(co); err != nil {
		return err
	}
	if err = s.ensureAll(ctx); err != nil {
		_ = s.conn.Close()
	}
	return err
}

// ensureAll makes what is not there: the database, its owner and its tables.
func (s *Store) ensureAll(ctx context.Context) error {
	server, err := clickhouse.Open(s.server)
	if err != nil {
		return err
	}
	within, w := s.watched(ctx, s.opts.QueryTimeout)
	err = s.classify(within, server.Exec(within, "CREATE DATABASE IF NOT EXISTS "+identifier(s.opts.Database)))
	w.stop()
	_ = server.Close()
	if err != nil {
		return err
	}
	if err := s.ensureOwner(ctx); err != nil {
		return err
	}
	return s.ensureSchema(ctx)
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
	s.background.Wait()
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
