// Package backup copies a data directory to storage and back.
//
// A backup is a version of a set of package internal/blobtree under the prefix
// "backup": what did not change since an earlier one is not sent again, and
// nothing is ever removed. It has the log, the checkpoints of the state, and
// history if that is in the directory; the rest of the state is rebuilt from
// the checkpoints at a start.
//
// A restore that was cut off leaves the file RESTORING, with which nothing but
// another restore takes the directory.
package backup
