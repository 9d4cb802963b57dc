package keycall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

// Code classifies a failure. Name and status are those of Surface C.
type Code struct {
	Name   string
	Status int
}

// The codes of Surface C; they are documented and never change.
var (
	CodeInvalid      = Code{"invalid_request", 400}
	CodeUnauthorized = Code{"unauthorized", 401}
	CodeForbidden    = Code{"forbidden", 403}
	CodeNotFound     = Code{"not_found", 404}
	CodeMethod       = Code{"method_not_allowed", 405}
	CodeConflict     = Code{"conflict", 409}
	CodeTooLarge     = Code{"too_large", 413}
	CodeMediaType    = Code{"unsupported_media_type", 415}
	CodeLimited      = Code{"rate_limited", 429}
	CodeInternal     = Code{"internal_error", 500}
	CodeUnavailable  = Code{"unavailable", 503}

	// Codes are all of them.
	Codes = []Code{CodeInvalid, CodeUnauthorized, CodeForbidden, CodeNotFound, CodeMethod, CodeConflict, CodeTooLarge,
		CodeMediaType, CodeLimited, CodeInternal, CodeUnavailable}
)

// Failure is a failure as it is answered.
type Failure struct {
	Code    Code
	Message string
	// RetryAfter is after how many seconds to try again, 0 for none.
	RetryAfter int
	// Data is what there is to say about what was done all the same, nil for
	// nothing. Surface A alone answers it.
	Data any
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

// Fail is what a handler returns for what the caller did wrong. On Surface C it
// is invalid_request.
func Fail(message string, args ...any) error {
	return &Failure{Code: CodeInvalid, Message: fmt.Sprintf(message, args...)}
}

// FailWith is Fail with another code.
func FailWith(c Code, message string, args ...any) error {
	return &Failure{Code: c, Message: fmt.Sprintf(message, args...)}
}

// What more than one call refuses.
var (
	ErrForbidden = &Failure{Code: CodeForbidden, Message: "You don't have permission to perform this action"}
	ErrNoMemory  = &Failure{Code: CodeUnavailable, Message: "Too many bytes are in flight. Send the request again in a moment.", RetryAfter: 1}
	// ErrSendContinues has no Retry-After: repeating the request may send twice.
	ErrSendContinues = &Failure{Code: CodeUnavailable, Message: "The campaign was begun and continues, but this request cannot wait for its end. Do not send it again: its stats tell how far it is."}
	ErrNoFlow        = FailWith(CodeNotFound, "there is no flow with this id")
	ErrNoRoute       = &Failure{Code: CodeNotFound, Message: "There is nothing at this path."}
)

// TooMany says to wait; the seconds are rounded up.
func TooMany(wait time.Duration) error {
	seconds := max(1, int((wait+time.Second-1)/time.Second))
	return &Failure{Code: CodeLimited, Message: fmt.Sprintf("Too many requests. Try again in %d seconds.", seconds), RetryAfter: seconds}
}

// Classify turns any error into an answer; ours is true when the fault is the
// service's own and belongs in its log.
func Classify(err error) (f *Failure, ours bool) {
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
		return &Failure{Code: CodeUnavailable, Message: "The server's disk is full; nothing was changed. Try again later.", RetryAfter: 5}, false
	case errors.Is(err, resolver.ErrOverloaded), errors.Is(err, eventlog.ErrQueueFull):
		return &Failure{Code: CodeUnavailable, Message: "The server is overloaded; nothing was changed. Try again in a moment.", RetryAfter: 2}, false
	case errors.Is(err, resolver.ErrNotOwner):
		return &Failure{Code: CodeUnavailable, Message: "The account is moving between nodes; nothing was changed. Try again in a moment.", RetryAfter: 1}, false
	case errors.As(err, &rebuilding):
		return &Failure{Code: CodeUnavailable, RetryAfter: 5, Message: fmt.Sprintf(
			"History is being rebuilt from the log: %d of %d records are done. Events are stored and live segments counted. Try again later.", rebuilding.Done, rebuilding.Total)}, false
	case errors.Is(err, query.ErrUnavailable):
		return &Failure{Code: CodeUnavailable, Message: "History is not available at present. Events are stored and live segments counted. Try again later.", RetryAfter: 5}, true
	case errors.Is(err, context.DeadlineExceeded):
		return &Failure{Code: CodeUnavailable, Message: "The answer was not ready in time. Try again later.", RetryAfter: 5}, false
	case errors.Is(err, messaging.ErrSendContinues):
		return ErrSendContinues, false
	case errors.Is(err, resolver.ErrUnavailable), errors.Is(err, context.Canceled):
		return &Failure{Code: CodeUnavailable, Message: "The server is not available at present. Try again later.", RetryAfter: 5}, true
	case errors.Is(err, eventlog.ErrTooLarge):
		return &Failure{Code: CodeTooLarge, Message: "The request makes a record larger than the log takes. Send less."}, false
	}
	return &Failure{Code: CodeInternal, Message: "The server failed to answer; its log has the reason."}, true
}

func ofRefusal(r *resolver.Refusal) *Failure {
	f := &Failure{Code: CodeInvalid, Message: r.Message}
	switch r.Code {
	case "not_found":
		f.Code = CodeNotFound
	case "conflict", "limit":
		f.Code = CodeConflict
	case "forbidden":
		f.Code = CodeForbidden
	}
	return f
}

func ofEvent(e *ingest.EventError) *Failure {
	switch e.Status {
	case 413:
		return &Failure{Code: CodeTooLarge, Message: e.Message}
	case 503:
		return &Failure{Code: CodeUnavailable, Message: e.Message, RetryAfter: 2}
	}
	return &Failure{Code: CodeInvalid, Message: e.Message}
}

// ofConsole is a refusal of a shared call. Surface A names the field in the message.
func ofConsole(r *handler.Refusal) *Failure {
	f := &Failure{Code: CodeInvalid, Message: r.Message, RetryAfter: int((r.RetryAfter + time.Second - 1) / time.Second)}
	if r.Field != "" && !strings.HasPrefix(r.Message, r.Field) {
		f.Message = r.Field + ": " + r.Message
	}
	for _, known := range Codes {
		if known.Status == r.Status {
			f.Code = known
		}
	}
	return f
}
