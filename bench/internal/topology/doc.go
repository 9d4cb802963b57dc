// Package topology starts, stops, freezes and kills the servers of a bench. A
// [Victim] is one server on files, killed again and again with SIGKILL at random
// moments, also while it starts, while a gate holds its clients back. A [Cluster] is
// nodes on Kafka and ClickHouse, each reached through proxies of its own if faults
// are to fall on its connections. A [Single] is one server on files that is
// measured.
package topology
