// Package engine opens and closes what every embedded command stands on: the
// log, history and the state of one data directory.
//
//	DIR/LOCK            held while a process has the directory
//	DIR/log/            the event log (package eventlog/file)
//	DIR/log.json        instead: which topic of Kafka the log is, and this node's
//	                    id (package eventlog/kafka)
//	DIR/state/          state and checkpoints (package resolver)
//	DIR/history.duckdb  history (package query/duckdb), its write-ahead log and
//	                    its directory for spilling beside it, unless it is in
//	                    ClickHouse (package query/clickhouse)
//	DIR/history.json    history is in ClickHouse, beside a log of its own
//	DIR/backups.json    where backups of the directory went (package backup)
//
// A directory belongs to one log and so does a history; what does not belong
// together is refused before anything is applied (belongs.go). With Kafka
// the node is a member of the topic's cluster while it is open (package cluster,
// topic.go) and takes and releases partitions as they are assigned (keeper.go).
package engine
