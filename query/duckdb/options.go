package duckdb

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime"
)

// Options bound what the store may use. The zero value means the defaults.
type Options struct {
	// MemoryLimitBytes bounds DuckDB's memory: block cache, query operators and
	// uncommitted rows. Queries that need more spill to TempDir. Default 2 GB,
	// at least LeastMemoryBytes.
	MemoryLimitBytes int64
	// Threads bounds the threads that work on queries and appends, over all
	// connections. Default: the number of CPUs, at most 2.
	Threads int
	// TempDir is where queries spill. Default: the path of the database with
	// ".tmp" added. It is created when first needed.
	TempDir string
	// TempLimitBytes bounds TempDir; a query that needs more fails. Default 10 GB.
	TempLimitBytes int64
	// CheckpointBytes is the size of the write-ahead log at which an append
	// also moves the log's rows into the database file. Default 64 MB.
	CheckpointBytes int64
	// Readers bounds the queries that run at once; more wait for their turn, as
	// long as their context allows. Default 4.
	Readers int
	// Replays bounds the replays that run at once, beside the readers; more
	// wait for their turn. Each takes up to 64 MB of memory for what its reader
	// has not taken yet. Default 2.
	Replays int

	// Columns keeps the events a second time, by type and property, in a directory beside
	// the file, so that conditions on one type are answered fast: see package columns.
	// They are made in the background once a question was asked or is expected, and take
	// about as much again as half of the events.
	Columns bool
	// Logger gets messages about the columns; nil is silent.
	Logger *slog.Logger

	// logName is the log whose events these are, "" for any.
	logName string
	// readOnly opens the file without changing it.
	readOnly bool
}

// LeastMemoryBytes is the least MemoryLimitBytes.
const LeastMemoryBytes = 64 << 20

const (
	mb = 1_000_000
	gb = 1_000_000_000
)

func (o Options) withDefaults(path string) Options {
	if o.MemoryLimitBytes == 0 {
		o.MemoryLimitBytes = 2 * gb
	}
	if o.Threads == 0 {
		o.Threads = min(2, runtime.NumCPU())
	}
	if o.TempDir == "" {
		o.TempDir = path + ".tmp"
	}
	if o.TempLimitBytes == 0 {
		o.TempLimitBytes = 10 * gb
	}
	if o.CheckpointBytes == 0 {
		o.CheckpointBytes = 64 * mb
	}
	if o.Readers == 0 {
		o.Readers = 4
	}
	if o.Replays == 0 {
		o.Replays = 2
	}
	return o
}

func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

func (o Options) validate() error {
	var errs []error
	atLeast := func(name string, have, least int64) {
		if have < least {
			errs = append(errs, fmt.Errorf("%s is %d, must be at least %d", name, have, least))
		}
	}
	atLeast("MemoryLimitBytes", o.MemoryLimitBytes, LeastMemoryBytes)
	atLeast("Threads", int64(o.Threads), 1)
	atLeast("TempLimitBytes", o.TempLimitBytes, mb)
	atLeast("CheckpointBytes", o.CheckpointBytes, mb)
	atLeast("Readers", int64(o.Readers), 1)
	atLeast("Replays", int64(o.Replays), 1)
	return errors.Join(errs...)
}
