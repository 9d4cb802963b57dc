// Package engine opens and closes what every embedded command stands on: the
// log, history and the state of one data directory.
//
//	DIR/LOCK            held while a process has the directory
//	DIR/log/            the event log (package eventlog/file)
//	DIR/state/          state and checkpoints (package resolver)
//	DIR/history.duckdb  history (package query/duckdb), its write-ahead log and
//	                    its directory for spilling beside it
package engine
