// Package soak loads the real binary for long at a fixed rate and samples what
// a user would see grow: resident memory, open files, bytes on disk, and the
// latencies of each interval.
//
// The rate is half of the greatest that a closed loop reached just before, with
// segments live and the server's own checkpoints. Beside the load, people are
// merged: each merge is three events, of which the third names the two profiles
// that the first two made. At the end the server is stopped and its history is
// compared with what was acknowledged.
package soak
