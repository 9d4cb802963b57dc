// Package flowcrash kills a real server again and again while flows run on it,
// and checks that each enrolment exists once and each effect was intended once
// (invariants F1 and L1).
//
// # A run
//
// Flows of every kind of trigger but dates are live. Workers make people and post
// the events, calls and list entries that trigger them, each with a key of its
// own, until it is acknowledged, through kills at random moments: under load,
// while the server starts, while it writes checkpoints. Some flows are paused and
// resumed, one is published, some people are merged and some unsubscribe on the
// way. E-mails go to an SMTP server and webhooks to HTTP servers of the run, which
// sometimes answer an error, hang, or drop the connection behind the request.
//
// # What is checked
//
// At the end, when nothing runs any more, everything is compared with what must
// have happened by the events on people's timelines, which themselves are compared
// with what was acknowledged: which people must have been enrolled when (windows,
// re-entry and pauses included), which path each enrolment must have taken through
// the definition, to the millisecond where nothing is waited for from outside, what
// tags and attributes that leaves, how many messages and calls each step made under
// how many ids, what of them was repeated and whether a kill or a fault explains
// it, and what it cost in credits. Counts must equal what the enrolments say. A
// paused flow must not have moved anybody.
//
// What was given up without an answer may have counted or not: what history says
// of it must then hold everywhere. Where two things fall on one millisecond, either
// order is taken.
//
// The oracle knows definitions and histories, not the server's code.
package flowcrash
