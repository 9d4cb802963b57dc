// Package segment is the language of segments: it decides membership from the data
// and the events of a profile. It is pure: no I/O, and time is an argument.
//
// # How a definition is organised
//
// A definition is a boolean tree ([Node]): groups combine conditions with "all"
// or "any", leaves judge a profile. [Parse] is the only way from the JSON a
// client sends to a tree; it refuses everything it does not know with the JSON
// path of the fault ([DefinitionError]). A parsed tree is normal: lists sorted
// and without repetition, numbers exact, times in UTC, addresses in their
// normal form. [Node.Canonical] is its text, and parsing that gives the same
// tree back.
//
// A leaf has a key ([Node.Key]). Leaves with one key have the same answer for
// every profile at every time, up to negation (did, member), so an evaluator with
// state per leaf needs that state once.
//
// # How leaves are judged
//
// [Predicate], [Attribute], [Consent] and [Compare] carry the judgement on
// single values, on stored bytes and without allocating. What an [Activity]
// needs beside them, the history of events, is elsewhere: package query asks
// a database. [Node.Naive] judges a whole tree by a plain scan of one profile's
// events. It is the oracle: slow, obvious, and sharing no arithmetic with the
// rest, so that the others can be tested against it.
//
// Where the definition of the language leaves a choice, the choice and its
// reason are in docs/behaviour/segments.md.
//
// # Invariants
//
//   - S1: at any time, for any definition, every evaluator finds the members
//     that [Node.Naive] finds.
package segment
