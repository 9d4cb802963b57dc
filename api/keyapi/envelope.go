package keyapi

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/oneline"
)

// reply is data with something to say about it. A handler that has nothing to
// say returns its data as it is.
type reply struct {
	data    any
	message string
	next    string // cursor of the next page, "" at the end
}

func toReply(data any) reply {
	r, ok := data.(reply)
	if !ok {
		r = reply{data: data}
	}
	if r.data == nil {
		r.data = struct{}{}
	}
	return r
}

// envelope is the form of a surface's answers.
type envelope interface {
	success(rc *fasthttp.RequestCtx, r reply)
	failure(rc *fasthttp.RequestCtx, f *failure)
}

// setHeaders sets what failures of both surfaces have.
func setHeaders(rc *fasthttp.RequestCtx, f *failure) {
	if f.retryAfter > 0 {
		rc.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(f.retryAfter))
	}
	if f.code == codeUnauthorized {
		rc.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, `Bearer realm="muster"`)
	}
}

// envelopeA is that of Surface A: all but a few failures are HTTP 200.
type envelopeA struct{}

type bodyA struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	Data    any    `json:"data"`
	// Next is the cursor of the next page, where data is a list.
	Next string `json:"next,omitempty"`
}

func (envelopeA) success(rc *fasthttp.RequestCtx, r reply) {
	writeJSON(rc, fasthttp.StatusOK, bodyA{"success", r.message, r.data, r.next})
}

func (envelopeA) failure(rc *fasthttp.RequestCtx, f *failure) {
	setHeaders(rc, f)
	status := fasthttp.StatusOK
	switch f.code {
	case codeLimited:
		writeJSON(rc, f.code.status, struct {
			Message string `json:"message"`
			Success bool   `json:"success"`
		}{oneline.Of(f.message), false})
		return
	case codeUnauthorized, codeInternal, codeUnavailable:
		status = f.code.status
	}
	body := bodyA{Status: "failure", Message: oneline.Of(f.message), Data: f.data}
	if body.Data == nil {
		body.Data = struct{}{}
	}
	writeJSON(rc, status, body)
}

// envelopeC is that of Surface C: real HTTP statuses, a code, and an id of the
// request by which to ask about it.
type envelopeC struct{ rand io.Reader }

const headerRequestID = "X-Request-Id"

func (e envelopeC) requestID(rc *fasthttp.RequestCtx) string {
	var b [16]byte
	// Without randomness nothing else works either; the id is then all zeroes.
	_, _ = io.ReadFull(e.rand, b[:])
	id := "req_" + hex.EncodeToString(b[:])
	rc.Response.Header.Set(headerRequestID, id)
	return id
}

func (e envelopeC) success(rc *fasthttp.RequestCtx, r reply) {
	writeJSON(rc, fasthttp.StatusOK, struct {
		Status    string `json:"status"`
		Data      any    `json:"data"`
		RequestID string `json:"request_id"`
	}{"success", r.data, e.requestID(rc)})
}

func (e envelopeC) failure(rc *fasthttp.RequestCtx, f *failure) {
	setHeaders(rc, f)
	writeJSON(rc, f.code.status, struct {
		Status    string `json:"status"`
		Code      string `json:"code"`
		Message   string `json:"message"`
		RequestID string `json:"request_id"`
	}{"error", f.code.name, oneline.Of(f.message), e.requestID(rc)})
}

func writeJSON(rc *fasthttp.RequestCtx, status int, v any) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Our own types encode; raw JSON in them was checked when it came in.
		status = fasthttp.StatusInternalServerError
		buf.Reset()
		buf.WriteString(`{"status":"failure","message":"The answer could not be written.","data":{}}`)
	}
	rc.SetStatusCode(status)
	rc.SetContentType("application/json")
	rc.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	rc.Response.SetBodyRaw(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
}
