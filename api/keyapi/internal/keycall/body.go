package keycall

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/musterhq/muster/api/internal/body"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/jsonscan"
)

// Check reads the body of a call and refuses what its operation does not take.
func (c *Call) Check() error {
	if err := c.Op.CheckQuery(c.QueryArgs()); err != nil {
		return Fail("%s", err)
	}
	if !body.IsRead(c.Op, c.RequestCtx) {
		return nil
	}
	var err error
	c.Payload, err = c.body()
	switch {
	case err != nil:
		return err
	case len(c.Payload) > 0:
		return bodyFault(body.Check(c.Op, c.Payload))
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

// TextTooLarge refuses a body; the bound stands in it.
const TextTooLarge = "body Input should have at most %d bytes"

// body reads the body, within its bound, without white space around it.
func (c *Call) body() ([]byte, error) {
	opts := c.Backend
	if body.IsEncoded(c.RequestCtx) {
		return nil, FailWith(CodeMediaType, "Content-Encoding is not understood here. Send the body as it is.")
	}
	payload, err := ingest.ReadBody(c.RequestCtx, opts.Memory, opts.BodyBytes)
	switch {
	case errors.Is(err, ingest.ErrBodyTooLarge):
		return nil, FailWith(CodeTooLarge, TextTooLarge, opts.BodyBytes)
	case errors.Is(err, ingest.ErrNoMemory):
		return nil, ErrNoMemory
	case err != nil:
		return nil, Fail("body Input could not be read: %s", err)
	}
	payload = bytes.TrimSpace(payload)
	// What has no body needs no type.
	if len(payload) > 0 && !body.IsJSON(c.RequestCtx) {
		return nil, FailWith(CodeMediaType, "Content-Type should be application/json")
	}
	return payload, nil
}

// DecodeObject reads an object strictly: exact names, each once, and valid texts.
func DecodeObject(payload []byte, v any) error {
	return bodyFault(jsonform.Decode(payload, v, jsonform.Ignore))
}

// words say what is wrong with a body.
var words = body.Words{
	Syntax: func(e *jsonscan.SyntaxError) error {
		return Fail("body Input should be valid JSON, see byte %d: %s", e.Offset, e.Reason)
	},
	Unknown:   func(e *jsonform.UnknownError) error { return Fail("%s", e) },
	NotObject: func() error { return Fail("body Input should be a valid object") },
	Form: func(e *jsonform.Error) error {
		return Fail("%s Input should %s", e.Path, strings.TrimPrefix(e.Reason, "must "))
	},
	Mistyped: func(e *json.UnmarshalTypeError, want string) error {
		return Fail("%s Input should be %s", e.Field, want)
	},
	Other: func(err error) error { return Fail("body Input is not what this call takes: %s", err) },
	Types: body.Types{String: "a valid string", Bool: "a valid boolean", List: "a valid list", Object: "a valid object", Number: "a valid number", Integer: "a valid integer"},
}

// bodyFault is the fault of a body.
func bodyFault(err error) error {
	var f *Failure
	if errors.As(err, &f) {
		return f // a type of ours that decodes itself
	}
	return words.Fault(err)
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
