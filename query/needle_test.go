package query

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/segment"
)

// TestNeedlesMissNothing: whenever a predicate holds for an object, one of its needles is
// in the object's text, whatever is escaped there.
func TestNeedlesMissNothing(t *testing.T) {
	part := rapid.SampledFrom([]string{"a", "B", "c", "d", "sku-1", "x y", "ß", "é", "z", "q", `"`, `\`, "\n", "\x7f", "/", " ", "\u2028", "🙂", "é", "<", "\t"})
	text := rapid.Map(rapid.SliceOfN(part, 0, 4), func(p []string) string { return strings.Join(p, "") })
	found := 0
	check := func(r *rapid.T) {
		s := text.Draw(r, "value")
		var held any = s
		switch rapid.IntRange(0, 3).Draw(r, "form") {
		case 0:
			held = []any{1, s, nil}
		case 1:
			held = map[string]any{"k": s}
		}
		b, err := json.Marshal(map[string]any{"k": held, "other": 1})
		if err != nil {
			r.Fatal(err)
		}
		scan := jsonscan.New(32, 1<<20)
		scan.Reset(b)
		canonical, _ := scan.Value(0, 0)
		op := rapid.SampledFrom([]segment.Op{segment.OpEq, segment.OpIn, segment.OpStartsWith, segment.OpEndsWith, segment.OpContains, segment.OpNe, segment.OpNotIn, segment.OpNotContains}).Draw(r, "op")
		cut := text.Draw(r, "other")
		if i := rapid.IntRange(0, len(s)).Draw(r, "cut"); rapid.Bool().Draw(r, "part of it") {
			cut = map[bool]string{true: s[:i], false: s[i:]}[op == segment.OpStartsWith]
		}
		values := []segment.Value{{Kind: segment.ValueString, Str: rapid.SampledFrom([]string{s, cut}).Draw(r, "constant")}}
		if op == segment.OpIn || op == segment.OpNotIn {
			values = append(values, segment.Value{Kind: segment.ValueString, Str: text.Draw(r, "one more")})
		}
		for _, path := range [][]string{{"k"}, {"k", "k"}} {
			p := segment.Predicate{Path: path, Op: op, Values: values}
			list := needles(&p)
			if len(list) == 0 || !p.Match(canonical, 0) {
				continue
			}
			found++
			if !slices.ContainsFunc(list, func(n string) bool { return strings.Contains(string(canonical), n) }) {
				r.Fatalf("%+v holds for %s, which has none of %q", p, canonical, list)
			}
		}
	}
	// One short run in 25 draws no predicate that holds.
	for range 10 {
		if rapid.Check(t, check); found > 0 {
			break
		}
	}
	if found == 0 {
		t.Error("no predicate with needles held")
	}
	for _, p := range []segment.Predicate{
		{Op: segment.OpNe, Values: []segment.Value{{Kind: segment.ValueString, Str: "a"}}},
		{Op: segment.OpEq, Values: []segment.Value{{Kind: segment.ValueNumber}}},
		{Op: segment.OpExists},
	} {
		if list := needles(&p); list != nil {
			t.Errorf("%+v has the needles %q", p, list)
		}
	}
}
