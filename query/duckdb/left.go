package duckdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrNotOurs means that a file may have what is kept nowhere else: it is another log's, or
// goes beyond the log.
var ErrNotOurs = errors.New("the file is left where it is")

// Left returns what there is of a history in the file at path: the file, what belongs to it,
// and what was set aside of it. Copies that people made have other names.
func Left(path string) ([]string, error) {
	left, err := asides(path)
	if err != nil {
		return nil, err
	}
	// The file itself is last: what is beside it is nothing without it.
	for _, suffix := range []string{".wal", ".tmp", ColumnsSuffix, rewriteSuffix, rewriteSuffix + ".wal", ".tmp" + rewriteSuffix, ""} {
		if _, err := os.Lstat(path + suffix); err == nil {
			left = append(left, path+suffix)
		}
	}
	return left, nil
}

// RemoveLeft removes what [Left] returns. No process has the file open, and the history of the
// log of that name is kept elsewhere: there it has all rows of records below ends, by
// partition. A damaged file goes as well, like those that were set aside. The error wraps
// [ErrNotOurs], and all stays, where the file is of another log, or has records that the log
// has not.
func RemoveLeft(ctx context.Context, path, log string, opts Options, ends []int64) error {
	left, err := Left(path)
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); err == nil {
		if err := checkKind(path); err != nil {
			return err
		}
		opts = opts.withDefaults(path)
		if err := opts.validate(); err != nil {
			return fmt.Errorf("history: options: %w", err)
		}
		opts.readOnly = true
		for partition, end := range ends {
			at, err := look(ctx, path, log, opts, partition)
			switch {
			case errors.Is(err, errOtherLog):
				return fmt.Errorf("%w: %s: %w", ErrNotOurs, path, err)
			case err != nil && !inFile(err):
				return fmt.Errorf("history: %s: %w", path, err)
			case at > end:
				return fmt.Errorf("%w: %s has stored records up to %d, the log ended at %d", ErrNotOurs, path, at, end)
			}
		}
	}
	for _, name := range left {
		// There may be a directory where the file was.
		if e := os.RemoveAll(name); e != nil {
			err = errors.Join(err, fmt.Errorf("history: %w", e))
		}
	}
	if err != nil {
		return err
	}
	return syncFile(filepath.Dir(path))
}
