package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/body"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/jsonscan"
)

// check reads the call's body and refuses what its operation does not take.
func (c *Call) check() error {
	if c.op.Raw {
		return nil
	}
	var parameter *operation.UnknownParameter
	if errors.As(c.op.CheckQuery(c.QueryArgs()), &parameter) {
		return BadField(parameter.Name, "%s", parameter)
	}
	if !body.IsRead(c.op, c.RequestCtx) {
		return nil
	}
	var err error
	if c.Payload, err = c.body(); err != nil {
		return err
	}
	if len(bytes.TrimSpace(c.Payload)) == 0 {
		if c.op.Body != nil && !c.op.Optional {
			return BadField("", "the body is empty; send a JSON object")
		}
		c.Payload = nil
		return nil
	}
	return words.Fault(body.Check(c.op, c.Payload))
}

// Decode reads the call's body, a JSON object with known fields only, into v, which
// stays as it is where an optional body is missing.
func (c *Call) Decode(v any) error {
	if len(c.Payload) == 0 {
		return nil
	}
	return Decode(c.Payload, v)
}

// body reads the call's body, which says that it is JSON unless there need not be one.
func (c *Call) body() ([]byte, error) {
	empty := !c.Request.IsBodyStream() && len(c.Request.Body()) == 0 || c.Request.Header.ContentLength() == 0
	if !body.IsJSON(c.RequestCtx) && !(empty && c.op.Optional) {
		return nil, &Problem{Status: http.StatusUnsupportedMediaType, Message: "Content-Type must be application/json; set it and send the body as JSON"}
	}
	if body.IsEncoded(c.RequestCtx) {
		return nil, &Problem{Status: http.StatusUnsupportedMediaType, Message: "Content-Encoding is not understood here; send the body as it is"}
	}
	limit, memory := c.chain.opts.BodyBytes, c.chain.opts.Memory
	if c.User.ID == "" {
		limit, memory = min(limit, maxPublicBytes), c.chain.opts.PublicMemory
	}
	return ReadBody(c.RequestCtx, memory, limit)
}

// maxPublicBytes is the longest body of a call that anybody may make: an e-mail and
// a password, also where each byte is escaped.
const maxPublicBytes = 16 << 10

// ReadBody reads a body of at most limit bytes.
func ReadBody(rc *fasthttp.RequestCtx, memory *ingest.Memory, limit int) ([]byte, error) {
	payload, err := ingest.ReadBody(rc, memory, limit)
	switch {
	case err == nil:
		return payload, nil
	case errors.Is(err, ingest.ErrBodyTooLarge):
		return nil, &Problem{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the body is longer than %d bytes; send less", limit)}
	case errors.Is(err, ingest.ErrNoMemory):
		return nil, errNoMemory
	}
	return nil, &Problem{Status: http.StatusBadRequest, Message: err.Error()}
}

var errNoMemory = &Problem{Status: http.StatusServiceUnavailable, Message: "too many bytes are in flight; send the request again in a moment", RetryAfter: time.Second}

// inDefinition begins the paths of what is in a definition, which is told apart by
// its own paths wherever it stands.
const inDefinition = "definition."

// Decode reads an object strictly: exact names of known fields, each once, and
// valid texts.
func Decode(payload []byte, v any) error {
	if len(bytes.TrimSpace(payload)) == 0 {
		return BadField("", "the body is empty; send a JSON object")
	}
	return words.Fault(jsonform.Decode(payload, v, jsonform.Refuse))
}

// words say what is wrong with a body.
var words = body.Words{
	Syntax: func(e *jsonscan.SyntaxError) error {
		return BadField("", "the body is not valid JSON at byte %d: %s; fix the request", e.Offset, e.Reason)
	},
	Unknown:   func(e *jsonform.UnknownError) error { return BadField(e.Path, "%s", e) },
	NotObject: func() error { return BadField("", "the body must be a JSON object") },
	Form: func(e *jsonform.Error) error {
		if path, ok := strings.CutPrefix(e.Path, inDefinition); ok {
			return BadField("definition", "%s", jsonform.Faultf(path, "%s", e.Reason))
		}
		return BadField(e.Path, "%s", e)
	},
	Mistyped: func(e *json.UnmarshalTypeError, want string) error {
		value := strings.TrimPrefix(e.Value, "number ")
		if value != e.Value && want != "a number" && want != "a whole number" {
			value = "number"
		}
		return BadField(e.Field, "%s must be %s, not %s", e.Field, want, value)
	},
	Other: func(err error) error { return BadField("", "the body is not what this call takes: %s", err) },
	Types: body.Types{String: "a string", Bool: "true or false", List: "an array", Object: "an object", Number: "a number", Integer: "a whole number"},
}

// Limit reads the query's limit.
func (c *Call) Limit() (int, error) {
	absent, most := c.op.Page()
	n, ok := paging.Number(c.QueryArgs().Peek("limit"), 1, most, absent)
	if !ok {
		return 0, BadField("limit", "limit must be a whole number from 1 to %d", most)
	}
	return n, nil
}
