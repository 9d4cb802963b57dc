// Package clickhouse keeps history in ClickHouse: the implementation of
// [query.History] for clusters.
//
// # How data is organised
//
// Three tables of rows (events, aliases, transitions) and one of what is
// complete (commits); docs/formats.md lists their columns. All are MergeTree
// tables, one ClickHouse partition for each partition of the log, so that an
// insert makes one part and erasing touches the parts of one partition. Events
// are sorted by account, type and time: a condition reads the marks of its type
// and window. A bloom filter over profiles serves timelines.
//
// # Exactly once
//
// ClickHouse has no transactions over several inserts, and an insert whose
// answer was lost may be there or not. So rows are told from garbage by their
// writer. Each row names its writer, a random number; commits says which records a
// writer has stored completely.
//
//  1. [Store.Append] reads commits. Their cover ([coverOf]) is a list of spans,
//     from record 0 on, each of one writer; its end is the position. Rows below
//     it are dropped from the batch.
//  2. It inserts events, aliases and transitions, and when all were
//     acknowledged (synced to disk), the commit: writer, from, to.
//  3. A writer number is used on only if the append before it succeeded and the
//     cover ends with that very span. After any error, or when another writer has
//     appended, the number is given up for a new one.
//
// Every reader takes from the tables what lies in the cover: of each record the
// rows of one writer. It follows:
//
//   - A row in the cover is there: its commit came after its insert was
//     acknowledged.
//   - It is there once: no number inserts a record twice, because it inserts
//     only from its own end on and never after an error. (A repetition of the
//     insert as such, by a proxy, is known by its insert_deduplication_token.)
//   - A part of an insert cut short, and rows of a writer that was frozen or
//     died, are in no cover as long as they are not committed. If two commit the
//     same records at once, the cover takes for each record one writer or the
//     other. Rows of a record are a function of the log, so it does not matter
//     which.
//   - Erased rows do not come back. A commit is refused when another has reached
//     beyond its beginning, and its records are appended again from the new
//     position. So a commit that passes has its rows stored before anybody could
//     erase in them, and an erasure takes the rows of all writers.
//   - The position is truthful: by induction, a commit up to "to" is made only
//     when all below its "from" was covered and its own rows are stored.
//
// A cover is known by a reader for a cut as soon as it reaches the cut, so reads
// ask nothing more as a rule. What is garbage, and texts of erased rows, is
// removed by the sweep (sweep.go), which says why that is safe. What happens to all of this
// when a table is lost is in tables.go.
//
// # Asking
//
// The SQL of conditions is built by package query; this package adds
// ClickHouse's dialect (dialect.go). Sets of profiles come as one bitmap.
//
// # When ClickHouse is away
//
// Errors that may pass wrap [ErrUnavailable]. Connecting takes at most
// [Options.DialTimeout]; a server that is connected and says nothing for
// [Options.QuietTimeout], not even that it is working, counts as away.
package clickhouse
