package muster

import (
	"errors"
	"fmt"
	"time"
)

// Errors of [Client.Send], which are those of [Dropped], too.
var (
	// ErrQueueFull means that the queue holds [Config.QueueEvents] events or
	// [Config.QueueBytes] bytes: events come faster than the server takes them, or it
	// cannot be reached.
	ErrQueueFull = errors.New("muster: the queue is full; the server is slower than the events, or cannot be reached")
	// ErrClosed means that Send was called after Close.
	ErrClosed = errors.New("muster: the client is closed")
	// ErrTooLarge means that the event alone is larger than [Config.BatchBytes] or
	// [Config.QueueBytes].
	ErrTooLarge = errors.New("muster: the event is too large")
	// ErrNotSent means that the context of Close ended before the event was recorded.
	ErrNotSent = errors.New("muster: the client was closed before the event was recorded")
)

// Dropped is an event that is not recorded, or not known to be.
type Dropped struct {
	// Event is the event with its idempotency key. Numbers in it are [json.Number]s when
	// it comes from the queue.
	Event Event
	// Err says why: a [*RefusedError] from the server, a [*RetryError] after all retries,
	// one of the errors above, the error of a context, or what is wrong with the event.
	Err error
	// MayBeRecorded is true when the event was sent and no answer said what became of it.
	// Sending it again is harmless within 72 hours, since it has its idempotency key.
	MayBeRecorded bool
}

// RefusedError is an answer of the server that another attempt would not change.
type RefusedError struct {
	// StatusCode is the status of the answer: 202 when the event was refused, or the
	// credentials were; any other when the request was.
	StatusCode int
	// Message is the server's text, which names the field and the remedy.
	Message string
}

// Error returns the status and the message.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("muster: refused by the server (status %d): %s", e.StatusCode, e.Message)
}

// RetryError means that the attempts of [Config.GiveUpAfter] all failed.
type RetryError struct {
	Attempts int
	After    time.Duration // from the first attempt to the last
	Err      error         // of the last attempt
}

// Error returns how often and how long the event was tried, and the last error.
func (e *RetryError) Error() string {
	return fmt.Sprintf("muster: given up after %d attempts in %v: %v", e.Attempts, e.After.Round(time.Millisecond), e.Err)
}

// Unwrap returns the error of the last attempt.
func (e *RetryError) Unwrap() error { return e.Err }
