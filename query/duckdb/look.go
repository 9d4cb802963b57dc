package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// Look returns how far the file at path has stored a partition of a log, without
// changing anything; found is false when there is no file that [OpenResilient] would
// use: none, a damaged one, or one of another log. The error is that of OpenResilient
// where it would refuse the file or the options.
func Look(ctx context.Context, path, log string, opts Options, partition int) (position int64, found bool, err error) {
	opts = opts.withDefaults(path)
	if err := opts.validate(); err != nil {
		return 0, false, fmt.Errorf("history: options: %w", err)
	}
	if err := checkKind(path); err != nil {
		return 0, true, err
	}
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return 0, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("history: %w", err)
	}
	opts.readOnly = true
	position, err = look(ctx, path, log, opts, partition)
	switch {
	case err != nil && inFile(err):
		return 0, false, nil
	case err != nil:
		return 0, true, fmt.Errorf("history: open %s: %w", path, err)
	}
	return position, true, nil
}

func look(ctx context.Context, path, log string, opts Options, partition int) (position int64, err error) {
	var db bindings.Database
	defer func() {
		if db.Ptr != nil {
			bindings.Close(&db)
		}
	}()
	if err := openDatabase(path, opts, &db); err != nil {
		return 0, err
	}
	c, err := connect(db)
	if err != nil {
		return 0, err
	}
	defer c.close()
	version, err := readVersion(c)
	if err != nil || version == noTables {
		return 0, err
	}
	if err := checkVersion(path, version); err != nil {
		return 0, err
	}
	owner := ""
	err = c.query(ctx, "SELECT log FROM log_name", nil, func(ch chunk) error {
		owner = ch.text(0)[0]
		return nil
	})
	if err != nil {
		return 0, err
	}
	if owner != "" && owner != log {
		return 0, errOtherLog
	}
	return c.integer(ctx, `SELECT next_offset FROM progress WHERE "partition" = ?`, uint32(partition))
}
