package flows

import (
	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/internal/rawjson"
)

// Apply is the value of a profile's tags after the step, an array, and whether it
// differs: those in Remove are gone, those in Add that are not there yet come last,
// and none is there twice. Nothing is added beyond [MaxTags]; tags that the profile
// has stay, however many. What is no text among them is no tag, and stays where it
// is; a value that is no array counts as an array of it. value is JSON, empty for
// none, and is not changed.
func (t *Tag) Apply(value []byte) (_ []byte, differs bool) {
	out := []byte{'['}
	put := func(element []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, element...)
	}
	passed := make(map[string]bool, len(t.Add)+len(t.Remove))
	for _, tag := range t.Remove {
		passed[tag] = true
	}
	tags := 0
	have := func(element []byte) bool {
		text, ok := tagOf(element)
		switch {
		case !ok:
			put(element)
		case passed[text]:
			differs = true
		default:
			passed[text] = true
			tags++
			put(element)
		}
		return true
	}
	switch rawjson.KindOf(value) {
	case rawjson.Array:
		rawjson.EachElement(value, have)
	case rawjson.Invalid, rawjson.Null:
	default:
		have(value)
	}
	for _, tag := range t.Remove {
		passed[tag] = false // what is in both is added
	}
	for _, tag := range t.Add {
		if tags < MaxTags && !passed[tag] {
			passed[tag], differs = true, true
			tags++
			put(jsonscan.AppendQuoted(nil, []byte(tag)))
		}
	}
	return append(out, ']'), differs
}

// tagOf is the tag that an element is, if it is one.
func tagOf(element []byte) (string, bool) {
	if rawjson.KindOf(element) != rawjson.String {
		return "", false
	}
	text, ok := rawjson.Text(element, nil)
	return string(text), ok
}
