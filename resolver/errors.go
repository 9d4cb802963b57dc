package resolver

import (
	"errors"

	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// Errors of [Node.Submit] and reads, wrapped.
var (
	// ErrOverloaded means too much work is waiting. Nothing was stored; try
	// again later (HTTP: 503 with Retry-After).
	ErrOverloaded = errors.New("too much work is waiting")
	// ErrUnavailable means the node cannot serve now: it is starting, stopping,
	// or its log or state has failed. Whether a record under way was stored is
	// unknown; retry with the same idempotency key.
	ErrUnavailable = feed.ErrUnavailable
	// ErrNoAccount means no account has this number here.
	ErrNoAccount = errors.New("no such account")
)

// CodePublicTypes is the code of the refusal of an event that would bring one more new event
// type than browsers' keys may.
const CodePublicTypes = "too_many_event_types"

// The ways to refuse a record.
var (
	invalid, notFound  = refuse.Invalid, refuse.NotFound
	atLimit, conflicts = refuse.AtLimit, refuse.Conflicts
)
