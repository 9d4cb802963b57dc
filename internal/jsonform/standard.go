package jsonform

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Explain says what is wrong with a text that [encoding/json] refused, in the words
// of the text's author: the field and what it takes, or the place where the JSON
// ends being JSON. Any other error says what it says.
func Explain(err error) string {
	var syntax *json.SyntaxError
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("it is not valid JSON at byte %d: %s", syntax.Offset, syntax)
	case errors.As(err, &mistyped) && mistyped.Field != "":
		return fmt.Sprintf("%s must be %s, not %s", mistyped.Field, goKindName(mistyped.Type), mistyped.Value)
	case errors.As(err, &mistyped):
		return fmt.Sprintf("it must be %s, not %s", goKindName(mistyped.Type), mistyped.Value)
	}
	return err.Error()
}

// goKindName is the type of JSON that a Go type is read from.
func goKindName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map, reflect.Interface:
		return "an object"
	}
	return "a number"
}
