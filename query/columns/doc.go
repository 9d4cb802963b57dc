// Package columns keeps the events of an embedded history a second time, by
// account, type and property, so that a condition reads what it looks at and
// nothing else.
//
// # How data is organised
//
// A [Set] is a directory of files, each with all events of a range of records of
// one partition; ranges do not overlap and may leave holes. Within a file the
// events of one account and one type are a group: a column of ordinals, one of
// times, and for each key of the properties a dictionary of the different values,
// as JSON text, and for each event the number of its value, 0 for none. What is newest,
// and what is not yet in a file, is the same in memory ([Builder]).
//
// A filter is judged once for each different value, by the code that judges it in
// the segment engine, and then looked up for each event. docs/formats.md has the
// bytes.
//
// # What it is not
//
// Everything here follows from history and may be removed at any time. What is
// not here is asked of history: ranges without a file, groups whose properties
// could not be read, and keys with so many different values that a dictionary
// would be larger than what it stands for.
//
// Ordinals are those of the events; merges are applied when they are read. So a
// merge changes no file. An erasure removes the files that have events of the
// account; they are rebuilt from what history then has.
package columns
