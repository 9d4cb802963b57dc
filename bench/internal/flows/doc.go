// Package flows measures flows inside the real muster binary: what they cost
// beside events, how soon they act, and what enrolments cost that sleep.
//
// # Load
//
// load.go finds the greatest rate of single events with the 20 live segments of
// the other benches and no flows, then takes flows live (mix.go makes them from
// the seed) and sends the same again, as fast as it goes, at rates that are
// shares of that, and at half of the rate without flows. At the end the flows are paused and the greatest rate is
// found once more, so that what drifted meanwhile shows.
//
// Beside each load, probe.go sends events of its own at a low rate. Each is by a
// new person and enrols in two flows: one calls a sink on the loopback interface
// (sink.go), the other sends an e-mail to a relay there. Measured are event sent →
// answered, counted from when the event was due; right after the answer the
// enrolments are asked for, and answered → seen is until both were read; then
// answered → the call arrives, and answered → the e-mail arrives. A wrong or
// missing enrolment is stale, and a run with one fails. At the end the counts of
// these two flows and what arrived must be the number of probes, each once.
//
// # Sleepers
//
// sleep.go enrols many profiles, all at once, in a flow that waits for a month,
// and compares memory, start-up and disk with the same server before. Memory is
// the Go heap after a collection and resident memory less what Go holds free.
// wake.go measures how late waits end, one at a time and many at one instant.
//
// # Other work of the machine
//
// Each phase notes what share of the processors other processes took (see
// [child.Used]).
// With much of it only ratios within the run say something.
package flows
