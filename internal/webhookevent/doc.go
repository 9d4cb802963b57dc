// Package webhookevent names the events of outbound webhooks.
//
// # Background
//
// The state machine decides which endpoints get which events, so it needs names and
// subscriptions; the console checks them and package webhook delivers the payloads.
// What they share stands here: text in, text out, no network.
//
// # Use
//
// [CheckSubscription] checks a subscription, [Subscribed] reports whether it has an
// event, [Payload] makes the body.
package webhookevent
