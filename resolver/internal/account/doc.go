// Package account has the state of one account: what is stored of the account itself (its
// company, keys and settings), its profiles, its segments with their engine, its sets of
// profiles, and the states of all features. It knows neither records nor the machine; the
// machine makes the features that need it, changes accounts by records, and hands readers
// a view of them.
//
//   - state.go: the account and the entity that it is stored as
//   - settings.go: settings, their bounds and defaults
//   - people.go, sets.go: profiles by their ids, and named sets of profiles
//   - segments.go, used_in.go, used_in_events.go: saved definitions, and what refers to what
//   - register.go: the table of all features, with their commands and the order of the hash
//   - features.go: what all features take part in
//   - load.go, hash.go, totals.go: taking back what a checkpoint has, the state's hash, sums
package account
