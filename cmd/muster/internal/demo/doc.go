// Package demo fills an empty account with a made-up shop, so that the first look at
// Muster shows something alive.
//
// # How it works
//
// [Fill] does what a developer and a marketer would do, through the same API: it uploads
// a CSV file of newsletter subscribers, imports six weeks of events, saves segments,
// templates, flows, a webhook, and sends a campaign, of which some people open and click
// their captured e-mails. There is no other way to the state.
//
// The history comes from package shop: the same seed and the same day give the same
// people and events. It continues beyond the present; what is later is sent as it falls
// due ([Shop.Live]), so that events keep arriving at the hours at which people shop, and
// one every few seconds at least.
package demo
