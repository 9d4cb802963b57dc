package api

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

// problem is a failure as it is answered.
type problem struct {
	status     int
	field      string
	message    string
	retryAfter time.Duration // 0 for none
	data       any           // what was done all the same, nil for nothing
}

func (p *problem) Error() string { return p.message }

func badField(field, format string, args ...any) *problem {
	return &problem{status: http.StatusBadRequest, field: field, message: fmt.Sprintf(format, args...)}
}

func missing(format string, args ...any) *problem {
	return &problem{status: http.StatusNotFound, message: fmt.Sprintf(format, args...)}
}

// What several kinds of calls look for.
var (
	errNoProfile = missing("there is no profile with this id")
	errNoSegment = missing("there is no segment with this id")
)

// busy reports that a bounded resource is taken.
func busy(what string) *problem {
	return &problem{status: http.StatusServiceUnavailable, message: what + "; try again in a moment", retryAfter: 2 * time.Second}
}

// classify turns any error into an answer; ours is true when the fault is the
// service's own and belongs in its log.
func classify(err error) (p *problem, ours bool) {
	var refusal *resolver.Refusal
	var ofKeys *Refusal
	var rebuilding *query.RebuildingError
	switch {
	case errors.As(err, &p):
		return p, false
	case errors.As(err, &ofKeys):
		return &problem{status: ofKeys.Status, field: ofKeys.Field, message: ofKeys.Message, retryAfter: ofKeys.RetryAfter, data: ofKeys.Data}, false
	case errors.As(err, &refusal):
		return ofRefusal(refusal), false
	case errors.Is(err, eventlog.ErrNoSpace):
		return busy("the server's disk is full; nothing was changed"), false
	case errors.Is(err, resolver.ErrOverloaded), errors.Is(err, eventlog.ErrQueueFull):
		return busy("the server is overloaded; nothing was changed"), false
	case errors.Is(err, resolver.ErrNotOwner):
		return &problem{status: http.StatusServiceUnavailable, retryAfter: time.Second,
			message: "the account is moving between nodes; nothing was changed, try again in a moment"}, false
	case errors.As(err, &rebuilding):
		return &problem{status: http.StatusServiceUnavailable, retryAfter: 5 * time.Second, message: rebuilding.Error()}, false
	case errors.Is(err, query.ErrUnavailable):
		return &problem{status: http.StatusServiceUnavailable, retryAfter: 5 * time.Second,
			message: "history is not available at present; events are stored, live segments counted; try again later"}, true
	case errors.Is(err, context.DeadlineExceeded):
		return &problem{status: http.StatusServiceUnavailable, retryAfter: 5 * time.Second,
			message: "the answer was not ready in time; try again later"}, false
	case errors.Is(err, resolver.ErrUnavailable), errors.Is(err, context.Canceled):
		return &problem{status: http.StatusServiceUnavailable, retryAfter: 5 * time.Second,
			message: "the server is not available at present; try again later"}, true
	case errors.Is(err, eventlog.ErrTooLarge):
		return &problem{status: http.StatusRequestEntityTooLarge, message: "the request makes a record larger than the log takes; send less"}, false
	}
	return &problem{status: http.StatusInternalServerError, message: "the server failed to answer; its log has the reason"}, true
}

func ofRefusal(r *resolver.Refusal) *problem {
	p := &problem{field: r.Field, message: r.Message}
	switch r.Code {
	case "not_found":
		p.status = http.StatusNotFound
	case "conflict", "limit":
		p.status = http.StatusConflict
	case "forbidden":
		p.status = http.StatusForbidden
	default:
		p.status = http.StatusBadRequest
	}
	return p
}

// retryAfter rounds a wait up to whole seconds, at least one.
func retryAfter(wait time.Duration) time.Duration {
	return max(time.Second, (wait + time.Second - 1).Truncate(time.Second))
}
