// Package body is what reading the bodies of calls has in common on all surfaces: which
// calls have one, whether it is what the operation takes, and what is wrong with it. Each
// surface says so in words of its own, see [Words].
package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/jsonscan"
)

// IsJSON reports whether a request says that its body is JSON.
func IsJSON(rc *fasthttp.RequestCtx) bool {
	kind, _, _ := strings.Cut(string(rc.Request.Header.ContentType()), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// IsEncoded reports whether a request says that its body is compressed, or otherwise encoded.
func IsEncoded(rc *fasthttp.RequestCtx) bool {
	coding := rc.Request.Header.ContentEncoding()
	return len(coding) > 0 && !bytes.EqualFold(coding, []byte("identity"))
}

// IsRead reports whether the body of a call is read: where the operation takes none, what a
// GET or a form brings is ignored.
func IsRead(op *operation.Operation, rc *fasthttp.RequestCtx) bool {
	return op.Body != nil || !rc.IsGet() && !rc.IsHead() && IsJSON(rc)
}

// Check refuses what an operation does not take. The error is one for [Words.Fault].
func Check(op *operation.Operation, payload []byte) error {
	text, err := jsonform.Canonical(payload)
	if err != nil {
		return err
	}
	return op.CheckBody(text)
}

// Words say what is wrong with a body, as a surface does.
type Words struct {
	Syntax    func(*jsonscan.SyntaxError) error
	Unknown   func(*jsonform.UnknownError) error // a field
	NotObject func() error                       // the whole body
	Form      func(*jsonform.Error) error        // of a field
	// Mistyped is a field with a value of another type than want, which is one of Types.
	Mistyped func(e *json.UnmarshalTypeError, want string) error
	Other    func(error) error
	Types    Types
}

// Types are the names of types, as a person who writes JSON knows them.
type Types struct{ String, Bool, List, Object, Number, Integer string }

// of names a Go type.
func (t *Types) of(x reflect.Type) string {
	switch x.Kind() {
	case reflect.String:
		return t.String
	case reflect.Bool:
		return t.Bool
	case reflect.Slice, reflect.Array:
		return t.List
	case reflect.Struct, reflect.Map:
		return t.Object
	case reflect.Float32, reflect.Float64:
		return t.Number
	}
	return t.Integer
}

// Fault says what is wrong with a body by an error of package jsonform or of
// [operation.Operation.CheckBody], nil for none.
func (w *Words) Fault(err error) error {
	var syntax *jsonscan.SyntaxError
	var unknown *jsonform.UnknownError
	var form *jsonform.Error
	var mistyped *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return w.Syntax(syntax)
	case errors.As(err, &unknown):
		return w.Unknown(unknown)
	case errors.As(err, &form) && form.Path == "", errors.As(err, &mistyped) && mistyped.Field == "":
		return w.NotObject()
	case form != nil:
		return w.Form(form)
	case mistyped != nil:
		return w.Mistyped(mistyped, w.Types.of(mistyped.Type))
	}
	return w.Other(err)
}
