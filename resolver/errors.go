package resolver

import "errors"

// Errors of Submit that say "not now": the caller may send the same request
// again later (HTTP: 503 with Retry-After). With an idempotency key on each
// event the repeat is safe even when the first try was stored after all.
var (
	// ErrOverloaded means too much is waiting to be applied; the record was not
	// stored.
	ErrOverloaded = errors.New("too many requests are waiting to be applied")
	// ErrUnavailable means the node cannot take records at present: it is
	// starting, stopping, or its log or state has failed. Whether the record
	// was stored is unknown.
	ErrUnavailable = errors.New("node is not available")
)
