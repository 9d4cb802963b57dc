// Package paging is how lists are answered in pages: the kinds of cursors, the
// cursors of lists by age and by ordinal, and the numbers of a query.
//
// A cursor is bytes in base64 that a client hands back as it got it: a byte for
// its [Kind] and the place it names. All kinds are in one list, so that no two
// have one byte and a cursor of one is refused where another is read.
package paging
