package profile

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestHoldsAgreesWithSame: what is taken for unchanged at a glance is unchanged,
// and most of what is unchanged is seen at a glance.
func TestHoldsAgreesWithSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	var value func(depth int) string
	object := func(depth int) string {
		out := "{"
		for k := range 6 {
			if rng.IntN(2) == 0 {
				if len(out) > 1 {
					out += ","
				}
				out += fmt.Sprintf(`"%s":%s`, pick(rng, "k", "k\\\"", "")+fmt.Sprint(k), value(depth+1))
			}
		}
		return out + "}"
	}
	value = func(depth int) string {
		if depth < 3 && rng.IntN(4) == 0 {
			return object(depth)
		}
		return pick(rng, "1", "12", "null", "true", `"x"`, `"x,\"}"`, `[1,{"a":null}]`, `""`)
	}
	var j JSONMerger
	seen, missed := 0, 0
	for range 40_000 {
		dst, _, err := j.Merge(nil, []byte(object(0)), Overwrite)
		if err != nil {
			t.Fatal(err)
		}
		src := []byte(object(0))
		switch rng.IntN(4) {
		case 0:
			src = append([]byte(nil), dst...)
		case 1: // the beginning
			_ = EachMember(dst, func(m Member) { src = append(append(append([]byte("{"), m.Key...), ':'), m.Value...) })
			src = append(src, '}')
		case 2: // cut or changed anywhere
			if src = append([]byte(nil), dst...); len(src) > 0 {
				src[rng.IntN(len(src))] = pick(rng, byte('{'), '}', '"', ',', ':', '1', 'n')
				src = src[:len(src)-rng.IntN(2)]
			}
		}
		for _, mode := range []MergeMode{Overwrite, Fill} {
			j.depth = 0
			same, err := j.same(dst, src, mode)
			switch glance := holds(dst, src); {
			case glance && (err != nil || !same):
				t.Fatalf("mode %d: %s holds %s, and merging changes it (%v)", mode, dst, src, err)
			case glance:
				seen++
			case err == nil && same && mode == Overwrite && len(src) > 2:
				missed++
			}
		}
	}
	t.Logf("%d seen at a glance, %d not", seen, missed)
	if seen < 5000 || missed > seen {
		t.Fatal("the glance sees too little")
	}
}

// BenchmarkMergeSame merges what is known already, as most events do.
func BenchmarkMergeSame(b *testing.B) {
	dst := []byte(`{"plan":"pro","age":42,"city":"Berlin","newsletter":true,"tags":["a","b"],"score":12.5}`)
	for name, src := range map[string][]byte{"all": dst, "some": []byte(`{"age":42,"newsletter":true}`), "shuffled": []byte(`{"newsletter":true,"age":42}`)} {
		b.Run(name, func(b *testing.B) {
			var j JSONMerger
			for b.Loop() {
				if _, changed, err := j.Merge(dst, src, Overwrite); changed || err != nil {
					b.Fatal(changed, err)
				}
			}
		})
	}
}

// BenchmarkMergeLarge merges objects of 6,500 keys that all change: time must
// grow with the keys, not with their square.
func BenchmarkMergeLarge(b *testing.B) {
	object := func(value int) []byte {
		out := []byte{'{'}
		for i := range 6500 {
			if i > 0 {
				out = append(out, ',')
			}
			out = fmt.Appendf(out, `"%04x":%d`, i, value)
		}
		return append(out, '}')
	}
	dst, src := object(1), object(2)
	var j JSONMerger
	for b.Loop() {
		j.Reset()
		if _, _, err := j.Merge(dst, src, Overwrite); err != nil {
			b.Fatal(err)
		}
	}
}

// same reports that merging src into dst would change nothing.
func (j *JSONMerger) same(dst, src []byte, mode MergeMode) (bool, error) {
	have, err := j.members(dst)
	defer j.release()
	if err != nil {
		return false, err
	}
	add, err := j.members(src)
	defer j.release()
	if err != nil {
		return false, err
	}
	index := newFinder(have, len(add))
	same := true
	for k := 0; k < len(add) && same && err == nil; k++ {
		m := add[k]
		i := index.find(m.Key)
		null := m.Value[0] == 'n'
		switch {
		case null:
			same = i < 0 || mode == Fill
		case i < 0:
			same = false
		case m.Value[0] == '{' && have[i].Value[0] == '{':
			same, err = j.same(have[i].Value, m.Value, mode)
		default:
			same = mode == Fill || string(have[i].Value) == string(m.Value)
		}
	}
	return same, err
}

// pick draws one of a list.
func pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }
