package keyapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

// code classifies a failure. Name and status are those of Surface C.
type code struct {
	name   string
	status int
}

// The codes of Surface C; they are documented and never change.
var (
	codeInvalid      = code{"invalid_request", 400}
	codeUnauthorized = code{"unauthorized", 401}
	codeForbidden    = code{"forbidden", 403}
	codeNotFound     = code{"not_found", 404}
	codeMethod       = code{"method_not_allowed", 405}
	codeConflict     = code{"conflict", 409}
	codeTooLarge     = code{"too_large", 413}
	codeMediaType    = code{"unsupported_media_type", 415}
	codeLimited      = code{"rate_limited", 429}
	codeInternal     = code{"internal_error", 500}
	codeUnavailable  = code{"unavailable", 503}

	codes = []code{codeInvalid, codeUnauthorized, codeForbidden, codeNotFound, codeMethod, codeConflict, codeTooLarge,
		codeMediaType, codeLimited, codeInternal, codeUnavailable}
)

// failure is a failure as it is answered.
type failure struct {
	code    code
	message string
	// retryAfter is after how many seconds to try again, 0 for none.
	retryAfter int
	// data is what there is to say about what was done all the same, nil for
	// nothing. Surface A alone answers it.
	data any
}

func (f *failure) Error() string { return f.message }

// Fail is what a handler returns for what the caller did wrong. On Surface C it
// is invalid_request.
func Fail(message string, args ...any) error {
	return &failure{code: codeInvalid, message: fmt.Sprintf(message, args...)}
}

// failWith is Fail with another code.
func failWith(c code, message string, args ...any) error {
	return &failure{code: c, message: fmt.Sprintf(message, args...)}
}

var (
	errForbidden = &failure{code: codeForbidden, message: "You don't have permission to perform this action"}
	errNoMemory  = &failure{code: codeUnavailable, message: "Too many bytes are in flight. Send the request again in a moment.", retryAfter: 1}
	// errGoesOn has no Retry-After: who repeats the request may send twice.
	errGoesOn  = &failure{code: codeUnavailable, message: "The campaign was begun and goes on, but this request cannot wait for its end. Do not send it again: its stats tell how far it is."}
	errNoRoute = &failure{code: codeNotFound, message: "There is nothing at this path."}
)

// tooMany says to wait; the seconds are rounded up.
func tooMany(wait time.Duration) error {
	seconds := max(1, int((wait+time.Second-1)/time.Second))
	return &failure{code: codeLimited, message: fmt.Sprintf("Too many requests. Try again in %d seconds.", seconds), retryAfter: seconds}
}

// classify turns any error into an answer; ours is true when the fault is the
// service's own and belongs in its log.
func classify(err error) (f *failure, ours bool) {
	var refusal *resolver.Refusal
	var event *ingest.EventError
	var rebuilding *query.RebuildingError
	var ofShared *handler.Refusal
	switch {
	case errors.As(err, &f):
		return f, false
	case errors.As(err, &ofShared):
		return ofConsole(ofShared), false
	case errors.As(err, &refusal):
		return ofRefusal(refusal), false
	case errors.As(err, &event):
		return ofEvent(event), false
	case errors.Is(err, eventlog.ErrNoSpace):
		return &failure{code: codeUnavailable, message: "The server's disk is full; nothing was changed. Try again later.", retryAfter: 5}, false
	case errors.Is(err, resolver.ErrOverloaded), errors.Is(err, eventlog.ErrQueueFull):
		return &failure{code: codeUnavailable, message: "The server is overloaded; nothing was changed. Try again in a moment.", retryAfter: 2}, false
	case errors.Is(err, resolver.ErrNotOwner):
		return &failure{code: codeUnavailable, message: "The account is moving between nodes; nothing was changed. Try again in a moment.", retryAfter: 1}, false
	case errors.As(err, &rebuilding):
		return &failure{code: codeUnavailable, retryAfter: 5, message: fmt.Sprintf(
			"History is being rebuilt from the log: %d of %d records are done. Events are stored and live segments counted. Try again later.", rebuilding.Done, rebuilding.Total)}, false
	case errors.Is(err, query.ErrUnavailable):
		return &failure{code: codeUnavailable, message: "History is not available at present. Events are stored and live segments counted. Try again later.", retryAfter: 5}, true
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{code: codeUnavailable, message: "The answer was not ready in time. Try again later.", retryAfter: 5}, false
	case errors.Is(err, messaging.ErrGoesOn):
		return errGoesOn, false
	case errors.Is(err, resolver.ErrUnavailable), errors.Is(err, context.Canceled):
		return &failure{code: codeUnavailable, message: "The server is not available at present. Try again later.", retryAfter: 5}, true
	case errors.Is(err, eventlog.ErrTooLarge):
		return &failure{code: codeTooLarge, message: "The request makes a record larger than the log takes. Send less."}, false
	}
	return &failure{code: codeInternal, message: "The server failed to answer; its log has the reason."}, true
}

func ofRefusal(r *resolver.Refusal) *failure {
	f := &failure{code: codeInvalid, message: r.Message}
	switch r.Code {
	case "not_found":
		f.code = codeNotFound
	case "conflict", "limit":
		f.code = codeConflict
	case "forbidden":
		f.code = codeForbidden
	}
	return f
}

func ofEvent(e *ingest.EventError) *failure {
	switch e.Status {
	case 413:
		return &failure{code: codeTooLarge, message: e.Message}
	case 503:
		return &failure{code: codeUnavailable, message: e.Message, retryAfter: 2}
	}
	return &failure{code: codeInvalid, message: e.Message}
}
