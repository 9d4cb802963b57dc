package resolver

import (
	"errors"

	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// Errors of a node's Submit and reads, wrapped.
var (
	// ErrOverloaded means too much work is waiting. Nothing was stored; try
	// again later (HTTP: 503 with Retry-After).
	ErrOverloaded = refuse.ErrOverloaded
	// ErrUnavailable means the node cannot serve now: it is starting, stopping,
	// or its log or state has failed. Whether a record under way was stored is
	// unknown; retry with the same idempotency key.
	ErrUnavailable = feed.ErrUnavailable
	// ErrNoAccount means no account has this number here.
	ErrNoAccount = errors.New("no such account")
)

// The ways to refuse a record.
var (
	invalid, notFound  = refuse.Invalid, refuse.NotFound
	atLimit, conflicts = refuse.AtLimit, refuse.Conflicts
)

// ErrNotOwner means the partition of an account is not served here: another
// node owns it, or none does at the moment. Nothing was stored and nothing was
// answered, so the same request may be sent to the owner. A record that may
// have been stored is [ErrUnavailable] instead, never both.
var ErrNotOwner = refuse.ErrNotOwner

// ErrNewer means a state or record was made by a newer version of Muster; why that is
// refused stands at ApplyVersion.
var ErrNewer = statefiles.ErrNewer
