package api

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
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/jsonscan"
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

// inDefinition begins the paths of what is in a definition, which is told apart by
// its own paths wherever it stands.
const inDefinition = "definition."

// decodeStrict reads an object strictly: exact names of known fields, each once, and
// valid texts.
func decodeStrict(body []byte, v any) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return badField("", "the body is empty; send a JSON object")
	}
	err := jsonform.Decode(body, v, jsonform.Refuse)
	var syntax *jsonscan.SyntaxError
	var fault *jsonform.Error
	var unknown *jsonform.UnknownError
	var mistyped *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return badField("", "the body is not valid JSON at byte %d: %s; fix the request", syntax.Offset, syntax.Reason)
	case errors.As(err, &unknown):
		return badField(unknown.Path, "%s", unknown)
	case errors.As(err, &fault) && fault.Path == "":
		return badField("", "the body must be a JSON object")
	case errors.As(err, &fault) && strings.HasPrefix(fault.Path, inDefinition):
		return badField("definition", "%s", jsonform.Faultf(fault.Path[len(inDefinition):], "%s", fault.Reason))
	case errors.As(err, &fault):
		return badField(fault.Path, "%s", fault)
	case errors.As(err, &mistyped):
		if mistyped.Field == "" {
			return badField("", "the body must be a JSON object")
		}
		want := jsonName(mistyped.Type.Kind())
		if strings.HasPrefix(mistyped.Value, "number ") && want != "a number" && want != "a whole number" {
			mistyped.Value = "number"
		}
		return badField(mistyped.Field, "%s must be %s, not %s", mistyped.Field, want, strings.TrimPrefix(mistyped.Value, "number "))
	}
	return badField("", "the body is not what this call takes: %s", err)
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
