// Package profile holds what the state machine keeps of a profile, and how it lies
// in memory and in the store. It knows nothing of accounts, records or the store.
//
// A profile is named by its ordinal within its account: 0 for the first. Layouts
// that are encoded here are on disk; docs/formats.md describes them.
package profile
