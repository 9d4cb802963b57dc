package engine

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/query/clickhouse"
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

// openClickHouse opens history in ClickHouse. owner names the log that it belongs to; without
// one any database will do.
func (o *Options) openClickHouse(ctx context.Context, owner string) (*clickhouse.Store, error) {
	c := *o.ClickHouse
	c.Owner, c.Logger = owner, o.Logger
	return clickhouse.Open(ctx, c)
}

// checkClickHouse is [check] for a history in ClickHouse: one that cannot be reached, or
// belongs to another log. id is the log's, 0 for one that is not made yet.
func checkClickHouse(ctx context.Context, o Options, id uint64) error {
	if o.ClickHouse == nil {
		return nil
	}
	owner := ""
	if id != 0 {
		owner = fileIdentity(id)
	}
	store, err := o.openClickHouse(ctx, owner)
	if err != nil {
		return historyError(o, err)
	}
	return store.Close()
}
