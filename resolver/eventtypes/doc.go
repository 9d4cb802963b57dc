// Package eventtypes has the event catalog of an account: which types of events came, how
// often and when, and the names and descriptions that people gave them. Beside each type it
// has a sketch of the properties of its events, and one of the attributes of profiles
// (package catalog): editors of conditions suggest and warn by them.
//
// A type is in the catalog from its first event on, or from its definition. The counts are
// state like all else, so they depend on the log alone (R1); sketches of an account with
// erased profiles are left out of the state's hash, since replaying its redacted log gives
// lower counts.
package eventtypes
