package keyapi

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/oneline"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/refusal"
)

// envelope is the form of a surface's answers.
type envelope interface {
	// success answers; the error is that of an answer for which there is no room.
	success(rc *fasthttp.RequestCtx, r keycall.Reply) error
	failure(rc *fasthttp.RequestCtx, f *keycall.Failure)
}

// setHeaders sets what failures of both surfaces have.
func setHeaders(rc *fasthttp.RequestCtx, f *keycall.Failure) {
	refusal.MarkStatus(rc, f.Code.Status) // Surface A's status does not tell
	if f.RetryAfter > 0 {
		rc.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(f.RetryAfter))
	}
	if f.Code == keycall.CodeUnauthorized {
		rc.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, `Bearer realm="muster"`)
	}
}

// envelopeA is that of Surface A: all but a few failures are HTTP 200.
type envelopeA struct{ memory *ingest.Memory }

type bodyA struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	Data    any    `json:"data"`
	// Next is the cursor of the next page, where data is a list.
	Next string `json:"next,omitempty"`
}

func (e envelopeA) success(rc *fasthttp.RequestCtx, r keycall.Reply) error {
	return writeJSON(rc, e.memory, fasthttp.StatusOK, bodyA{"success", r.Message, r.Data, r.Next})
}

func (e envelopeA) failure(rc *fasthttp.RequestCtx, f *keycall.Failure) {
	setHeaders(rc, f)
	status := fasthttp.StatusOK
	switch f.Code {
	case keycall.CodeLimited:
		_ = writeJSON(rc, nil, f.Code.Status, struct {
			Message string `json:"message"`
			Success bool   `json:"success"`
		}{oneline.Of(f.Message), false})
		return
	case keycall.CodeUnauthorized, keycall.CodeInternal, keycall.CodeUnavailable:
		status = f.Code.Status
	}
	body := bodyA{Status: "failure", Message: oneline.Of(f.Message), Data: f.Data}
	if body.Data == nil {
		body.Data = struct{}{}
	}
	_ = writeJSON(rc, nil, status, body)
}

// envelopeC is that of Surface C: real HTTP statuses, a code, and an id of the
// request by which to ask about it.
type envelopeC struct {
	rand   io.Reader
	memory *ingest.Memory
}

func (e envelopeC) requestID(rc *fasthttp.RequestCtx) string {
	var b [16]byte
	// Without randomness nothing else works either; the id is then all zeroes.
	_, _ = io.ReadFull(e.rand, b[:])
	id := "req_" + hex.EncodeToString(b[:])
	rc.Response.Header.Set(refusal.Header, id)
	return id
}

func (e envelopeC) success(rc *fasthttp.RequestCtx, r keycall.Reply) error {
	return writeJSON(rc, e.memory, fasthttp.StatusOK, struct {
		Status    string `json:"status"`
		Data      any    `json:"data"`
		RequestID string `json:"request_id"`
	}{"success", r.Data, e.requestID(rc)})
}

func (e envelopeC) failure(rc *fasthttp.RequestCtx, f *keycall.Failure) {
	setHeaders(rc, f)
	_ = writeJSON(rc, nil, f.Code.Status, struct {
		Status    string `json:"status"`
		Code      string `json:"code"`
		Message   string `json:"message"`
		RequestID string `json:"request_id"`
	}{"error", f.Code.Name, oneline.Of(f.Message), e.requestID(rc)})
}

// writeJSON answers. A large answer is taken from memory, unless that is nil; where
// there is no room, a request that has changed nothing is refused with errNoMemory.
func writeJSON(rc *fasthttp.RequestCtx, memory *ingest.Memory, status int, v any) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Our own types encode; raw JSON in them was checked when it came in.
		status = fasthttp.StatusInternalServerError
		buf.Reset()
		buf.WriteString(`{"status":"failure","message":"The answer could not be written.","data":{}}`)
	}
	if memory != nil && buf.Len() > keycall.LargeAnswer {
		if !rc.IsGet() && !rc.IsHead() {
			memory.MustHold(rc, buf.Cap())
		} else if !memory.Hold(rc, buf.Cap()) {
			return keycall.ErrNoMemory
		}
	}
	rc.SetStatusCode(status)
	rc.SetContentType("application/json")
	rc.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	rc.Response.SetBodyRaw(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
	return nil
}

// RefuseA answers a request that came to no call in the form of Surface A.
func RefuseA(rc *fasthttp.RequestCtx, status int, message string) {
	f := refused(status, message)
	if f.Code != keycall.CodeUnavailable {
		f.Code = keycall.CodeInvalid // HTTP 200
	}
	envelopeA{}.failure(rc, f)
}

// RefuseC does so in the form of Surface C: with the code of the status, or
// invalid_request. rand makes the id of the request.
func RefuseC(rc *fasthttp.RequestCtx, rand io.Reader, status int, message string) {
	envelopeC{rand: rand}.failure(rc, refused(status, message))
}

// refused is a refusal by its HTTP status.
func refused(status int, message string) *keycall.Failure {
	f := &keycall.Failure{Code: keycall.Code{Name: keycall.CodeInvalid.Name, Status: status}, Message: message}
	for _, known := range keycall.Codes {
		if known.Status == status {
			f.Code = known
		}
	}
	if f.Code == keycall.CodeTooLarge { // what a call would have said
		f.Message = fmt.Sprintf(keycall.TextTooLarge, defaultBodyBytes)
	}
	return f
}
