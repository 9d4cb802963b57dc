// Package query reads and feeds history: the columnar store of every resolved
// event, which answers backfills, ad-hoc segment counts, profile timelines and
// analytics. History never sits between an event and its acknowledgement.
//
// # How data is organised
//
// A row is one event of one profile. It carries its position: the offset of
// the record it came from and its index in that record. Positions make
// appending idempotent: a store knows the offset it has stored up to
// ([History.Position]) and drops what it already has, so rows are there exactly
// once whatever crashes between.
//
// Profiles appear as 32-bit ordinals of their account. When two profiles
// merge, the rows of the merged profile stay as they are and an [Alias] row maps
// its ordinal to the winner's. Queries map every row's ordinal through the aliases
// that were valid at the cut.
//
// # The cut
//
// A query names the offset it may see (UpTo) and the instant it is asked for
// (At). It reads rows and aliases of records below UpTo only, so that its
// answer belongs to one state of the state machine, however far the store has
// got meanwhile.
//
// # Invariants
//
//   - L2: each acknowledged event is one row, whatever is retried or crashed.
//   - S1: at any time, for any definition, the members found here are those of
//     the naive evaluator in package segment.
package query
