package sieve

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/segment"
)

// TestTexts: each condition that holds for a value is found, and of values that are a text
// no other.
func TestTexts(t *testing.T) {
	var x Texts[int]
	list := []segment.Predicate{equals("a"), equals("b", "a", "a"), equals("ü"), equals(""), equals("b")}
	for i := range list {
		if !Takes(&list[i]) {
			t.Fatalf("%d is not taken", i)
		}
		x.Add(&list[i], i)
	}
	for raw, exact := range map[string]bool{`"a"`: true, `"b"`: true, `"\u00fc"`: true, `"ü"`: true, `""`: true, `"c"`: true, `["c","b"]`: false, `7`: true, `true`: true, `null`: true, ``: true, `{"a":"a"}`: true} {
		var want []int
		for i := range list {
			if list[i].MatchValue([]byte(raw), 0) {
				want = append(want, i)
			}
		}
		have := x.Find([]byte(raw))
		for _, w := range want {
			if !slices.Contains(have, w) {
				t.Errorf("%s: %v, without %d", raw, have, w)
			}
		}
		if exact && !slices.Equal(have, want) {
			t.Errorf("%s: %v, want %v", raw, have, want)
		}
	}
	number := segment.Predicate{Op: segment.OpIn, Values: []segment.Value{{Kind: segment.ValueString, Str: "1"}, {Kind: segment.ValueNumber, Num: 1}}}
	not := segment.Predicate{Op: segment.OpNe, Values: []segment.Value{{Kind: segment.ValueString, Str: "a"}}}
	if Takes(&number) || Takes(&not) {
		t.Error("a predicate that holds for more than texts is taken")
	}
}

func equals(texts ...string) segment.Predicate {
	p := segment.Predicate{Op: segment.OpIn}
	for _, s := range texts {
		p.Values = append(p.Values, segment.Value{Kind: segment.ValueString, Str: s})
	}
	return p
}

// TestSteps: of random comparisons, each that answers otherwise for one number than for
// another is found.
func TestSteps(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	ops := []segment.Op{segment.OpEq, segment.OpNe, segment.OpGt, segment.OpGe, segment.OpLt, segment.OpLe, segment.OpBetween, segment.OpIn, segment.OpNotIn}
	flipped := 0
	for range 200 {
		var s Steps[int]
		var list []segment.Compare
		number := func() int128.Int128 { return int128.From(rng.Int64N(12) - 6) }
		for i := range 1 + rng.IntN(12) {
			c := segment.Compare{Op: ops[rng.IntN(len(ops))], Micros: []int128.Int128{number(), number()}}
			if c.Op == segment.OpBetween && c.Micros[0].Cmp(c.Micros[1]) > 0 {
				slices.Reverse(c.Micros)
			}
			list = append(list, c)
			for _, at := range c.Micros {
				s.Add(at, i)
			}
		}
		for range 20 {
			a, b := number(), number()
			found := s.Find(a, b)
			for i := range list {
				if list[i].Holds(a) != list[i].Holds(b) {
					flipped++
					if !slices.Contains(found, i) {
						t.Fatalf("%v from %v to %v: %s is not found", found, a, b, fmt.Sprint(list[i]))
					}
				}
			}
		}
	}
	if flipped < 1000 {
		t.Errorf("%d answers changed", flipped)
	}
}
