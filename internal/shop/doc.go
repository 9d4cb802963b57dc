// Package shop makes up the history of a shop that never was, to try Muster on.
//
// # What it looks like
//
// Few customers order often, most seldom (lognormal); they live in a few
// countries and are busy when people there are: by hour, weekday and season. A
// visit is page and product views, some of it goes into the cart, some of that
// is bought, a little is sent back weeks later. Amounts are in euros; a return's
// value is what is paid back, a positive number.
//
// Identities come as they do in real shops. Most customers sign up, which gives
// an external id; their e-mail follows when they confirm it, minutes or days
// later, and some never do. Others buy as guests, with an e-mail alone, and a
// part of them signs up afterwards. The newsletter knows the e-mail only, so
// that some people are two profiles until an event with both identifiers joins
// them. [Totals] says how many profiles come out when all is stitched that can
// be.
//
// # How it works
//
// Visits are drawn first and sorted; then their events are made in order of
// time, so memory grows with the visits and not with the events. Everything
// follows from the options alone: no clock, no other randomness.
package shop
