// Package importer brings files of past events into an account, each row once,
// whatever is interrupted or repeated.
//
// # Background
//
// A file is named by the SHA-256 of its content, after decompression. The state
// machine keeps, for each file, the first row that is not stored, and takes
// rows from there only. So an import may be stopped, lost or repeated at any
// time: it asks where to continue, and what is there already is not stored again.
// Two identical rows of a file are two events, because a row is known by its
// number.
//
// # How it is organised
//
// [Open] makes a [Source] of a file: decompressed, hashed, spooled first if it
// cannot be read twice. Rows come out of it as JSON (jsonl.go, csv.go), are
// gathered in chunks (chunk.go) by one goroutine and stored by another (run.go)
// through a [Target]: the node of this process (node.go) or a server (http.go).
//
// A row that is refused still counts as a row, so that the numbers of rows are
// the file's own and do not depend on what was refused. The state remembers which
// rows it were, and the next import of the file tries them again.
package importer
