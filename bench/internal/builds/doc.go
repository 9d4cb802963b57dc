// Package builds compares two builds of the server on a machine whose speed changes from one
// moment to the next: both run at once, and the load goes to one and the other in turns that
// are short against such changes.
//
// Each turn is a closed loop. Two turns beside each other, one of each build, are a pair; pairs
// begin with one and the other build in turn, so that neither always comes first. What is told
// is the ratio within pairs: its median, and the interval that holds the true median with 95 %
// confidence, which orders the ratios and assumes that pairs are independent. Work that goes on
// over several turns makes them less so: a build compared with itself shows what a run can tell
// apart.
//
// What a build does behind its turn (writing checkpoints and history) takes time from the
// other's, and the other way round. The CPU time of a build is therefore also told over the
// whole run, by event.
package builds
