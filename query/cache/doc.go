// Package cache keeps what history has answered, in bounded memory, in front of
// either back end of package query. Its answers are those of the back end.
//
// # What is kept
//
// The cache keeps the inputs of answers, so that another threshold, another
// instant or another granularity needs no query:
//
//   - matches: the events behind a condition on a window or behind a series, as
//     columns sorted by time: (time, ordinal, value);
//   - a summary: per profile the count, the sum, the least or the greatest of
//     the events behind a condition. One over all time needs no matches; one over a
//     window holds until the next event leaves the window.
//   - an answer: the bitmap that a summary gave for a comparison.
//
// # Why it is exact
//
// Each entry belongs to one account and to one cut: the records below an offset.
// Rows below a cut change in three ways only. Rows of later records, whatever time
// they carry (late events, imports), lie behind the offset: an entry is extended
// by asking for the records from its cut on, unless none of the types concerned
// was appended since. A merge gives rows of the past to another profile, and an
// erasure takes rows away: both end the account's epoch, and with it its entries.
//
// The cache learns of rows, merges and erasures because they pass through it
// (Append, Erase): its tracker knows the newest row by account and type, and the
// newest merge. What it has not seen itself (the partition was elsewhere
// meanwhile) it does not use. An entry is immutable and holds its whole key, so
// losing one, or a clash of hashes in ristretto, costs a question and no more.
// What cannot be kept (too large, a cut of the past, events later than the
// instant asked for) is asked of the back end, as if there were no cache.
package cache
