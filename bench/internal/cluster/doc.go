// Package cluster measures nodes of muster that keep their log in Apache Kafka
// and their history in ClickHouse, all on one machine, beside the bare clients of
// both in the same run.
//
// # Ingest
//
// Two groups of nodes, one node and three say, have a topic and a database each,
// with a company in every partition and the same live segments. Rounds are
// interleaved: in each, one after the other and never at the same time, the
// groups are loaded, by requests to any node and by requests to the owner alone,
// and bare kafka-go produces records that were read back from a group's topic:
// one for each request, as a client of muster's waits for its own, and full
// batches, which is the most that the broker takes. Bare clickhouse-go inserts
// rows that were read back from a group's database. Ratios are of the same round.
// Groups that are not loaded idle meanwhile.
//
// In the end each acknowledged event must be in ClickHouse once and nothing else,
// and live segments by numbers of events must count what follows from the
// requests.
//
// # Moves
//
// One partition is filled with profiles and segments. Then nodes join, are
// stopped, join again and are killed, while a probe posts events to it and asks
// for a count at a steady rate, each again until it is answered. The longest that
// one of them waited is how long the partition was unavailable. Each count must
// include all that was acknowledged before it was asked for, and in the end each
// probe must have counted once.
package cluster
