package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
)

// The table and its columns.
const (
	tableEvents = "history.events"
	columnKey   = "idempotency_key"
	columnWho   = "ordinal"
	columnType  = "event_type"
)

// File is a history file that is open for reading.
type File struct {
	db *sql.DB
}

// Open opens the file, which no server may have open. Nothing in it is changed. The program
// imports the driver "duckdb" itself: most packages here need no more than the types, and
// linking DuckDB into the tests of each takes seconds.
func Open(ctx context.Context, path string) (*File, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("opening history: %w", err)
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return nil, fmt.Errorf("opening history: %w", err)
	}
	// Temporary tables belong to a connection.
	db.SetMaxOpenConns(1)
	attach := fmt.Sprintf("ATTACH '%s' AS history (READ_ONLY)", strings.ReplaceAll(path, "'", "''"))
	for _, statement := range []string{"SET memory_limit = '4GB'", "SET threads = 2", attach} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(fmt.Errorf("opening history %s: %w", path, err), db.Close())
		}
	}
	return &File{db: db}, nil
}

// Close closes the file.
func (f *File) Close() error { return f.db.Close() }
