// Package engine keeps the members of every segment of an account exact at
// every instant, as a pure function of its calls, and emits each entry and exit.
//
// # Background
//
// A definition is a tree over conditions. Scanning all events to count members
// costs seconds; the engine keeps the answers instead and changes them when
// something happens: an event touches only the conditions on its type, for its
// profile only; an answer that changes touches only the segments that use it.
// Time comes by calls like everything else: windows run out when [Engine.Advance]
// passes the exact instant, in order of instant and ordinal. Reads at a later
// instant look ahead at what falls due until then (read.go).
//
// # How data is organised
//
//   - A leaf is a condition in its positive form, shared by all segments that
//     use it. It keeps a bitmap of the profiles that answer otherwise than one of
//     whom nothing is known would: complements need no state.
//   - A source is the events of one type that pass the same filters. Its states
//     keep, for each profile, the least that decides their leaves from now on
//     (internal/fold), apart from any threshold. A value is a short byte string.
//   - The states of one type of events lie together, person first: a group of up
//     to sixteen maps each ordinal to a row, which has their values as sections
//     (group.go). Rows are packed in pages of sixteen without pointers (page.go).
//     An event finds its row once, goes through it once and writes it back once
//     (rowedit.go). A deleted state leaves its slot at once and its values bit by
//     bit; no other state gets the slot before they are dropped.
//     Of many states, those whose filters ask for another text are not looked at, and of
//     many leaves on a count or a sum those alone whose constants it passed, of many
//     windows those alone that it makes full (dispatch.go).
//   - Windows of different lengths over the same events share the state of the longest: one
//     that becomes live takes the leaves of those that it can do for (registry.go).
//   - A wheel keeps when profiles of a leaf must be judged again: buckets of
//     time as bitmaps, the one at the edge opened into exact instants (internal/wheel).
//   - A segment has the bitmap of its members. Segments are judged after those
//     they refer to.
//
// # Building
//
// A leaf that is new is kept from the record on that defined it. Its past comes
// from outside: the engine says what it needs ([Engine.Work]), a [Loader] or a
// [Scanner] turns history and profiles into chunks, which come back as records
// ([Engine.Load]), each of bounded size, in order of ordinals, exactly once. What
// has happened meanwhile is united with it, profile by profile. A definition
// goes live when all its leaves are ready: membership switches at once, and the
// pending transitions follow in pieces.
//
// # Invariants
//
//   - S1: members at any instant are those of the naive evaluator.
//   - S2: entered − left = members, for each segment, once no transition is
//     pending.
//   - L3: a call does bounded work, beside [Engine.Define] and what grows with
//     the number of leaves.
//   - R1: the state depends on the calls only, whatever was frozen and restored
//     between.
package engine
