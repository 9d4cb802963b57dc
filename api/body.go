package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/ingest"
)

// decode reads a call's body, a JSON object with known fields only, into v.
func (a *API) decode(c *call, v any) error {
	body, err := a.jsonBody(c)
	if err != nil {
		return err
	}
	return decodeStrict(body, v)
}

// jsonBody reads a call's body, which says that it is JSON.
func (a *API) jsonBody(c *call) ([]byte, error) {
	contentType, _, _ := strings.Cut(string(c.Request.Header.ContentType()), ";")
	if !strings.EqualFold(strings.TrimSpace(contentType), "application/json") {
		return nil, &problem{status: http.StatusUnsupportedMediaType, message: "Content-Type must be application/json; set it and send the body as JSON"}
	}
	if coding := c.Request.Header.ContentEncoding(); len(coding) > 0 && !bytes.EqualFold(coding, []byte("identity")) {
		return nil, &problem{status: http.StatusUnsupportedMediaType, message: "Content-Encoding is not understood here; send the body as it is"}
	}
	limit, memory := a.opts.BodyBytes, a.opts.Memory
	if c.user.ID == "" {
		limit, memory = min(limit, maxPublicBytes), a.publicMemory
	}
	return readBody(c.RequestCtx, memory, limit)
}

// maxPublicBytes is the longest body of a call that anybody may make: an e-mail and
// a password, also where each byte is escaped.
const maxPublicBytes = 16 << 10

// readBody reads a body of at most limit bytes.
func readBody(rc *fasthttp.RequestCtx, memory *ingest.Memory, limit int) ([]byte, error) {
	body, err := ingest.ReadBody(rc, memory, limit)
	switch {
	case err == nil:
		return body, nil
	case errors.Is(err, ingest.ErrBodyTooLarge):
		return nil, &problem{status: http.StatusRequestEntityTooLarge, message: fmt.Sprintf("the body is longer than %d bytes; send less", limit)}
	case errors.Is(err, ingest.ErrNoMemory):
		return nil, errNoMemory
	}
	return nil, &problem{status: http.StatusBadRequest, message: err.Error()}
}

var errNoMemory = &problem{status: http.StatusServiceUnavailable, message: "too many bytes are in flight; send the request again in a moment", retryAfter: time.Second}

func decodeStrict(body []byte, v any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return badField("", "the body is empty; send a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			err = nil
		} else {
			return badField("", "something stands behind the body's JSON object; send one object")
		}
	}
	if err == nil && bytes.TrimSpace(body)[0] != '{' {
		return badField("", "the body must be a JSON object")
	}
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return badField("", "the body is not valid JSON at byte %d: %s; fix the request", syntax.Offset, syntax)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return badField("", "the body ends in the middle of its JSON; send it whole")
	case errors.As(err, &mistyped):
		if mistyped.Field == "" {
			return badField("", "the body must be a JSON object")
		}
		return badField(mistyped.Field, "%s must be %s, not %s", mistyped.Field, jsonName(mistyped.Type.Kind().String()), mistyped.Value)
	}
	if quoted, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if name, uerr := strconv.Unquote(quoted); uerr == nil {
			return badField(name, "%s is no field of this request; leave it out", quoted)
		}
	}
	return badField("", "the body is not what this call takes: %s", err)
}

// jsonName names a Go kind as a person who writes JSON knows it.
func jsonName(kind string) string {
	switch kind {
	case "string":
		return "a string"
	case "slice", "array":
		return "an array"
	case "struct", "map":
		return "an object"
	case "bool":
		return "true or false"
	}
	return "a number"
}

// limit reads the query's limit.
func (c *call) limit() (int, error) {
	return c.number("limit", 1, paging.MaxLimit, paging.DefaultLimit)
}

// number reads a number of the query.
func (c *call) number(name string, low, high, absent int) (int, error) {
	n, ok := paging.Number(c.QueryArgs().Peek(name), low, high, absent)
	if !ok {
		return 0, badField(name, "%s must be a whole number from %d to %d", name, low, high)
	}
	return n, nil
}
