package paging

import (
	"reflect"
	"slices"
)

// MaxBytes is up to how many bytes of records a page has, whatever its limit; the
// cursor then says that there is more. A record that is larger has a page of its
// own.
const MaxBytes = 4 << 20

// Room is what is left of [MaxBytes] in a page. The zero Room is an empty page's.
type Room struct {
	// Bytes is about the length of the records taken so far, as JSON.
	Bytes int
}

// Take takes a record into the page; false means that it belongs on the next.
func (r *Room) Take(record any) bool {
	n := size(reflect.ValueOf(record))
	if r.Bytes > 0 && r.Bytes+n > MaxBytes {
		return false
	}
	r.Bytes += n
	return true
}

// size is about the length of a value as JSON: its texts, with their escapes, and
// the names of its fields.
func size(v reflect.Value) (n int) {
	const other = 8 // a number, a comma, quotation marks
	switch v.Kind() {
	case reflect.String:
		return other + textSize(v.String())
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return other
		}
		return size(v.Elem())
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return other + v.Len()
		}
		for i := range v.Len() {
			n += size(v.Index(i))
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			n += size(it.Key()) + size(it.Value())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				n += len(f.Name) + other + size(v.Field(i))
			}
		}
	}
	return n + other
}

func textSize(s string) int {
	n := len(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20:
			n += len(`\u0000`) - 1
		case c == '"', c == '\\':
			n++
		}
	}
	return n
}

// ShowByAge is [PageByAge] with the records that show makes, as many as a page has
// room for; newest reverses the order.
func ShowByAge[T, R any](list []T, after *Age, limit int, newest bool, of func(*T) Age, show func(*T) R) (out []R, next string, room Room) {
	before := Age.before
	if newest {
		before = func(x, y Age) bool { return y.before(x) }
	}
	order := func(x, y T) int {
		a, b := of(&x), of(&y)
		switch {
		case before(a, b):
			return -1
		case before(b, a):
			return 1
		}
		return 0
	}
	if !slices.IsSortedFunc(list, order) {
		// Of one millisecond the list has another order than cursors go by.
		list = slices.SortedFunc(slices.Values(list), order)
	}
	part, _ := pageByAge(list, after, limit, of, before)
	out = []R{}
	for i := range part {
		r := show(&part[i])
		if !room.Take(r) {
			break
		}
		out = append(out, r)
	}
	_, next = pageByAge(list, after, len(out), of, before)
	return out, next, room
}
