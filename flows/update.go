package flows

import (
	"errors"
	"strings"

	"github.com/musterhq/muster/internal/clip"
	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/segment"
)

// ErrPatchTooLarge means that the values of an [Update] are, filled in, more than
// a profile takes.
var ErrPatchTooLarge = errors.New("the fields to set have, with their values, more than 65,536 bytes; set fewer or shorter ones")

// Patch is what the step changes, with the merge tags in its strings filled in, in
// the form in which an event carries it, in canonical text: {"first_name": …,
// "last_name": …, "attributes": {…}, "geo": {…}}. null removes. Names are one line
// of at most 512 bytes. The error is [ErrPatchTooLarge] or [merge.ErrTooLarge].
func (u *Update) Patch(values merge.Lookup) ([]byte, error) {
	root := &patch{}
	for _, a := range u.Set {
		mode := merge.Text
		person := a.Field == segment.FieldFirstName || a.Field == segment.FieldLastName
		if person {
			mode = merge.Header
		}
		value, err := appendFilled(nil, a.Value, values, mode)
		if err != nil {
			return nil, err
		}
		if person {
			value = clipString(value, maxPersonName)
		}
		root.set(strings.Split(a.Field, "."), value)
	}
	out := root.append(nil)
	if len(out) > maxPatchBytes {
		return nil, ErrPatchTooLarge
	}
	return out, nil
}

// patch is an object in the making, in the order of its first mention.
type patch struct {
	key   string
	value []byte // of a leaf
	below []*patch
}

// set puts a value at a path; what stood in its way is gone.
func (p *patch) set(path []string, value []byte) {
	for _, key := range path {
		var next *patch
		for _, b := range p.below {
			if b.key == key {
				next = b
			}
		}
		if next == nil {
			next = &patch{key: key}
			p.below = append(p.below, next)
		}
		next.value = nil
		p = next
	}
	p.value, p.below = value, nil
}

func (p *patch) append(dst []byte) []byte {
	if p.value != nil {
		return append(dst, p.value...)
	}
	dst = append(dst, '{')
	for i, b := range p.below {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(jsonscan.AppendQuoted(dst, []byte(b.key)), ':')
		dst = b.append(dst)
	}
	return append(dst, '}')
}

// appendFilled appends a value with the merge tags in its strings filled in.
func appendFilled(dst, raw []byte, values merge.Lookup, mode merge.Mode) (_ []byte, err error) {
	between := func() {
		if c := dst[len(dst)-1]; c != '{' && c != '[' {
			dst = append(dst, ',')
		}
	}
	switch rawjson.KindOf(raw) {
	case rawjson.String:
		if !strings.Contains(string(raw), "{{") {
			return append(dst, raw...), nil
		}
		text, ok := rawjson.Unquote(nil, raw)
		if !ok {
			return append(dst, raw...), nil
		}
		t, err := merge.Parse(string(text), mode)
		if err != nil {
			return append(dst, raw...), nil // no live flow has such; it stays what it is
		}
		if text, err = t.AppendTo(text[:0:0], values); err != nil {
			return dst, err
		}
		dst = jsonscan.AppendQuoted(dst, text)
	case rawjson.Array:
		dst = append(dst, '[')
		rawjson.EachElement(raw, func(value []byte) bool {
			between()
			dst, err = appendFilled(dst, value, values, mode)
			return err == nil
		})
		dst = append(dst, ']')
	case rawjson.Object:
		dst = append(dst, '{')
		rawjson.Each(raw, func(key, value []byte) bool {
			between()
			dst = append(append(dst, key...), ':')
			dst, err = appendFilled(dst, value, values, mode)
			return err == nil
		})
		dst = append(dst, '}')
	default:
		dst = append(dst, raw...)
	}
	if err == nil && len(dst) > maxPatchBytes {
		err = ErrPatchTooLarge
	}
	return dst, err
}

// clipString cuts a string to at most max bytes; other values stay.
func clipString(raw []byte, max int) []byte {
	text, ok := rawjson.Unquote(nil, raw)
	if rawjson.KindOf(raw) != rawjson.String || !ok || len(text) <= max {
		return raw
	}
	return jsonscan.AppendQuoted(nil, clip.Text(text, max))
}
