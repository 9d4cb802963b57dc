// Package webhookevent names the events that outbound webhooks tell of.
//
// # Background
//
// The state machine decides which endpoints hear of what, so it must know names
// and subscriptions; the console checks them and package webhook delivers the
// payloads. What they share stands here: text in, text out, no network.
//
// # Use
//
// [CheckSubscription] judges what an endpoint asks for, [Subscribed] whether it
// hears of an event, [Payload] makes the body.
package webhookevent
