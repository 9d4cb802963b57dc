// Package duckdb keeps history in one DuckDB file: the embedded implementation
// of [query.History].
//
// # How data is organised
//
// Four kinds of rows: events (one per event, in log order), aliases (merges),
// transitions (entries into segments and exits, in log order) and progress (per
// partition, the first record offset that is not stored yet).
// docs/formats.md lists their columns. There is no index on events: rows arrive
// in log order, which is nearly time order, so DuckDB's min/max per row group
// prunes time windows, and an index would cost more than the rows themselves.
//
// Events lie in two tables with one view over both. events_sealed takes whole
// row groups of 122,880 rows, which DuckDB compresses and writes straight into
// the file, once. What does not fill a row group waits in events_recent, goes
// through DuckDB's write-ahead log, and is mirrored in memory (append.go).
//
// # Exactly once
//
// One transaction stores a batch's rows, its aliases, its transitions and the
// new position. A crash leaves either all or nothing, and rows below the
// position are dropped when they come again. Invariant L2 of package query follows.
//
// # Appending
//
// Rows go in as data chunks of 2,048 rows, filled column by column
// (chunk.go): fixed-width columns are copied, strings are written as
// references into the batch's own pinned memory and copied once, by DuckDB.
// Batches of a row group or more cost about 1 µs of CPU per row, small ones two
// to four times that; docs/decisions/0003-duckdb-history.md has the numbers.
//
// # Asking
//
// Every query runs on one of a bounded number of connections, reads one
// snapshot, and is interrupted when its context ends. The SQL of activity
// conditions is built by package query; this package adds DuckDB's dialect
// (dialect.go).
//
// Replays have connections of their own, so that one that takes minutes keeps
// no question waiting, and read in pieces, so that it keeps no log from being
// checkpointed (replay.go).
package duckdb
