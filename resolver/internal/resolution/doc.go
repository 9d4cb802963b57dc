// Package resolution has the profiles of accounts, and resolves identities: it finds the
// profile that an event belongs to, and works out what the event makes of it. It does not
// know the machine; what it needs of the rest of an account it asks of a [Host].
//
// Of each account a [State] has the map from identifiers to profiles, the headers, and the
// documents, which are in the store. An event passes through three steps:
//
//   - [State.ReadWindow] and [State.LookUp] hash the identifiers of events and look them up
//     (lookup.go).
//   - [State.Resolve] finds the profile, attaches what is new, merges profiles that turn out
//     to be the same person, and sets fields and attributes (resolve.go, merge.go, traits.go;
//     anonymous.go, claims.go and shared_values.go have the rules for identifiers that say
//     less than others). All this happens in scratch memory: a refused event has changed
//     nothing.
//   - [State.Commit] and [State.Store] make the result the state.
//
// The scratch memory is of [Work], so events are resolved one after the other, and a
// [Result] is valid until the next call of Resolve.
package resolution
