package resolver

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
	var j jsonMerger
	seen, missed := 0, 0
	for range 40_000 {
		dst, _, err := j.merge(nil, []byte(object(0)), mergeOverwrite)
		if err != nil {
			t.Fatal(err)
		}
		src := []byte(object(0))
		switch rng.IntN(4) {
		case 0:
			src = append([]byte(nil), dst...)
		case 1: // the beginning
			_ = eachMember(dst, func(m member) { src = append(append(append([]byte("{"), m.key...), ':'), m.value...) })
			src = append(src, '}')
		case 2: // cut or changed anywhere
			if src = append([]byte(nil), dst...); len(src) > 0 {
				src[rng.IntN(len(src))] = pick(rng, byte('{'), '}', '"', ',', ':', '1', 'n')
				src = src[:len(src)-rng.IntN(2)]
			}
		}
		for _, mode := range []mergeMode{mergeOverwrite, mergeFill} {
			j.depth = 0
			same, err := j.same(dst, src, mode)
			switch glance := holds(dst, src); {
			case glance && (err != nil || !same):
				t.Fatalf("mode %d: %s holds %s, and merging changes it (%v)", mode, dst, src, err)
			case glance:
				seen++
			case err == nil && same && mode == mergeOverwrite && len(src) > 2:
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
			var j jsonMerger
			for b.Loop() {
				if _, changed, err := j.merge(dst, src, mergeOverwrite); changed || err != nil {
					b.Fatal(changed, err)
				}
			}
		})
	}
}

// same reports that merging src into dst would change nothing.
func (j *jsonMerger) same(dst, src []byte, mode mergeMode) (bool, error) {
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
		i := index.find(m.key)
		null := m.value[0] == 'n'
		switch {
		case null:
			same = i < 0 || mode == mergeFill
		case i < 0:
			same = false
		case m.value[0] == '{' && have[i].value[0] == '{':
			same, err = j.same(have[i].value, m.value, mode)
		default:
			same = mode == mergeFill || string(have[i].value) == string(m.value)
		}
	}
	return same, err
}
