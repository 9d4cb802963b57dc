// Package trackingapi lets the calls of Segment's SDKs in, and of those that speak as they
// do: RudderStack's and PostHog's. An application changes one host name and its write key.
//
// # Background
//
// These SDKs judge an answer by its status and by fields of its body, and each of them
// judges otherwise. So the answer is exactly 200 {"success":true} once all events are
// durable and applied. An event that is refused does not fail its batch: it stands in the
// answer under "rejected" and among the refused live events. docs/sending-events.md says
// what each SDK makes of a failure.
//
// # How it is organised
//
// [Handler] answers requests (handler.go); auth.go finds the source of a write key, body.go
// reads and unpacks, cors.go and settings.go answer browsers. decode.go reads the JSON of a
// call into a message, by internal/jsonscan; segment.go and posthog.go say what the messages
// of an SDK mean, and build an [eventlog.Event] of each; object.go has the operations on
// JSON objects in canonical text that they need. clock.go is the rule by which an event gets
// its time.
//
// A write key names its account, so that a node of a cluster knows where a request belongs
// before anything is looked up (see [Locate]).
//
// # Invariants
//
//   - What a browser's key may not do is refused here (alias, merge, other origins), or
//     marked in the record by [eventlog.Event.Public] for the state machine to refuse.
//   - An event's time is computed once, from the clock of the request, and written in the
//     record.
//   - Q1: bodies, unpacked bodies, records and answers are taken from [ingest.Memory].
package trackingapi
