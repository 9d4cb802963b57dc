// Package contest measures Muster beside servers that do less, in one run.
//
// In every round and for every mode (single events, batches) it loads, one
// after the other and never at the same time: the baseline server that parses,
// the baseline server that only reads, and the real binary on a new data
// directory. All are processes of their own under the same loader, connections
// and bodies, so what differs is the server. Rounds are interleaved because
// the speed of a shared machine drifts; the summary takes medians.
//
// Muster is first sent every known profile once. Then it is saturated in a
// closed loop, then paced in an open loop. After the load its counts are asked
// for (which waits until history has stored everything), it is stopped, and
// its history is compared with what was acknowledged: a fast server that loses
// an event has no rate.
package contest
