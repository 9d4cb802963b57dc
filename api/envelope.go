package api

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/oneline"
	"github.com/musterhq/muster/ingest"
)

// envelope is the form of every answer.
type envelope struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	Data    any    `json:"data"`
	// Next is the cursor of the next page, where data is a list.
	Next *string `json:"next,omitempty"`
}

// note is data with something to say about it.
type note struct {
	data    any
	message string
}

// accepted is a note of what is not done yet.
type accepted note

// page is a list with the cursor of the next page, "" at the end.
type page struct {
	items   any
	next    string
	message string
}

// writeData answers success.
func writeData(ctx *fasthttp.RequestCtx, memory *ingest.Memory, data any) error {
	e, status := envelope{Status: "success"}, fasthttp.StatusOK
	switch d := data.(type) {
	case note:
		e.Data, e.Message = d.data, d.message
	case accepted:
		e.Data, e.Message, status = d.data, d.message, fasthttp.StatusAccepted
	case page:
		e.Data, e.Message = d.items, d.message
		if d.next != "" {
			e.Next = &d.next
		}
	case nil:
		e.Data = struct{}{}
	default:
		e.Data = d
	}
	return writeJSON(ctx, memory, status, e)
}

// writeProblem answers failure.
func writeProblem(ctx *fasthttp.RequestCtx, p *problem) {
	if p.retryAfter > 0 {
		seconds := int((p.retryAfter + time.Second - 1) / time.Second)
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, string(fasthttp.AppendUint(nil, seconds)))
	}
	if p.status == fasthttp.StatusUnauthorized {
		ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, `Bearer realm="muster console"`)
	}
	data := map[string]string{}
	if p.field != "" {
		data["field"] = oneline.Of(p.field)
	}
	e := envelope{Status: "failure", Message: oneline.Of(p.message), Data: data}
	if p.data != nil {
		e.Data = p.data
	}
	_ = writeJSON(ctx, nil, p.status, e)
}

// largeAnswer is from how many bytes on an answer is taken from the memory that
// all requests share.
const largeAnswer = 64 << 10

// writeJSON answers. A large answer is taken from memory, unless that is nil; where
// there is no room, a call that has changed nothing is refused with errNoMemory.
func writeJSON(ctx *fasthttp.RequestCtx, memory *ingest.Memory, status int, e envelope) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		// Our own types encode; raw JSON in them was checked when it came in.
		status = fasthttp.StatusInternalServerError
		buf.Reset()
		buf.WriteString(`{"status":"failure","message":"the answer could not be written","data":{}}`)
	}
	if memory != nil && buf.Len() > largeAnswer {
		if !ctx.IsGet() && !ctx.IsHead() {
			memory.MustHold(ctx, buf.Cap())
		} else if !memory.Hold(ctx, buf.Cap()) {
			return errNoMemory
		}
	}
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	ctx.Response.Header.Set(fasthttp.HeaderCacheControl, "no-store")
	ctx.Response.SetBodyRaw(buf.Bytes())
	return nil
}

// Refuse answers a request that came to no call in the console's form.
func Refuse(ctx *fasthttp.RequestCtx, status int, message string) {
	writeProblem(ctx, &problem{status: status, message: message})
}
