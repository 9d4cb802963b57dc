// Package duckdb keeps history in one DuckDB file: the embedded implementation
// of [query.History].
//
// # How data is organised
//
// Three tables: events (one row per event, in log order), aliases (merges) and
// progress (per partition, the first record offset that is not stored yet).
// docs/formats.md lists their columns. There is no index on events: rows arrive
// in log order, which is nearly time order, so DuckDB's min/max per row group
// prunes time windows, and an index would cost more than the rows themselves.
//
// # Exactly once
//
// One transaction stores a batch's rows, its aliases and the new position. A
// crash leaves either all or nothing, and rows below the position are dropped
// when they come again. Invariant L2 of package query follows.
//
// # Appending
//
// Rows go in as data chunks of 2,048 rows, filled column by column
// (chunk.go): fixed-width columns are copied, strings are written as
// references into the batch's own pinned memory and copied once, by DuckDB.
// A transaction of at least one row group (122,880 rows) is compressed and
// written straight into the database file; smaller ones go through DuckDB's
// write-ahead log and are written again at its next checkpoint. Large batches
// are therefore cheaper by about half; see
// docs/decisions/0003-duckdb-history.md for the numbers.
//
// # Asking
//
// Every query runs on one of a bounded number of connections, reads one
// snapshot, and is interrupted when its context ends. The SQL of activity
// conditions is built by package query; this package adds DuckDB's dialect
// (dialect.go).
package duckdb
