package keycall

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/jsonscan"
)

// Check reads the body of a call and refuses what its operation does not take.
func (c *Call) Check() error {
	if err := c.Op.CheckQuery(c.QueryArgs()); err != nil {
		return Fail("%s", err)
	}
	switch {
	case c.Op.Body != nil:
	case c.IsGet() || c.IsHead() || !c.isJSON():
		return nil // and nobody reads a body
	}
	var err error
	c.Payload, err = c.body()
	switch {
	case err != nil:
		return err
	case len(c.Payload) > 0:
		text, err := jsonform.Canonical(c.Payload)
		if err == nil {
			err = c.Op.CheckBody(text)
		}
		return bodyFault(err)
	case c.Op.Body != nil && !c.Op.Optional:
		return Fail("body Field required")
	}
	return nil
}

// Decode reads the body, a JSON object, into v, which stays as it is where an
// optional body is missing. A fault names the field in the form "channel Input should
// be …".
func (c *Call) Decode(v any) error {
	if len(c.Payload) == 0 {
		return nil
	}
	return DecodeObject(c.Payload, v)
}

func (c *Call) isJSON() bool {
	kind, _, _ := strings.Cut(string(c.Request.Header.ContentType()), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// TextTooLarge refuses a body; the bound stands in it.
const TextTooLarge = "body Input should have at most %d bytes"

// body reads the body, within its bound, without white space around it.
func (c *Call) body() ([]byte, error) {
	opts := c.Backend
	if coding := c.Request.Header.ContentEncoding(); len(coding) > 0 && !bytes.EqualFold(coding, []byte("identity")) {
		return nil, FailWith(CodeMediaType, "Content-Encoding is not understood here. Send the body as it is.")
	}
	body, err := ingest.ReadBody(c.RequestCtx, opts.Memory, opts.BodyBytes)
	switch {
	case errors.Is(err, ingest.ErrBodyTooLarge):
		return nil, FailWith(CodeTooLarge, TextTooLarge, opts.BodyBytes)
	case errors.Is(err, ingest.ErrNoMemory):
		return nil, ErrNoMemory
	case err != nil:
		return nil, Fail("body Input could not be read: %s", err)
	}
	body = bytes.TrimSpace(body)
	// What has no body needs no type.
	if len(body) > 0 && !c.isJSON() {
		return nil, FailWith(CodeMediaType, "Content-Type should be application/json")
	}
	return body, nil
}

// DecodeObject reads an object strictly: exact names, each once, and valid texts.
func DecodeObject(body []byte, v any) error {
	return bodyFault(jsonform.Decode(body, v, jsonform.Ignore))
}

// bodyFault is what is wrong with a body.
func bodyFault(err error) error {
	var unknown *jsonform.UnknownError
	var syntax *jsonscan.SyntaxError
	var fault *jsonform.Error
	var mistyped *json.UnmarshalTypeError
	var f *Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &f):
		return f // a type of ours that decodes itself
	case errors.As(err, &unknown):
		return Fail("%s", unknown)
	case errors.As(err, &syntax):
		return Fail("body Input should be valid JSON, see byte %d: %s", syntax.Offset, syntax.Reason)
	case errors.As(err, &fault) && fault.Path == "":
		return Fail("body Input should be a valid object")
	case errors.As(err, &fault):
		return Fail("%s Input should %s", fault.Path, strings.TrimPrefix(fault.Reason, "must "))
	case errors.As(err, &mistyped) && mistyped.Field != "":
		return Fail("%s Input should be %s", mistyped.Field, kindName(mistyped.Type))
	case errors.As(err, &mistyped):
		return Fail("body Input should be a valid object")
	}
	return Fail("body Input is not what this call takes: %s", err)
}

// Object reads a field that takes an object, nil where the body does not have it.
func Object(field string, raw json.RawMessage) (json.RawMessage, error) {
	switch {
	case !IsGiven(raw):
		return nil, nil
	case raw[0] != '{':
		return nil, Fail("%s Input should be a valid object", field)
	}
	return raw, nil
}

// kindName names a Go type as a person who writes JSON knows it.
func kindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a valid string"
	case reflect.Bool:
		return "a valid boolean"
	case reflect.Slice, reflect.Array:
		return "a valid list"
	case reflect.Struct, reflect.Map:
		return "a valid object"
	case reflect.Float32, reflect.Float64:
		return "a valid number"
	}
	return "a valid integer"
}

// Number reads a field that takes one of a few numbers; given is false where the
// body does not have it. Whatever else stands there is answered alike: the
// numbers it takes.
func Number(field string, raw json.RawMessage, takes ...int) (n int, given bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return 0, false, nil
	}
	list := make([]string, len(takes))
	for i, x := range takes {
		if list[i] = strconv.Itoa(x); list[i] == string(raw) {
			return x, true, nil
		}
	}
	return 0, true, Fail("%s Input should be %s", field, orList(list))
}

// Word reads a field that takes one of a few texts.
func Word(field string, raw json.RawMessage, takes ...string) (text string, given bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", false, nil
	}
	list := make([]string, len(takes))
	if json.Unmarshal(raw, &text) != nil {
		text = ""
	}
	for i, x := range takes {
		if x == text {
			return x, true, nil
		}
		list[i] = "'" + x + "'"
	}
	return "", true, Fail("%s Input should be %s", field, orList(list))
}

// orList is "1, 2, 3 or 4".
func orList(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	last := len(list) - 1
	return strings.Join(list[:last], ", ") + " or " + list[last]
}

// IsGiven reports whether the body has a field.
func IsGiven(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
