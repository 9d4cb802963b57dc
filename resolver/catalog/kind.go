package catalog

import "github.com/musterhq/muster/internal/rawjson"

// Kind is the JSON type of a value, as conditions tell them apart. The numbers are part
// of the saved form.
type Kind uint8

// The kinds. Those before List are scalars, which have values.
const (
	Text Kind = iota
	Number
	Boolean
	List
	Object
	Null
	kinds
)

const scalars = List

// KindNames are the names of the kinds, by number.
var KindNames = [kinds]string{"text", "number", "boolean", "list", "object", "null"}

func (k Kind) String() string { return KindNames[k] }

// kindOf is the kind of a raw value; not ok is one that is no JSON.
func kindOf(raw []byte) (k Kind, ok bool) {
	switch rawjson.KindOf(raw) {
	case rawjson.String:
		return Text, true
	case rawjson.Number:
		return Number, true
	case rawjson.True, rawjson.False:
		return Boolean, true
	case rawjson.Array:
		return List, true
	case rawjson.Object:
		return Object, true
	case rawjson.Null:
		return Null, true
	}
	return 0, false
}
