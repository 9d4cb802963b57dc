package contacts

import (
	"encoding/json"
	"strings"

	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// Objects of commands are brought into the form that those of events have when
// they come in, so that a value is stored alike by whatever way it came: numbers
// as they were written, texts in UTF-8. Commands are written by encoding/json,
// which escapes some characters that need not be.
const (
	// objectDepth is how deep an event's JSON may nest, objectLevel how deep the
	// object of attributes stands in it.
	objectDepth = 32
	objectLevel = 2
)

// CanonicalObject makes an object canonical in place. What cannot be kept as it
// is, is refused.
func CanonicalObject(field string, raw *json.RawMessage) *refuse.Refusal {
	if len(*raw) == 0 {
		return nil
	}
	if string(*raw) == "null" {
		*raw = nil
		return nil
	}
	scan := jsonscan.New(objectDepth, profile.MaxObjectBytes)
	scan.Reset(*raw)
	text, _ := scan.Value(scan.Space(0), objectLevel)
	if scan.HasFault() {
		return faultyObject(field, scan.Fault())
	}
	if len(text) == 0 || text[0] != '{' {
		return refuse.Invalid(field, "%s Input should be a valid object", field)
	}
	*raw = text
	return nil
}

func faultyObject(field string, f *jsonscan.Fault) *refuse.Refusal {
	where := field + string(f.Path)
	switch f.Kind {
	case jsonscan.FaultDuplicate:
		return refuse.Invalid(field, "%s.%s occurs twice; send each key of an object once", where, f.Key)
	case jsonscan.FaultDepth:
		return refuse.Invalid(field, "%s is nested deeper than %d levels; flatten it", where, objectDepth)
	case jsonscan.FaultRange:
		return refuse.Invalid(field, "%s is a number beyond the range of a 64-bit floating point number; send it as a string", where)
	case jsonscan.FaultSurrogate:
		return refuse.Invalid(field, `%s holds a \u escape of half a character (a lone surrogate); send whole characters`, where)
	case jsonscan.FaultNUL:
		return refuse.Invalid(field, `%s holds the character NUL (\u0000); remove it`, where)
	}
	return refuse.AtLimit(field, "%s is longer than %d bytes; send less", where, profile.MaxObjectBytes)
}

// OwnField names fields as a contact has them: an event has them in user.
func OwnField(r *refuse.Refusal) *refuse.Refusal {
	r.Field = strings.TrimPrefix(r.Field, "user.")
	r.Message = strings.ReplaceAll(r.Message, "user.", "")
	return r
}
