package duckdb

import (
	"context"
	"fmt"
	"os"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// Inspection is the result of [Inspect] for a file that is whole.
type Inspection struct {
	// Rows are the events that are stored.
	Rows int64
	// Positions are how far partitions are stored.
	Positions map[int]int64
	// WAL is what is wrong with the write-ahead log where that is passed over as a whole:
	// rows that it may have had are missing. nil when nothing is.
	WAL error
}

// Damaged reports whether an error of this package is the fault of the file: that it is
// damaged, or is of another log.
func Damaged(err error) bool { return err != nil && inFile(err) }

// Inspect reads all of the file at path, which no process has open, and changes nothing.
// What a write-ahead log beside it holds is read as well. log names the log whose
// events it must have. [Damaged] tells errors of the file from others.
func Inspect(ctx context.Context, path, log string, opts Options) (out Inspection, err error) {
	if err := checkKind(path); err != nil {
		return out, err
	}
	opts.TempDir, err = os.MkdirTemp("", "muster-history-") // of statements that spill
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(opts.TempDir)
	opts = opts.withDefaults(path)
	if err := opts.validate(); err != nil {
		return out, fmt.Errorf("history: options: %w", err)
	}
	opts.readOnly = true
	if out, err = inspect(ctx, path, log, opts); err != nil {
		return out, fmt.Errorf("history: %s: %w", path, err)
	}
	if out.WAL = checkWAL(path + ".wal"); out.WAL != nil && !inFile(out.WAL) {
		return out, fmt.Errorf("history: %w", out.WAL)
	}
	return out, nil
}

func inspect(ctx context.Context, path, log string, opts Options) (out Inspection, err error) {
	if _, err := look(ctx, path, log, opts, 0); err != nil {
		return out, err
	}
	var db bindings.Database
	defer func() {
		if db.Ptr != nil {
			bindings.Close(&db)
		}
	}()
	if err := openDatabase(path, opts, &db); err != nil {
		return out, err
	}
	c, err := connect(db)
	if err != nil {
		return out, err
	}
	defer c.close()
	version, err := readVersion(c)
	if err != nil || version == noTables {
		return out, err
	}
	for _, table := range checkedTables {
		if table == "transitions" && version < 2 {
			continue
		}
		if err := checkTable(ctx, table, func(piece func(*conn) error) error { return piece(c) }); err != nil {
			return out, fmt.Errorf("check %s: %w", table, err)
		}
	}
	out.Positions = map[int]int64{}
	err = c.query(ctx, `SELECT "partition", next_offset FROM progress`, nil, func(ch chunk) error {
		partitions, next := column[uint32](ch, 0), column[int64](ch, 1)
		for i, p := range partitions {
			out.Positions[int(p)] = next[i]
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	out.Rows, err = c.integer(ctx, "SELECT count(*) FROM events")
	return out, err
}
