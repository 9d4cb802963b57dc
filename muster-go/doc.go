// Package muster sends behavioural events to a Muster server.
//
// # Use
//
// A [Client] is made once per process, used by any number of goroutines, and closed
// at the end:
//
//	client, err := muster.New(muster.Config{
//		URL:       "https://muster.example.com",
//		AppID:     os.Getenv("MUSTER_APP_ID"),
//		AppSecret: os.Getenv("MUSTER_APP_SECRET"),
//		OnDropped: func(d muster.Dropped) { log.Printf("event not recorded: %v", d.Err) },
//	})
//	…
//	defer client.Close(ctx)
//	client.Send(ctx, muster.Event{Type: "signed_up", User: muster.User{Email: "ann@example.com"}})
//
// [Client.Send] puts the event into a queue and returns. One goroutine sends the
// queue in batches, in the order of the calls of Send, one request at a time.
//
// # What is certain
//
//   - An event counts once. It gets an idempotency key in Send, unless it has one, and
//     each retry carries the same key.
//   - Each event that Send was given is recorded, or reaches [Config.OnDropped] with
//     the reason, once. That holds up to the end of Close; a process that is killed
//     loses its queue, so an event that must survive a crash belongs into a table of
//     your own first, with its idempotency key.
//   - Events reach the server in the order in which Send was called.
//   - Memory is bounded by [Config.QueueEvents] and [Config.QueueBytes].
//
// # Retries
//
// After no answer, a truncated answer, and the statuses 408, 429 and 5xx (but 501
// and 505), the client retries with exponential backoff, not before Retry-After, for as
// long as [Config.GiveUpAfter]. It sends a batch that is refused as a whole (400) or as
// too large (413) in halves, so that one invalid event fails alone. Any other
// status is final: the events of the request reach OnDropped.
package muster
