// Package evaluation finds out, at one instant, which profiles definitions hold for, which
// segments hold a profile, and why.
//
// A [Question] is one state of an account: the segment engine's answers to definitions,
// the profiles if they have to be looked at, and the cut of the log up to which history is
// asked for the rest. It takes these under the read lock and evaluates outside of it.
//
// Questions to history wait in a queue, and so do combinations of what the engine knows;
// neither waits for the other (Q1). The columns of fields spare previews a scan of the
// profiles.
package evaluation
