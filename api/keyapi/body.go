package keyapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/resolver/audit"
)

// check reads the body of a call and refuses what its operation does not take.
func (c *call) check() error {
	if err := c.op.CheckQuery(c.QueryArgs()); err != nil {
		return Fail("%s", err)
	}
	switch {
	case c.op.Body != nil:
	case c.IsGet() || c.IsHead() || !c.isJSON():
		return nil // and nobody reads a body
	}
	var err error
	c.payload, err = c.body()
	switch {
	case err != nil:
		return err
	case len(c.payload) > 0:
		text, err := jsonform.Canonical(c.payload)
		if err == nil {
			err = c.op.CheckBody(text)
		}
		return bodyFault(err)
	case c.op.Body != nil && !c.op.Optional:
		return Fail("body Field required")
	}
	return nil
}

// decode reads the body, a JSON object, into v, which stays as it is where an
// optional body is missing. A fault names the field in the form "channel Input should
// be …".
func (c *call) decode(v any) error {
	if len(c.payload) == 0 {
		return nil
	}
	return decodeObject(c.payload, v)
}

func (c *call) isJSON() bool {
	kind, _, _ := strings.Cut(string(c.Request.Header.ContentType()), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

const textTooLarge = "body Input should have at most %d bytes"

// body reads the body, within its bound, without white space around it.
func (c *call) body() ([]byte, error) {
	opts := &c.api.opts
	if coding := c.Request.Header.ContentEncoding(); len(coding) > 0 && !bytes.EqualFold(coding, []byte("identity")) {
		return nil, failWith(codeMediaType, "Content-Encoding is not understood here. Send the body as it is.")
	}
	body, err := ingest.ReadBody(c.RequestCtx, opts.Memory, opts.BodyBytes)
	switch {
	case errors.Is(err, ingest.ErrBodyTooLarge):
		return nil, failWith(codeTooLarge, textTooLarge, opts.BodyBytes)
	case errors.Is(err, ingest.ErrNoMemory):
		return nil, errNoMemory
	case err != nil:
		return nil, Fail("body Input could not be read: %s", err)
	}
	body = bytes.TrimSpace(body)
	// What has no body needs no type.
	if len(body) > 0 && !c.isJSON() {
		return nil, failWith(codeMediaType, "Content-Type should be application/json")
	}
	return body, nil
}

// decodeObject reads an object strictly: exact names, each once, and valid texts.
func decodeObject(body []byte, v any) error {
	return bodyFault(jsonform.Decode(body, v, jsonform.Ignore))
}

// bodyFault is what is wrong with a body.
func bodyFault(err error) error {
	var unknown *jsonform.UnknownError
	var syntax *jsonscan.SyntaxError
	var fault *jsonform.Error
	var mistyped *json.UnmarshalTypeError
	var f *failure
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

// object reads a field that takes an object, nil where the body does not have it.
func object(field string, raw json.RawMessage) (json.RawMessage, error) {
	switch {
	case !isGiven(raw):
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

// number reads a field that takes one of a few numbers; given is false where the
// body does not have it. Whatever else stands there is answered alike: the
// numbers it takes.
func number(field string, raw json.RawMessage, takes ...int) (n int, given bool, err error) {
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

// word reads a field that takes one of a few texts.
func word(field string, raw json.RawMessage, takes ...string) (text string, given bool, err error) {
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

// limit reads the query's limit.
func (c *call) limit() (int, error) {
	absent, most := c.op.Page()
	n, ok := paging.Number(c.QueryArgs().Peek("limit"), 1, most, absent)
	if !ok {
		return 0, Fail("limit Input should be a whole number from 1 to %d", most)
	}
	return n, nil
}

// by is who makes the call, for the audit log.
func (c *call) by() audit.Author {
	if c.userID != "" {
		return audit.Author{Kind: audit.ByUser, ID: c.userID}
	}
	return audit.Author{Kind: audit.ByKey, ID: c.key.KeyID}
}

// command runs a command of the key's account and reads its reply into v, which
// may be nil.
func (c *call) command(name string, args, v any) error {
	b, err := c.api.opts.Node.CommandBy(c.ctx, c.key.Account, name, args, c.by())
	if err != nil || v == nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("reply to %s: %w", name, err)
	}
	return nil
}
