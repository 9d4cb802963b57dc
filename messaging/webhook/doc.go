// Package webhook delivers HTTP requests to addresses that users chose:
// outbound webhooks and the webhook steps of flows.
//
// Background. Two things are hard about it. The receiver must be able to tell
// that a request is ours and not a replay: requests carry the headers of
// Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature). And a
// URL that a user chose must not become a way into the network this process
// stands in (SSRF): Guard judges a URL when it is registered, and again, at
// the socket, the address that is really dialled, so that neither a name that
// resolves to a private address nor one that changes between look-up and dial
// (DNS rebinding) gets through. Redirects are not followed and the
// environment's proxies are not used, because either would let someone else
// choose the address.
//
// Organisation. Leaf package; it knows nothing of accounts, logs or queues.
//
//	secret.go   signing secrets
//	sign.go     Sign and Verify
//	guard.go    which URLs are allowed; address.go: which addresses
//	request.go  one delivery and its checks
//	client.go   Client.Deliver: one attempt, classified
//	backoff.go  when to try again
//
// The names of events and the payload around their data are in
// internal/webhookevent, which the state machine knows, too.
//
// Use. The owner of the durable queue bounds how many deliveries are under way, calls
// Client.Deliver, records the Result and, for Retry, asks Backoff when to try
// next. All attempts of one delivery carry the same ID, so that the receiver can
// drop repeats: delivery is at least once.
//
// Invariants, which tests name:
//
//	W1  no connection is made to an address that Guard refuses, whatever DNS says
//	W2  what Sign signed, Verify accepts; any changed byte, and any time out of tolerance, it refuses
//	W3  memory and time per delivery are bounded whatever the receiver does
package webhook
