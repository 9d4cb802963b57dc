package engine

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/resolver/statecheck"
)

func (o *Options) historyFile() string { return filepath.Join(o.Dir, HistoryFile) }

func (o *Options) duckdb() duckdb.Options {
	return duckdb.Options{MemoryLimitBytes: o.HistoryMemory, Threads: o.HistoryThreads}
}

// check refuses, before anything in the directory is changed, what would be refused
// later: a log, a state and a history that do not belong together, or are of a newer
// build. name is the log's.
func check(ctx context.Context, fs vfs.FS, o Options, name string, log []file.Bounds) error {
	for partition, b := range log {
		stored := func() (int64, error) {
			at, _, err := duckdb.Look(ctx, o.historyFile(), name, o.duckdb(), partition)
			if err != nil {
				err = fmt.Errorf("open history: %w", err)
			}
			return at, err
		}
		if o.ClickHouse != nil {
			stored = nil
		}
		if o.Checkpoints != "" {
			continue // a newer state may be there
		}
		if err := statecheck.Start(fs, filepath.Join(o.Dir, "state"), name, partition, b.Start, b.End, stored); err != nil {
			return fmt.Errorf("open the state: %w", err)
		}
	}
	return nil
}
