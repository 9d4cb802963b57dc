package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"time"

	bindings "github.com/duckdb/duckdb-go-bindings"

	"github.com/musterhq/muster/internal/lowpriority"
	"github.com/musterhq/muster/query"
)

// Store is a [query.History] in one DuckDB file. All methods are safe for
// concurrent use; appends run one at a time.
type Store struct {
	path    string
	opts    Options
	db      bindings.Database
	readers chan *conn // idle connections; as many as Options.Readers in all
	replays chan *conn // likewise, Options.Replays
	// groupRows, tailBytes, pieceRows and exportPiece are fullGroup, maxTailBytes,
	// maxPieceRows and the constant of that name but in tests.
	groupRows, tailBytes, pieceRows, exportPiece int

	columns *columnKeeper // nil without columns

	// changing is held by what appends and erases, before the writer's lock.
	changing sync.Mutex
	// nextRewrite is when the file may be rewritten again. Guarded by changing.
	nextRewrite time.Time

	writer struct {
		lock
		*conn
		chunk  bindings.DataChunk
		stored *stored // nil when it has to be read again
		closed bool
	}
}

var _ query.History = (*Store)(nil)

// ErrClosed says that the store has been closed.
var ErrClosed = errors.New("history is closed")

// Open opens the database file at path, and creates it when there is none. The
// directory must exist. A file must be open once only; another process that
// has it open makes Open fail.
func Open(path string, opts Options) (*Store, error) {
	if path == "" {
		return nil, errors.New("history: path is empty, name a file")
	}
	if err := checkKind(path); err != nil {
		return nil, err
	}
	opts = opts.withDefaults(path)
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("history: options: %w", err)
	}
	s := &Store{path: path, opts: opts, readers: make(chan *conn, opts.Readers), replays: make(chan *conn, opts.Replays),
		groupRows: fullGroup, tailBytes: maxTailBytes, pieceRows: maxPieceRows, exportPiece: exportPiece}
	s.writer.lock = newLock()
	if err := s.open(); err != nil {
		s.release()
		return nil, fmt.Errorf("history: open %s: %w", path, err)
	}
	return s, nil
}

// checkKind refuses a symbolic link in the place of the file, since DuckDB keeps files beside
// the one that it leads to, which are not looked for there, and what would wait for another
// process when it is opened.
func checkKind(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil: // whoever opens it says so
	case info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice) != 0:
		return fmt.Errorf("history: %s is a pipe, a socket or a device, and must be a file. Move it away, and put the file back; without one history is rebuilt from the log", path)
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("history: %s is a symbolic link. Put the file itself there; to have it on another disk, put the whole data directory there", path)
	}
	return nil
}

func (s *Store) open() error {
	opts := s.opts
	if err := removeDatabase(s.path + rewriteSuffix); err != nil {
		return err
	}
	if err := openDatabase(s.path, opts, &s.db); err != nil {
		return err
	}
	w, err := connect(s.db)
	if err != nil {
		return err
	}
	s.writer.conn = w
	if err := ensureSchema(w, s.path); err != nil {
		return err
	}
	for range opts.Readers {
		r, err := connect(s.db)
		if err != nil {
			return err
		}
		s.readers <- r
	}
	for range opts.Replays {
		r, err := connect(s.db)
		if err != nil {
			return err
		}
		s.replays <- r
		if err := r.exec("SET streaming_buffer_size = '" + replayBuffer + "'"); err != nil {
			return err
		}
	}
	s.writer.chunk = newEventsChunk()
	if opts.Columns {
		return s.openColumns()
	}
	return nil
}

// openDatabase opens the file with every bound set, so that nothing depends on
// what DuckDB derives from the machine.
func openDatabase(path string, opts Options, db *bindings.Database) error {
	var config bindings.Config
	if bindings.CreateConfig(&config) != bindings.StateSuccess {
		return errors.New("duckdb: cannot create a configuration")
	}
	defer bindings.DestroyConfig(&config)
	mode := "AUTOMATIC"
	if opts.readOnly {
		mode = "READ_ONLY"
	}
	bytes := func(n int64) string { return strconv.FormatInt(n, 10) + "B" }
	for _, kv := range [][2]string{
		{"memory_limit", bytes(opts.MemoryLimitBytes)},
		{"threads", strconv.Itoa(opts.Threads)},
		{"temp_directory", opts.TempDir},
		{"max_temp_directory_size", bytes(opts.TempLimitBytes)},
		{"checkpoint_threshold", bytes(opts.CheckpointBytes)},
		// What is needed is linked in; nothing is fetched from the network, and
		// SQL reaches no file but the database.
		{"autoinstall_known_extensions", "false"},
		{"autoload_known_extensions", "false"},
		{"allow_community_extensions", "false"},
		{"enable_external_access", "false"},
		{"storage_compatibility_version", "latest"},
		{"access_mode", mode},
	} {
		if bindings.SetConfig(config, kv[0], kv[1]) != bindings.StateSuccess {
			return fmt.Errorf("duckdb: setting %s=%s refused", kv[0], kv[1])
		}
	}
	var msg string
	var state bindings.State
	// DuckDB's own threads give way to the taking of events. A query has the thread that asks,
	// too.
	lowpriority.Do(func() { state = bindings.OpenExt(path, db, config, &msg) })
	if state != bindings.StateSuccess {
		return fmt.Errorf("duckdb: %s", msg)
	}
	return nil
}

// reader waits for a connection to query with; give it back with done.
func (s *Store) reader(ctx context.Context) (c *conn, done func(), err error) {
	return take(ctx, s.readers)
}

func take(ctx context.Context, idle chan *conn) (c *conn, done func(), err error) {
	select {
	case c, ok := <-idle:
		if !ok {
			return nil, nil, ErrClosed
		}
		return c, func() { idle <- c }, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// Usage implements [query.History]. Bytes are those of the database file and
// its write-ahead log.
func (s *Store) Usage(ctx context.Context) (query.Usage, error) {
	var u query.Usage
	c, done, err := s.reader(ctx)
	if err != nil {
		return u, err
	}
	defer done()
	if u.Rows, err = c.integer(ctx, "SELECT count(*) FROM events"); err != nil {
		return u, err
	}
	for _, name := range []string{s.path, s.path + ".wal"} {
		info, err := os.Stat(name)
		switch {
		case err == nil:
			u.Bytes += info.Size()
		case !errors.Is(err, os.ErrNotExist):
			return u, fmt.Errorf("history: %w", err)
		}
	}
	return u, nil
}

// checkpointIfDue moves the write-ahead log into the file when it is as large as
// an append would let it become, were no statement under way.
func (s *Store) checkpointIfDue() {
	info, err := os.Stat(s.path + ".wal")
	if err != nil || info.Size() < s.opts.CheckpointBytes {
		return
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	if !s.writer.closed {
		// Refused when a statement is under way elsewhere; then a later append
		// does it, and if the file is at fault, that append says so.
		_ = s.writer.exec("CHECKPOINT")
	}
}

// Close waits for what is running, moves the write-ahead log into the file and
// closes it. Calls after the first return [ErrClosed].
func (s *Store) Close() error {
	s.changing.Lock()
	s.writer.Lock()
	closed := s.writer.closed
	s.writer.closed = true
	s.writer.Unlock()
	s.changing.Unlock()
	if closed {
		return ErrClosed
	}
	s.closeColumns()
	// Without the lock, which a replay may want between its pieces.
	for _, idle := range []chan *conn{s.replays, s.readers} {
		for range cap(idle) {
			(<-idle).close()
		}
		close(idle)
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	err := s.writer.exec("CHECKPOINT")
	if errors.Is(err, query.ErrUnavailable) {
		err = nil // for want of space; what is in the write-ahead log stays there
	}
	s.release()
	if err != nil {
		return fmt.Errorf("history: close %s: %w", s.path, err)
	}
	return nil
}

// release frees everything that is there.
func (s *Store) release() {
	for _, idle := range []chan *conn{s.replays, s.readers} {
		for len(idle) > 0 {
			(<-idle).close()
		}
	}
	if s.writer.chunk.Ptr != nil {
		bindings.DestroyDataChunk(&s.writer.chunk)
	}
	if s.writer.conn != nil {
		s.writer.conn.close()
	}
	if s.db.Ptr != nil {
		bindings.Close(&s.db)
	}
}
