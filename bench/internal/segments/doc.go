// Package segments measures the segment engine inside a real node: the log in
// files, state with real checkpoints, history in DuckDB, all in this process
// and in one directory.
//
// A run makes larger and larger synthetic accounts (run.go) and measures the same
// things at each size (step.go): one file for each. Events are made by
// world.go from a seed, definitions are in definitions.go. What a larger step
// would take is extrapolated from the last one (estimate.go), so that a run
// stops at its budget of time, memory and disk, and says so.
//
// # What CPU time per event means
//
// It is the process's own user and system time (getrusage) from the first
// record handed over until history has stored the last, by the number of
// events: appending, applying, segments, waiting requests, history, garbage
// collection. Records are built before the clock starts. Checkpoints are measured by
// themselves, too. Those that the node writes meanwhile are in the CPU time and counted; the
// cost beside many segments (cost.go) is measured right behind one, without any.
//
// # Invariants
//
//   - S1: at every size the members of each live segment are those that
//     [query.Evaluate] finds in DuckDB at the same cut and instant; otherwise
//     the run fails.
//   - L2, by way of reads: no read after an acknowledgement misses the event
//     (stale.go).
package segments
