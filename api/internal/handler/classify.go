package handler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

// Problem is a failure as it is answered.
type Problem struct {
	Status     int
	Field      string
	Message    string
	RetryAfter time.Duration // 0 for none
	data       any           // what was done all the same, nil for nothing
}

func (p *Problem) Error() string { return p.Message }

// BadField says what is wrong with a field of the body, the query or the path, "" for
// the body as a whole.
func BadField(field, format string, args ...any) *Problem {
	return &Problem{Status: http.StatusBadRequest, Field: field, Message: fmt.Sprintf(format, args...)}
}

// NotFound says that what a call is about does not exist.
func NotFound(format string, args ...any) *Problem {
	return &Problem{Status: http.StatusNotFound, Message: fmt.Sprintf(format, args...)}
}

// What several kinds of calls look for.
var (
	ErrNoProfile = NotFound("there is no profile with this id")
	ErrNoSegment = NotFound("there is no segment with this id")
)

// Busy reports that a bounded resource is taken.
func Busy(what string) *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Message: what + "; try again in a moment", RetryAfter: 2 * time.Second}
}

// Classify turns any error into an answer; ours is true when the fault is the
// service's own and belongs in its log.
func Classify(err error) (p *Problem, ours bool) {
	var refusal *resolver.Refusal
	var ofKeys *Refusal
	var rebuilding *query.RebuildingError
	switch {
	case errors.As(err, &p):
		return p, false
	case errors.As(err, &ofKeys):
		return &Problem{Status: ofKeys.Status, Field: ofKeys.Field, Message: ofKeys.Message, RetryAfter: ofKeys.RetryAfter, data: ofKeys.Data}, false
	case errors.As(err, &refusal):
		return ofRefusal(refusal), false
	case errors.Is(err, eventlog.ErrNoSpace):
		return Busy("the server's disk is full; nothing was changed"), false
	case errors.Is(err, resolver.ErrOverloaded), errors.Is(err, eventlog.ErrQueueFull):
		return Busy("the server is overloaded; nothing was changed"), false
	case errors.Is(err, resolver.ErrNotOwner):
		return &Problem{Status: http.StatusServiceUnavailable, RetryAfter: time.Second,
			Message: "the account is moving between nodes; nothing was changed, try again in a moment"}, false
	case errors.As(err, &rebuilding):
		return &Problem{Status: http.StatusServiceUnavailable, RetryAfter: 5 * time.Second, Message: rebuilding.Error()}, false
	case errors.Is(err, query.ErrUnavailable):
		return &Problem{Status: http.StatusServiceUnavailable, RetryAfter: 5 * time.Second,
			Message: "history is not available at present; events are stored, live segments counted; try again later"}, true
	case errors.Is(err, context.DeadlineExceeded):
		return &Problem{Status: http.StatusServiceUnavailable, RetryAfter: 5 * time.Second,
			Message: "the answer was not ready in time; try again later"}, false
	case errors.Is(err, resolver.ErrUnavailable), errors.Is(err, context.Canceled):
		return &Problem{Status: http.StatusServiceUnavailable, RetryAfter: 5 * time.Second,
			Message: "the server is not available at present; try again later"}, true
	case errors.Is(err, eventlog.ErrTooLarge):
		return &Problem{Status: http.StatusRequestEntityTooLarge, Message: "the request makes a record larger than the log takes; send less"}, false
	}
	return &Problem{Status: http.StatusInternalServerError, Message: "the server failed to answer; its log has the reason"}, true
}

func ofRefusal(r *resolver.Refusal) *Problem {
	p := &Problem{Field: r.Field, Message: r.Message}
	switch r.Code {
	case "not_found":
		p.Status = http.StatusNotFound
	case "conflict", "limit":
		p.Status = http.StatusConflict
	case "forbidden":
		p.Status = http.StatusForbidden
	default:
		p.Status = http.StatusBadRequest
	}
	return p
}

// WholeSeconds rounds a wait up to whole seconds, at least one.
func WholeSeconds(wait time.Duration) time.Duration {
	return max(time.Second, (wait + time.Second - 1).Truncate(time.Second))
}
