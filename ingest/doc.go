// Package ingest is Surface B: it lets behavioural events in.
//
// # Background
//
// A request goes through one chain: check the head, authenticate, read the
// body, decode and validate, append one record, wait until it is applied,
// answer. Nothing is stored unless the whole body is JSON, and nothing is
// acknowledged before the record is durable and applied.
//
// # How it is organised
//
// [Handler] holds the chain (handler.go) with one file per link: auth.go,
// body.go (bounded reading, draining, decompression), inflight.go (the memory
// all bodies share), answer.go (JSON written by hand). [NewServer] makes a
// fasthttp server with limits that fit it.
//
// [Decoder] turns the JSON text of events into records, and knows no HTTP:
// decode_event.go reads one event, decode_body.go the bodies of the three
// endpoints, and its exported methods build import records row by row for the
// command line. It sits on internal/jsonscan and writes the layout of package
// eventlog without an allocation per event.
//
// Which input is refused, and how, is written down in
// docs/behaviour/events.md.
//
// # Invariants
//
//   - Q1: the memory of all requests, of all surfaces, is bounded: bodies, unpacked
//     bodies, records and large answers share one [Memory], from which bytes are
//     taken before they are read, and a request that finds none left is answered
//     503 with Retry-After.
//   - What a request sends never causes a status of the 500 class, nor a panic.
//   - A record holds an event only if the answer can name its outcome: results
//     stand in the order of the request, one for each event.
package ingest
