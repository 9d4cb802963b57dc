package flows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/messaging/merge"
)

// R1: the branch depends on the bits alone, and each has its share of all 64-bit
// numbers, to 2⁻⁴⁰.
func TestR1SplitPicksInProportion(t *testing.T) {
	for _, weights := range [][]int{{1}, {1, 1}, {1, 2, 3}, {1_000_000, 1}, {7, 0, 13}, {1, 1_000_000, 999_999}} {
		s, total := &Split{}, 0
		for _, w := range weights {
			s.Branches = append(s.Branches, Branch{Weight: w})
			total += w
		}
		// The first number of each branch, found by halving.
		first := func(branch int) float64 {
			low, high := uint64(0), uint64(math.MaxUint64)
			if s.Pick(high) < branch {
				return 1 << 64
			}
			for low < high {
				if mid := low + (high-low)/2; s.Pick(mid) >= branch {
					high = mid
				} else {
					low = mid + 1
				}
			}
			return float64(low)
		}
		for i, w := range weights {
			share, want := (first(i+1)-first(i))/(1<<64), float64(w)/float64(total)
			if math.Abs(share-want) > 1.0/(1<<40) {
				t.Errorf("%v: branch %d has %g, not %g", weights, i, share, want)
			}
		}
	}
	s := &Split{Branches: []Branch{{Weight: 1}, {Weight: 1}, {Weight: 2}}}
	for random, want := range map[uint64]int{0: 0, 1<<62 - 1: 0, 1 << 62: 1, 1 << 63: 2, math.MaxUint64: 2} {
		if got := s.Pick(random); got != want {
			t.Errorf("%x: %d, not %d", random, got, want)
		}
	}
	if (&Split{}).Pick(bits.Reverse64(1)) != 0 || (&Split{Branches: make([]Branch, 3)}).Pick(5) != 0 {
		t.Error("a split without weights")
	}
}

func TestTagApply(t *testing.T) {
	words := strings.Fields
	list := func(tags []string) []byte {
		b, err := json.Marshal(append([]string{}, tags...))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	apply := func(step Tag, tags []string) (out []string) {
		value, _ := step.Apply(list(tags))
		if err := json.Unmarshal(value, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, c := range []struct{ tags, add, remove, want string }{
		{"", "", "", ""},
		{"", "b a b", "", "b a"},
		{"c b a", "b d", "", "c b a d"},
		{"c b a", "", "b x", "c a"},
		{"c b a", "c", "c", "b a c"}, // removed and added: last
		{"a b a b", "", "", "a b"},
	} {
		tags := list(words(c.tags))
		got, differs := (&Tag{words(c.add), words(c.remove)}).Apply(tags)
		if want := list(words(c.want)); !bytes.Equal(got, want) || !differs && !bytes.Equal(want, tags) {
			t.Errorf("%+v: %s, differs %v", c, got, differs)
		}
		if !bytes.Equal(tags, list(words(c.tags))) {
			t.Errorf("%+v: its argument changed", c)
		}
	}
	for _, c := range []struct {
		value, want string
		differs     bool
	}{
		{"", `["n"]`, true},
		{`null`, `["n"]`, true},
		{`["a",5,"b"]`, `[5,"b","n"]`, true},
		{`[1.50,"n",["a"],1.50,{"a":"n"},null,"\u006e",true]`, `[1.50,"n",["a"],1.50,{"a":"n"},null,true]`, true},
		{`[5,"n","\u00e9"]`, `[5,"n","\u00e9"]`, false},
		{`"vip"`, `["vip","n"]`, true},
		{`"n"`, `["n"]`, false},
		{`"a"`, `["n"]`, true},
		{`{"a":"n"}`, `[{"a":"n"},"n"]`, true},
		{`7`, `[7,"n"]`, true},
	} {
		if got, differs := (&Tag{[]string{"n"}, []string{"a"}}).Apply([]byte(c.value)); string(got) != c.want || differs != c.differs {
			t.Errorf("%s becomes %s, differs %v; want %s, %v", c.value, got, differs, c.want, c.differs)
		}
	}
	// Q1: a step adds up to the bound, and takes nothing away.
	many := func(n int) (tags []string) {
		for i := range n {
			tags = append(tags, fmt.Sprint("t", i))
		}
		return tags
	}
	if got := apply(Tag{Add: []string{"a", "b"}}, many(MaxTags-1)); len(got) != MaxTags || got[MaxTags-1] != "a" {
		t.Error(len(got))
	}
	if got := apply(Tag{Add: []string{"a"}, Remove: []string{"t0"}}, many(MaxTags)); len(got) != MaxTags || got[MaxTags-1] != "a" {
		t.Error(len(got))
	}
	if got := apply(Tag{Add: []string{"a"}}, many(MaxTags+5)); !slices.Equal(got, many(MaxTags+5)) {
		t.Error(len(got))
	}
}

func update(t testing.TB, set string) *Update {
	t.Helper()
	f, err := Parse([]byte(`{"steps":[{"id":"a","type":"update_contact","set":` + set + `}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return f.Steps[0].Update
}

func TestUpdatePatch(t *testing.T) {
	values := func(path []string) (string, bool) {
		v, ok := map[string]string{
			"first_name": "Ada", "event.plan": `pr"o\`, "event.price": "12.50", "lines": "a\nb", "long": strings.Repeat("é", 1000),
		}[strings.Join(path, ".")]
		return v, ok
	}
	for set, want := range map[string]string{
		`{}`:                                    `{}`,
		`{"first_name":"Bob","last_name":null}`: `{"first_name":"Bob","last_name":null}`,
		`{"attributes.greeting":"Hi {{first_name}}!"}`:                                             `{"attributes":{"greeting":"Hi Ada!"}}`,
		`{"attributes.plan":"{{event.plan}}","geo.city":"x"}`:                                      `{"attributes":{"plan":"pr\"o\\"},"geo":{"city":"x"}}`,
		`{"attributes.a.b":1,"geo.c":2,"attributes.a.c":[1.50,true,null]}`:                         `{"attributes":{"a":{"b":1,"c":[1.50,true,null]}},"geo":{"c":2}}`,
		`{"attributes.a":{"{{first_name}}":["{{first_name}}",{"b":"{{x | default: \"none\"}}"}]}}`: `{"attributes":{"a":{"{{first_name}}":["Ada",{"b":"none"}]}}}`,
		`{"attributes.price":"{{event.price}}"}`:                                                   `{"attributes":{"price":"12.50"}}`,
		`{"attributes.missing":"{{nothing}}"}`:                                                     `{"attributes":{"missing":""}}`,
		`{"first_name":"{{lines}}","attributes.lines":"{{lines}}"}`:                                `{"first_name":"a b","attributes":{"lines":"a\nb"}}`,
		`{"first_name":"x{{long}}"}`:                                                               `{"first_name":"x` + strings.Repeat("é", 255) + `"}`,
		`{"attributes.a":"\u00e9\u0001"}`:                                                          `{"attributes":{"a":"é\u0001"}}`,
		`{"attributes.a.b":1,"attributes.a":2}`:                                                    `{"attributes":{"a":2}}`,
		`{"attributes.a":2,"attributes.a.b":1}`:                                                    `{"attributes":{"a":{"b":1}}}`,
		`{"attributes.a":{"x":1},"attributes.a.b":1,"attributes.broken":"{{"}`:                     `{"attributes":{"a":{"b":1},"broken":"{{"}}`,
	} {
		got, err := update(t, set).Patch(values)
		if err != nil || string(got) != want {
			t.Errorf("%s\n got %s, %v\nwant %s", set, got, err, want)
		}
	}
	// Q1: what values blow up is refused.
	if _, err := update(t, `{"attributes.a":"{{long}}{{long}}","attributes.b":"`+strings.Repeat("{{long}}", 31)+`"}`).Patch(values); !errors.Is(err, ErrPatchTooLarge) {
		t.Error(err)
	}
	long := func([]string) (string, bool) { return strings.Repeat("x", merge.MaxValue), true }
	if _, err := update(t, `{"attributes.a":"`+strings.Repeat("{{a}}", 1000)+`"}`).Patch(long); !errors.Is(err, merge.ErrTooLarge) {
		t.Error(err)
	}
}

// checkPatch: what an update gives is canonical JSON whatever the values are.
func checkPatch(t *testing.T, u *Update) {
	t.Helper()
	for _, v := range []string{"x", "\"\\\n\x00\xff{{x}}", ""} {
		patch, err := u.Patch(func([]string) (string, bool) { return v, true })
		if err != nil {
			if !errors.Is(err, ErrPatchTooLarge) && !errors.Is(err, merge.ErrTooLarge) {
				t.Fatal(err)
			}
			continue
		}
		s := jsonscan.New(1000, 1<<20)
		s.Reset(patch)
		if text, end := s.Value(0, 0); string(text) != string(patch) || end != len(patch) {
			t.Fatalf("not canonical: %s (%v)", patch, s.Fault())
		}
		if !json.Valid(patch) {
			t.Fatalf("%s", patch)
		}
	}
}

func TestBodyMode(t *testing.T) {
	typ := func(v string) []Header { return []Header{{"X", "y"}, {"content-TYPE", v}} }
	for _, c := range []struct {
		w    Webhook
		want merge.Mode
	}{
		{Webhook{}, merge.Text},
		{Webhook{Body: ` {"a":1}`}, merge.JSON},
		{Webhook{Body: `["{{a}}"]`}, merge.JSON},
		{Webhook{Body: `{{a}} came`}, merge.Text},
		{Webhook{Body: `a={{a}}`}, merge.Text},
		{Webhook{Body: `7`, Headers: typ("application/json; charset=utf-8")}, merge.JSON},
		{Webhook{Body: `7`, Headers: typ("application/vnd.api+json")}, merge.JSON},
		{Webhook{Body: `<a>{{b}}</a>`, Headers: typ("text/xml")}, merge.HTML},
		{Webhook{Body: `<a>{{b}}</a>`, Headers: typ("text/html")}, merge.HTML},
		{Webhook{Body: `{"a":1}`, Headers: typ("text/plain")}, merge.Text},
		{Webhook{Body: `{"a":1}`, Headers: typ("?")}, merge.Text},
	} {
		if got := c.w.BodyMode(); got != c.want {
			t.Errorf("%+v: %v, not %v", c.w, got, c.want)
		}
	}
}
