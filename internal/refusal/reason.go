package refusal

import "github.com/valyala/fasthttp"

// Reason says why a request was refused.
type Reason struct {
	name string
	at   int
	// ours: the service could not do what it should have.
	ours bool
}

// The reasons. The set is fixed: each is a series of the metric.
var (
	Invalid      = reason("invalid", false)
	Unauthorized = reason("unauthorized", false)
	Forbidden    = reason("forbidden", false)
	NotFound     = reason("not_found", false)
	Method       = reason("method_not_allowed", false)
	Timeout      = reason("timeout", false)
	Conflict     = reason("conflict", false)
	TooLarge     = reason("too_large", false)
	MediaType    = reason("unsupported_media_type", false)
	RateLimited  = reason("rate_limited", false)
	LongHead     = reason("head_too_long", false)
	// NoEvents: the request was in order, and every event in it was refused.
	NoEvents    = reason("no_event_accepted", false)
	Internal    = reason("internal_error", true)
	Unavailable = reason("unavailable", true)
	Other       = reason("other", false)
)

var reasons []*Reason

func reason(name string, ours bool) *Reason {
	r := &Reason{name: name, at: len(reasons), ours: ours}
	reasons = append(reasons, r)
	return r
}

func ofStatus(status int) *Reason {
	switch status {
	case 400, 422:
		return Invalid
	case 401:
		return Unauthorized
	case 402, 403:
		return Forbidden
	case 404, 410:
		return NotFound
	case 405:
		return Method
	case 408:
		return Timeout
	case 409:
		return Conflict
	case 413:
		return TooLarge
	case 415:
		return MediaType
	case 429:
		return RateLimited
	case 431:
		return LongHead
	case 502, 503, 504:
		return Unavailable
	}
	if status >= 500 {
		return Internal
	}
	return Other
}

// mark is the key under which a request keeps its reason.
type mark struct{}

// Mark reports that a request is refused. The last mark counts.
func Mark(rc *fasthttp.RequestCtx, r *Reason) { rc.SetUserValue(mark{}, r) }

// MarkStatus is Mark with the reason that an HTTP status stands for.
func MarkStatus(rc *fasthttp.RequestCtx, status int) { Mark(rc, ofStatus(status)) }
