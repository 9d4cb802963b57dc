package ingest

import (
	"errors"

	"github.com/valyala/fasthttp"
)

// A BodyFault is why a body could not be read that came to one node for another: the
// other is to refuse the request in its own words, or for a reason that comes first.
type BodyFault string

// The faults.
const (
	BodyTooLarge BodyFault = "too-large" // longer than any call takes
	BodyLate     BodyFault = "late"      // it did not come in time
	BodyBroken   BodyFault = "broken"    // it is cut off, or its chunks are malformed
)

var bodyFaults = map[BodyFault]*requestError{BodyTooLarge: errTooLarge, BodyLate: errLate, BodyBroken: errBroken}

// FaultOf is the fault that [ReceiveBody] returned, "" for an error that is none
// of the body's.
func FaultOf(err error) BodyFault {
	var is *bodyError
	switch {
	case errors.Is(err, ErrBodyTooLarge):
		return BodyTooLarge
	case !errors.As(err, &is):
		return ""
	case is.refused == errLate:
		return BodyLate
	}
	return BodyBroken
}

// bodyError is a fault of a body.
type bodyError struct{ refused *requestError }

func (e *bodyError) Error() string { return e.refused.text }

// FailBody makes the body of a request one that cannot be read, for a reason; false
// when that is none.
func FailBody(ctx *fasthttp.RequestCtx, f BodyFault) bool {
	refused := bodyFaults[f]
	if refused == nil {
		return false
	}
	ctx.Request.ResetBody()
	ctx.Request.SetBodyStream(failedBody{&bodyError{refused}}, -1)
	return true
}

// failedBody is a body that cannot be read.
type failedBody struct{ err *bodyError }

// Read implements [io.Reader].
func (b failedBody) Read([]byte) (int, error) { return 0, b.err }
