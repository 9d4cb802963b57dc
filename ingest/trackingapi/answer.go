package trackingapi

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/internal/refusal"
	"github.com/musterhq/muster/resolver"
)

// failure is why a request as a whole is refused.
type failure struct {
	status        int
	code, message string
	// retryAfter is how long the client is to wait, in seconds; 0 where that is up to
	// [Options.RetryAfter].
	retryAfter int
}

var (
	errInvalidKey = &failure{status: 401, code: codeInvalidKey, message: "the write key is missing, unknown or revoked; send the key of a source as the user name of Basic authentication, or as writeKey in the body"}
	errDisabled   = &failure{status: 401, code: codeDisabled, message: "the source of this write key is disabled; enable it in the console"}
	errOrigin     = &failure{status: 403, code: codeOrigin, message: "this page may not send with this write key; add its origin to the allowed origins of the source"}
	errNoMemory   = &failure{status: 503, code: codeOverloaded, message: "too many bytes are in flight; send the request again later"}
	errCorrupt    = &failure{status: 400, code: codeRequestNotValid, message: "the body is not a valid gzip stream; fix the compression, or send JSON as it is"}
	errMethod     = &failure{status: 405, code: codeMethod, message: "only POST is allowed here; send the request with POST"}
	errGetOnly    = &failure{status: 405, code: codeMethod, message: "only GET is allowed here; send the request with GET"}
)

func tooLarge(format string, args ...any) *failure {
	return &failure{status: 400, code: codeTooLarge, message: fmt.Sprintf(format, args...)}
}

// submitFailure answers a record that was not applied.
func (h *Handler) submitFailure(err error) *failure {
	switch {
	case errors.Is(err, eventlog.ErrTooLarge):
		return tooLarge("the request makes a record larger than the log takes; send the events in several requests")
	case errors.Is(err, eventlog.ErrNoSpace):
		return &failure{status: 503, code: codeUnavailable, message: "the server's disk is full; nothing was stored, send the request again later"}
	case errors.Is(err, eventlog.ErrQueueFull), errors.Is(err, resolver.ErrOverloaded):
		return &failure{status: 503, code: codeOverloaded, message: "the server is overloaded; nothing was stored, send the request again later"}
	case errors.Is(err, resolver.ErrNotOwner):
		return &failure{status: 503, code: codeUnavailable, message: "the account is moving between nodes; nothing was stored, send the request again"}
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{status: 503, code: codeUnavailable, message: "the request was not applied in time; send it again with the same messageId"}
	}
	// A log that has failed fails every request: one line a second is enough.
	if now := h.opts.Now().Unix(); h.logged.Swap(now) != now {
		h.opts.Logger.Error("record not applied", "error", err)
	}
	return &failure{status: 503, code: codeUnavailable, message: "the server cannot store events at present; send the request again later with the same messageId"}
}

// Refuse answers a request that comes to no handler in the form of the tracking API.
func Refuse(ctx *fasthttp.RequestCtx, status int, text string) {
	code := codeRequestNotValid
	switch {
	case status == 413:
		status, code = 400, codeTooLarge // as SDKs know it
	case status >= 500:
		code = codeUnavailable
	}
	refusal.MarkStatus(ctx, status)
	(&failure{status: status, code: code, message: text}).write(ctx)
}

func (f *failure) write(ctx *fasthttp.RequestCtx) {
	ctx.SetStatusCode(f.status)
	ctx.SetContentType("application/json")
	b := append([]byte(`{"success":false,"code":"`), f.code...)
	b = append(b, `","message":`...)
	b = jsonscan.AppendQuoted(b, []byte(f.message))
	ctx.Response.SetBody(append(b, '}'))
}

const success = `{"success":true}`

// rejected is an event that was refused.
type rejected struct {
	index     int
	messageID []byte
	rejection
}

// answer writes the answer to a request that was applied.
func answer(ctx *fasthttp.RequestCtx, list []rejected, count int) {
	ctx.SetStatusCode(200)
	ctx.SetContentType("application/json")
	if count == 0 {
		ctx.Response.SetBodyString(success)
		return
	}
	b := append([]byte(success[:len(success)-1]), `,"rejected_count":`...)
	b = strconv.AppendInt(b, int64(count), 10)
	b = append(b, `,"rejected":[`...)
	for i := range list {
		r := &list[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"index":`...)
		b = strconv.AppendInt(b, int64(r.index), 10)
		b = append(b, `,"messageId":`...)
		if r.messageID == nil {
			b = append(b, "null"...)
		} else {
			b = jsonscan.AppendQuoted(b, r.messageID)
		}
		b = append(append(append(b, `,"code":"`...), r.code...), `","message":`...)
		b = append(jsonscan.AppendQuoted(b, []byte(r.message)), '}')
	}
	ctx.Response.SetBody(append(b, "]}"...))
}
