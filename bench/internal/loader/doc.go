// Package loader sends events to a server on the loopback interface and
// measures it.
//
// # How it works
//
// A [Fleet] is a number of connections, each with a goroutine and a
// [payload.Worker] of its own. A connection is plain HTTP/1.1 without
// pipelining: one write per request, then the answer is read and judged before
// the next one. Nothing is allocated per request.
//
// # Phases
//
// [Fleet.Sweep] makes the known profiles known. [Fleet.Saturate] is a closed
// loop: every connection sends again as soon as it has its answer; it gives
// the greatest rate, and latencies that say little. [Fleet.Pace] is an open
// loop: requests have instants at which they are due, whatever became of those
// before, and latency counts from that instant, so that a stalled server
// cannot hide its stall by being sent less (no coordinated omission).
//
// # What counts
//
// A request counts as acknowledged only when its answer says so: status 202,
// success, and all its events accepted. Every [deepEvery]th answer is also read
// entry by entry. Acknowledged events are kept as ranges ([Range]).
package loader
