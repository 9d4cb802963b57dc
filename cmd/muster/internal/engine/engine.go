package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/query/duckdb"
	"github.com/musterhq/muster/resolver"
)

// Options configure an engine. Zero values of limits mean the defaults of the
// packages they belong to.
type Options struct {
	Dir                string
	Logger             *slog.Logger
	MaxRecordBytes     int
	HistoryMemory      int64
	HistoryThreads     int
	CheckpointInterval time.Duration
	GenerationBytes    int64
	CacheBytes         int64
	MaxBacklog         int64
	SpoolBytes         int64
	Skip               map[int][]int64
}

// ErrInUse means that another process has the data directory.
var ErrInUse = errors.New("the data directory is in use")

// Engine is an open data directory.
type Engine struct {
	Log     *file.Log
	History *duckdb.Store
	Node    *resolver.Node

	lock io.Closer
}

// Open opens a data directory, makes it if there is none, and replays. The
// error wraps [ErrInUse] when another process has it.
func Open(ctx context.Context, o Options) (e *Engine, err error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	e = &Engine{}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close(context.Background()))
			e = nil
		}
	}()
	fs := vfs.Default
	if e.lock, err = fs.Lock(filepath.Join(o.Dir, "LOCK")); err != nil {
		return e, fmt.Errorf("%w: %s is held by another muster process; stop it, or name another directory with --data (%w)", ErrInUse, o.Dir, err)
	}
	e.Log, err = file.Open(filepath.Join(o.Dir, "log"), file.Options{FS: fs, MaxRecordBytes: o.MaxRecordBytes, Logger: o.Logger})
	if err != nil {
		return e, fmt.Errorf("open the log: %w", err)
	}
	e.History, err = duckdb.Open(filepath.Join(o.Dir, "history.duckdb"), duckdb.Options{MemoryLimitBytes: o.HistoryMemory, Threads: o.HistoryThreads})
	if err != nil {
		return e, fmt.Errorf("open history: %w", err)
	}
	e.Node, err = resolver.Open(ctx, resolver.Options{
		FS: fs, Dir: filepath.Join(o.Dir, "state"), Log: e.Log, History: e.History,
		Now: time.Now, Rand: rand.Reader, Logger: o.Logger,
		CheckpointInterval: o.CheckpointInterval, GenerationBytes: o.GenerationBytes, CacheBytes: o.CacheBytes,
		MaxBacklog: o.MaxBacklog, Feed: resolver.FeedOptions{SpoolBytes: o.SpoolBytes}, Skip: o.Skip,
	})
	if err != nil {
		return e, fmt.Errorf("open the state: %w", err)
	}
	return e, nil
}

// Close writes a last checkpoint and closes everything in the reverse order of
// opening. ctx bounds how long history may take to catch up.
func (e *Engine) Close(ctx context.Context) error {
	var err error
	if e.Node != nil {
		err = errors.Join(err, e.Node.Close(ctx))
	}
	if e.History != nil {
		err = errors.Join(err, e.History.Close())
	}
	if e.Log != nil {
		err = errors.Join(err, e.Log.Close())
	}
	if e.lock != nil {
		err = errors.Join(err, e.lock.Close())
	}
	return err
}
