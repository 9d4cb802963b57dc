package segmenttest

import (
	"strconv"
	"strings"

	"github.com/musterhq/muster/segment"
)

// At draws an instant to judge at: mostly the base or a millisecond beside it,
// where the edges of windows are.
func (g *Gen) At() int64 {
	switch g.r.IntN(10) {
	case 0:
		return BaseMs - 86_400_000*int64(g.r.IntN(40))
	case 1:
		return BaseMs + 86_400_000*int64(g.r.IntN(400))
	}
	return BaseMs + int64(g.r.IntN(3)) - 1
}

// when draws a time of the past or, seldom, the future, often at the edge of a
// window.
func (g *Gen) when() int64 {
	switch n := g.r.IntN(20); {
	case n < 8:
		return BaseMs - pick(g, windows[:8]).ms + int64(g.r.IntN(5)) - 2
	case n < 17:
		return BaseMs - g.r.Int64N(40*86_400_000)
	case n < 19:
		return BaseMs + int64(g.r.IntN(5)) - 2
	}
	return BaseMs + g.r.Int64N(3*86_400_000)
}

func (g *Gen) timeText() string {
	if g.chance(35) {
		return pick(g, times)
	}
	text := string(segment.AppendTime(nil, g.when()))
	switch g.r.IntN(4) {
	case 0:
		return text[:len("2024-03-15")]
	case 1: // truncated, never rounded
		return strings.TrimSuffix(text, "Z") + "9999Z"
	case 2:
		return strings.TrimSuffix(text, "Z") + pick(g, []string{"+00:00", "-00:30", "+05:45"})
	}
	return text
}

// scalar draws raw JSON of a kind; 0 for any, null among them.
func (g *Gen) scalar(p property) string {
	kind := p.kind
	if kind == 0 || g.chance(8) {
		kind = segment.ValueKind(g.r.IntN(5))
	}
	switch kind {
	case segment.ValueNumber:
		return g.number()
	case segment.ValueBool:
		return strconv.FormatBool(g.chance(50))
	case segment.ValueString:
		if p.time && !g.chance(8) || p.kind == 0 && g.chance(25) {
			return quote(g.timeText())
		}
		return quote(g.text())
	}
	return "null"
}

func (g *Gen) number() string {
	if g.chance(60) {
		return pick(g, commonNumbers)
	}
	return pick(g, numbers)
}

func (g *Gen) text() string {
	if g.chance(60) {
		return pick(g, commonTexts)
	}
	return pick(g, texts)
}

// value draws what a property holds: mostly a scalar, sometimes an array or an
// object.
func (g *Gen) value(p property) string {
	switch n := g.r.IntN(100); {
	case n < 8 || p.path == "tags" && n < 60:
		var elements []string
		for range g.r.IntN(4) {
			if g.chance(8) {
				elements = append(elements, pick(g, []string{"[]", `["a"]`, "{}", `{"a":1}`, "[1]", "null"}))
				continue
			}
			elements = append(elements, g.scalar(p))
		}
		return array(elements)
	case n < 12:
		return pick(g, []string{"{}", `{"a":1}`, `{"a":{"b":null}}`, "null"})
	}
	return g.scalar(p)
}

// tree is a JSON object under construction: values by dotted path.
type tree struct {
	keys   []string
	values map[string]string
	below  map[string]*tree
}

func (t *tree) set(path []string, value string) {
	if t.values == nil {
		t.values, t.below = map[string]string{}, map[string]*tree{}
	}
	key := path[0]
	if _, ok := t.values[key]; ok {
		return // a scalar is in the way
	}
	if t.below[key] == nil {
		t.keys = append(t.keys, key)
		if len(path) == 1 {
			t.values[key] = value
			return
		}
		t.below[key] = &tree{}
	} else if len(path) == 1 {
		return // an object is there already
	}
	t.below[key].set(path[1:], value)
}

func (t *tree) String() string {
	var parts []string
	for _, key := range t.keys {
		value, ok := t.values[key]
		if !ok {
			value = t.below[key].String()
		}
		parts = append(parts, quote(key)+":"+value)
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// jsonObject draws an object over the properties; nil now and then.
func (g *Gen) jsonObject(percent int) []byte {
	if g.chance(8) {
		return nil
	}
	var t tree
	order := g.r.Perm(len(properties))
	for _, i := range order {
		if p := properties[i]; p.path != "missing" && g.chance(percent) {
			t.set(strings.Split(p.path, "."), g.value(p))
		}
	}
	return []byte(t.String())
}
