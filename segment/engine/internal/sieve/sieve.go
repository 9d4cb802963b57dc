// Package sieve finds, of many conditions, the few that something new may concern, without
// a look at each: those that ask for a text, and those that compare a number with constants.
package sieve

import (
	"slices"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/segment"
)

// Texts finds the conditions that ask whether a value is one of some texts. The zero value
// has none.
type Texts[T any] struct {
	byText map[string][]T
	all    []T
}

// Takes reports whether a predicate asks whether a value is one of some texts, and nothing else.
func Takes(p *segment.Predicate) bool {
	return (p.Op == segment.OpEq || p.Op == segment.OpIn) && !slices.ContainsFunc(p.Values, func(v segment.Value) bool { return v.Kind != segment.ValueString })
}

// Add adds a condition whose predicate is taken. Conditions are found in the order in which
// they were added.
func (x *Texts[T]) Add(p *segment.Predicate, condition T) {
	if x.byText == nil {
		x.byText = map[string][]T{}
	}
	x.all = append(x.all, condition)
	for i, v := range p.Values {
		if !slices.Contains(p.Values[:i], v) {
			x.byText[v.Str] = append(x.byText[v.Str], condition)
		}
	}
}

// Find returns the conditions whose predicate may hold for a JSON value in canonical text,
// empty for none: no other does. They must not be changed.
func (x *Texts[T]) Find(raw []byte) []T {
	switch rawjson.KindOf(raw) {
	case rawjson.String:
		var buf [128]byte
		if text, ok := rawjson.Text(raw, buf[:]); ok {
			return x.byText[string(text)]
		}
	case rawjson.Array: // each of its elements may be meant
		return x.all
	}
	return nil
}

// Steps finds the conditions on a number whose answer may change when the number does: it
// depends on nothing but how the number compares with constants. The zero value has none.
type Steps[T any] struct {
	at  []int128.Int128 // in order
	all []T
}

// Add adds a condition with one of its constants.
func (s *Steps[T]) Add(constant int128.Int128, condition T) {
	i, _ := slices.BinarySearchFunc(s.at, constant, int128.Int128.Cmp)
	s.at, s.all = slices.Insert(s.at, i, constant), slices.Insert(s.all, i, condition)
}

// Find returns the conditions that may answer otherwise for one number than for the other,
// those with several constants possibly more than once. They must not be changed.
func (s *Steps[T]) Find(a, b int128.Int128) []T {
	if a.Cmp(b) > 0 {
		a, b = b, a
	}
	from, _ := slices.BinarySearchFunc(s.at, a, int128.Int128.Cmp)
	to, _ := slices.BinarySearchFunc(s.at, b, func(x, b int128.Int128) int {
		if x.Cmp(b) <= 0 { // b itself is among them
			return -1
		}
		return 1
	})
	return s.all[from:to]
}
