package handler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

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
	switch {
	case c.op.Body != nil:
	case c.IsGet() || c.IsHead() || !c.isJSON():
		return nil // and nobody reads a body
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
	text, err := jsonform.Canonical(c.Payload)
	if err == nil {
		err = c.op.CheckBody(text)
	}
	return bodyFault(err)
}

// Decode reads the call's body, a JSON object with known fields only, into v, which
// stays as it is where an optional body is missing.
func (c *Call) Decode(v any) error {
	if len(c.Payload) == 0 {
		return nil
	}
	return Decode(c.Payload, v)
}

func (c *Call) isJSON() bool {
	kind, _, _ := strings.Cut(string(c.Request.Header.ContentType()), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// body reads the call's body, which says that it is JSON unless there need not be one.
func (c *Call) body() ([]byte, error) {
	empty := !c.Request.IsBodyStream() && len(c.Request.Body()) == 0 || c.Request.Header.ContentLength() == 0
	if !c.isJSON() && !(empty && c.op.Optional) {
		return nil, &Problem{Status: http.StatusUnsupportedMediaType, Message: "Content-Type must be application/json; set it and send the body as JSON"}
	}
	if coding := c.Request.Header.ContentEncoding(); len(coding) > 0 && !bytes.EqualFold(coding, []byte("identity")) {
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
	body, err := ingest.ReadBody(rc, memory, limit)
	switch {
	case err == nil:
		return body, nil
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
func Decode(body []byte, v any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return BadField("", "the body is empty; send a JSON object")
	}
	return bodyFault(jsonform.Decode(body, v, jsonform.Refuse))
}

// bodyFault is what is wrong with a body.
func bodyFault(err error) error {
	var syntax *jsonscan.SyntaxError
	var fault *jsonform.Error
	var unknown *jsonform.UnknownError
	var mistyped *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return BadField("", "the body is not valid JSON at byte %d: %s; fix the request", syntax.Offset, syntax.Reason)
	case errors.As(err, &unknown):
		return BadField(unknown.Path, "%s", unknown)
	case errors.As(err, &fault) && fault.Path == "":
		return BadField("", "the body must be a JSON object")
	case errors.As(err, &fault) && strings.HasPrefix(fault.Path, inDefinition):
		return BadField("definition", "%s", jsonform.Faultf(fault.Path[len(inDefinition):], "%s", fault.Reason))
	case errors.As(err, &fault):
		return BadField(fault.Path, "%s", fault)
	case errors.As(err, &mistyped):
		if mistyped.Field == "" {
			return BadField("", "the body must be a JSON object")
		}
		want := jsonName(mistyped.Type.Kind())
		if strings.HasPrefix(mistyped.Value, "number ") && want != "a number" && want != "a whole number" {
			mistyped.Value = "number"
		}
		return BadField(mistyped.Field, "%s must be %s, not %s", mistyped.Field, want, strings.TrimPrefix(mistyped.Value, "number "))
	}
	return BadField("", "the body is not what this call takes: %s", err)
}

// jsonName names a Go kind as a person who writes JSON knows it.
func jsonName(kind reflect.Kind) string {
	switch kind {
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number"
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
