package handler

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

// Note is data with something to say about it.
type Note struct {
	Data    any
	Message string
}

// Accepted is a note of what is not done yet.
type Accepted Note

// Page is a list with the cursor of the next page, "" at the end.
type Page struct {
	Items   any
	Next    string
	Message string
}

// writeData answers success.
func writeData(ctx *fasthttp.RequestCtx, memory *ingest.Memory, data any) error {
	e, status := envelope{Status: "success"}, fasthttp.StatusOK
	switch d := data.(type) {
	case Note:
		e.Data, e.Message = d.Data, d.Message
	case Accepted:
		e.Data, e.Message, status = d.Data, d.Message, fasthttp.StatusAccepted
	case Page:
		e.Data, e.Message = d.Items, d.Message
		if d.Next != "" {
			e.Next = &d.Next
		}
	case nil:
		e.Data = struct{}{}
	default:
		e.Data = d
	}
	return writeJSON(ctx, memory, status, e)
}

// WriteProblem answers failure.
func WriteProblem(ctx *fasthttp.RequestCtx, p *Problem) {
	if p.RetryAfter > 0 {
		seconds := int((p.RetryAfter + time.Second - 1) / time.Second)
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, string(fasthttp.AppendUint(nil, seconds)))
	}
	if p.Status == fasthttp.StatusUnauthorized {
		ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, `Bearer realm="muster console"`)
	}
	data := map[string]string{}
	if p.Field != "" {
		data["field"] = oneline.Of(p.Field)
	}
	e := envelope{Status: "failure", Message: oneline.Of(p.Message), Data: data}
	if p.data != nil {
		e.Data = p.data
	}
	_ = writeJSON(ctx, nil, p.Status, e)
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
