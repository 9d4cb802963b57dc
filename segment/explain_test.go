package segment_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/segmenttest"
)

// explained is one explanation under test, with what the oracle judges by.
type explained struct {
	t       *testing.T
	profile *segment.NaiveProfile
	atMs    int64
	refs    func(string) (*segment.Node, bool)
	nested  map[string]int // how often each segment is nested
	nodes   int            // of nested definitions
}

// explain explains a definition for a profile from its events in any order.
func (e *explained) explain(root *segment.Node, r *rand.Rand) (*segment.Explanation, bool) {
	var leaves []*segment.Activity
	seen := map[string]bool{}
	var collect func(n *segment.Node)
	collect = func(n *segment.Node) {
		leaves = append(leaves, n.Activities()...)
		for _, id := range n.SegmentIDs() {
			if d, ok := e.refs(id); ok && !seen[id] {
				seen[id] = true
				collect(d)
			}
		}
	}
	collect(root)
	tallies := segment.NewTallies(leaves, e.atMs)
	afterMs, bounded := tallies.AfterMs()
	for _, i := range r.Perm(len(e.profile.Events)) {
		// What AfterMs rules out need not be handed over.
		if v := e.profile.Events[i]; !bounded || v.TimeMs > afterMs {
			if err := tallies.Add(v.Type, v.Sent, v.TimeMs, v.Properties); err != nil {
				e.t.Fatal(err)
			}
		}
	}
	return segment.Explain(root, segment.Explaining{
		AtMs: e.atMs, Facts: segment.FactsOf(e.profile), Segments: e.refs,
		Activity: func(a *segment.Activity) (bool, *segment.ActivityFacts) {
			f := tallies.Facts(a)
			return f.Holds, f
		},
	})
}

// check compares an explanation, node by node, with the oracle.
func (e *explained) check(n *segment.Node, x *segment.Explanation) {
	if want := e.profile.Anonymous && !n.IncludeAnonymous; x.Anonymous != want || want && x.Holds {
		e.t.Fatalf("anonymous: explained as %v, %v\n%s", x.Anonymous, x.Holds, n.Canonical())
	}
	y := *x
	if x.Anonymous {
		y.Holds = n.NaiveCondition(e.profile, e.atMs, e.refs) // the rest is explained as of others
	}
	e.checkNode(n, &y)
}

// checkNode is check of a node below the root.
func (e *explained) checkNode(n *segment.Node, x *segment.Explanation) {
	t := e.t
	if x.Node != n {
		t.Fatalf("explains %s, want %s", x.Node.Canonical(), n.Canonical())
	}
	if want := n.NaiveCondition(e.profile, e.atMs, e.refs); x.Holds != want {
		t.Fatalf("explained as %v, the oracle says %v\n%s\n%+v", x.Holds, want, n.Canonical(), e.profile)
	}
	if len(x.Conditions) != len(n.Conditions) || (x.Attribute != nil) != (n.Kind == segment.KindAttribute) ||
		(x.Consent != nil) != (n.Kind == segment.KindConsent) || (x.Activity != nil) != (n.Kind == segment.KindActivity) {
		t.Fatalf("wrong facts for %s: %+v", n.Canonical(), x)
	}
	switch n.Kind {
	case segment.KindGroup:
		for i, c := range n.Conditions {
			e.checkNode(c, x.Conditions[i])
		}
	case segment.KindActivity:
		e.checkActivity(n.Activity, x.Activity)
		if x.Activity.Holds != (x.Holds == n.Activity.Did) {
			t.Fatalf("the comparison %v makes %v of %s", x.Activity.Holds, x.Holds, n.Canonical())
		}
	case segment.KindAttribute:
		want := segment.NaiveAttributeValue(n.Attribute, e.profile, e.atMs)
		if got := segment.NaiveDecode(x.Attribute.Value); !reflect.DeepEqual(got, want) || x.Attribute.Bytes != 0 {
			t.Fatalf("%s looks at %s, want %v", n.Canonical(), x.Attribute.Value, want)
		}
	case segment.KindConsent:
		want, got := e.profile.Consents[n.Consent.Channel], x.Consent
		if want.Status == "" {
			want.Status = segment.StatusNeverSubscribed
		}
		if want.Status == segment.StatusSubscribed && e.profile.Suppressions[n.Consent.Channel] == "pending" {
			want.Status = segment.StatusPending
		}
		if got.Channel != n.Consent.Channel || got.Status != want.Status || got.HasDate != (want.SubscribedMs != nil) ||
			got.HasDate && got.SubscribedMs != *want.SubscribedMs {
			t.Fatalf("%s looks at %+v, want %+v", n.Canonical(), got, want)
		}
	case segment.KindList:
		if want := slices.Contains(e.profile.Lists, n.List.ListID); x.Member != want {
			t.Fatalf("%s: member %v", n.Canonical(), x.Member)
		}
	case segment.KindSegment:
		if x.Member != (x.Holds == n.Segment.Member) {
			t.Fatalf("member %v makes %v of %s", x.Member, x.Holds, n.Canonical())
		}
		if x.Definition != nil {
			id := n.Segment.SegmentID
			e.nested[id]++
			d, _ := e.refs(id)
			d.Walk(func(string, *segment.Node) { e.nodes++ })
			e.check(d, x.Definition)
		}
	}
}

func (e *explained) checkActivity(a *segment.Activity, got *segment.ActivityFacts) {
	want := segment.NaiveActivityFacts(a, e.profile, e.atMs)
	same := got.Matching == uint64(want.Matching) && got.Values == uint64(want.Values) &&
		got.OldestMs == want.OldestMs && got.NewestMs == want.NewestMs && (got.Value == nil) == (want.Value == nil)
	if same && got.Value != nil {
		same = got.Value.Rat().Cmp(want.Value) == 0
	}
	if !same {
		e.t.Fatalf("%s\nfound %+v, value %v\n want %+v\n%+v", segmentText(a), got, got.Value, want, e.profile.Events)
	}
}

func segmentText(a *segment.Activity) []byte {
	return (&segment.Node{Kind: segment.KindActivity, Activity: a}).Canonical()
}

// TestS1Explain compares every node of explanations of made-up definitions for
// made-up profiles with the oracle, and the facts with those of a plain scan.
func TestS1Explain(t *testing.T) {
	var activities, shared int
	for seed := range uint64(max(2500, rounds(2500))) { // segments that are referred to twice are rare
		g := segmenttest.New(seed)
		c := g.Case(testlevel.Count(2, 8))
		for _, p := range c.Profiles {
			e := &explained{t: t, profile: p, atMs: c.AtMs, refs: c.Refs, nested: map[string]int{}}
			x, whole := e.explain(c.Node, g.Rand())
			e.check(c.Node, x)
			references := map[string]int{}
			for _, leaf := range c.Node.Leaves() {
				if leaf.Kind == segment.KindActivity {
					activities++
				}
				if leaf.Kind == segment.KindSegment {
					references[leaf.Segment.SegmentID]++
				}
			}
			for id, n := range references {
				want := 0
				if _, ok := c.Refs(id); ok {
					want = 1
				}
				if e.nested[id] != want {
					t.Fatalf("seed %d: segment %s is explained %d times, want %d", seed, id, e.nested[id], want)
				}
				if n > 1 && want == 1 {
					shared++
				}
			}
			if !whole {
				t.Fatalf("seed %d: cut", seed)
			}
		}
	}
	if activities < 1000 || shared < testlevel.Count(2, 5) {
		t.Errorf("%d activities and %d segments referred to twice: the test says little", activities, shared)
	}
}

// TestS1ExplainBounds: definitions that are too deep, too many or too long to be
// nested are judged all the same.
func TestS1ExplainBounds(t *testing.T) {
	r := segmenttest.New(1)
	own := func() string { return string(segmentText(r.Activity())) }
	for _, c := range []struct {
		name string
		make func(add func(id, definition string)) (root string)
		// most is how many segments are nested.
		most int
	}{
		{"deep", func(add func(id, definition string)) string {
			for i := range 60 {
				add(fmt.Sprint("s", i), fmt.Sprintf(`{"match":%q,"conditions":[%s,{"kind":"segment","segment_id":"s%d","member":%v}]}`,
					[]string{"all", "any"}[i%2], own(), i+1, i%3 > 0))
			}
			return `{"kind":"segment","segment_id":"s0"}`
		}, segment.MaxNestedDepth},
		{"many", func(add func(id, definition string)) string {
			var refs []string
			for i := range 300 {
				add(fmt.Sprint("s", i), `{"match":"any","conditions":[`+strings.TrimSuffix(strings.Repeat(own()+",", 9), ",")+`]}`)
				refs = append(refs, fmt.Sprintf(`{"kind":"segment","segment_id":"s%d"}`, i))
			}
			return `{"match":"all","conditions":[` + strings.Join(refs, ",") + `]}`
		}, segment.MaxNestedNodes / 10},
		{"long", func(add func(id, definition string)) string {
			var refs, values []string
			for i := range 1000 {
				values = append(values, fmt.Sprintf(`"%0200d"`, i))
			}
			for i := range 20 {
				add(fmt.Sprint("s", i), `{"kind":"attribute","field":"attributes.x","op":"not_in","value":[`+strings.Join(values, ",")+`]}`)
				refs = append(refs, fmt.Sprintf(`{"kind":"segment","segment_id":"s%d"}`, i))
			}
			return `{"match":"all","conditions":[` + strings.Join(refs, ",") + `]}`
		}, segment.MaxNestedBytes / 203_000},
	} {
		t.Run(c.name, func(t *testing.T) {
			definitions := map[string]*segment.Node{}
			root := parse(t, []byte(c.make(func(id, definition string) { definitions[id] = parse(t, []byte(definition)) })))
			refs := func(id string) (*segment.Node, bool) {
				n, ok := definitions[id]
				return n, ok
			}
			for range testlevel.Count(2, 10) {
				e := &explained{t: t, profile: r.Profile(), atMs: r.At(), refs: refs, nested: map[string]int{}}
				x, whole := e.explain(root, r.Rand())
				e.check(root, x)
				if whole || len(e.nested) != c.most || e.nodes > segment.MaxNestedNodes {
					t.Fatalf("whole %v, %d segments nested, want %d; %d nodes", whole, len(e.nested), c.most, e.nodes)
				}
			}
		})
	}
}

// TestExplainCycle: references that lead back end without members.
func TestExplainCycle(t *testing.T) {
	definitions := map[string]*segment.Node{
		"self": parse(t, []byte(`{"kind":"segment","segment_id":"self"}`)),
		"a":    parse(t, []byte(`{"match":"any","conditions":[{"kind":"segment","segment_id":"b"},{"kind":"list","list_id":"l"}]}`)),
		"b":    parse(t, []byte(`{"match":"all","conditions":[{"kind":"segment","segment_id":"a","member":false},{"kind":"segment","segment_id":"b"}]}`)),
	}
	refs := func(id string) (*segment.Node, bool) {
		n, ok := definitions[id]
		return n, ok
	}
	for id := range definitions {
		for _, p := range []*segment.NaiveProfile{{}, {Lists: []string{"l"}}} {
			root := parse(t, []byte(`{"kind":"segment","segment_id":"`+id+`"}`))
			x, whole := segment.Explain(root, segment.Explaining{Facts: segment.FactsOf(p), Segments: refs})
			if want := root.Naive(p, 0, refs); x.Holds != want || !whole {
				t.Errorf("%s: %v, want %v; whole %v", id, x.Holds, want, whole)
			}
		}
	}
}

// TestQuotientText: what is written is the value, or lies between it and 0 in
// the same interval of six decimals.
func TestQuotientText(t *testing.T) {
	for _, c := range []struct {
		micros int64
		over   uint64
		want   string
	}{
		{0, 1, `0`}, {0, 7, `0`}, {1_000_000, 1, `1`}, {-1_500_000, 1, `-1.5`}, {1, 1, `0.000001`}, {1, 2, `0.0000005`}, {1, 1024, `0.0000000009765625`},
		{100_000_000, 3, `"33.333333…"`}, {-100_000_000, 3, `"-33.333333…"`}, {2_000_000, 3, `"0.666666…"`}, {-1, 3, `"-0.000000…"`}, {1, 3, `"0.000000…"`},
		{9_007_199_254_740_993, 1, `9007199254.740993`}, {900_719_925_474_099_312, 1, `"900719925474.099312"`},
	} {
		b, err := (&segment.Quotient{Micros: int128.From(c.micros), Over: c.over}).MarshalJSON()
		if err != nil || string(b) != c.want {
			t.Errorf("%d / %d is written %s, %v; want %s", c.micros, c.over, b, err, c.want)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	cut := 0
	for range rounds(20_000) {
		q := &segment.Quotient{Micros: int128.New(r.Int64N(1<<r.IntN(20)+1)-r.Int64N(2)*r.Int64N(1<<20), r.Uint64()>>r.IntN(64)), Over: 1 + r.Uint64N(1<<r.IntN(17))}
		raw, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		var number float64
		if json.Unmarshal(raw, &number) == nil {
			// A reader that takes numbers for float64 has what was written.
			if again := strconv.FormatFloat(number, 'f', -1, 64); again != text {
				t.Fatalf("%s is read as %s", raw, again)
			}
		} else if err := json.Unmarshal(raw, &text); err != nil {
			t.Fatal(err)
		}
		digits, endless := strings.CutSuffix(text, "…")
		shown, ok := new(big.Rat).SetString(digits)
		if !ok {
			t.Fatalf("%s is no number", raw)
		}
		if !endless {
			if shown.Cmp(q.Rat()) != 0 {
				t.Fatalf("%s is written %s", q.Rat(), raw)
			}
			continue
		}
		cut++
		value := q.Rat()
		if value.Sign() < 0 {
			if !strings.HasPrefix(digits, "-") {
				t.Fatalf("%s is written %s", value, raw)
			}
			value, shown = value.Neg(value), shown.Neg(shown)
		}
		if shown.Cmp(value) >= 0 || value.Sub(value, shown).Cmp(big.NewRat(1, segment.MicrosPerUnit)) >= 0 {
			t.Fatalf("%s is written %s", q.Rat(), raw)
		}
	}
	if cut < 1000 {
		t.Errorf("only %d endless decimals: the test says little", cut)
	}
}

// TestTalliesBounded (Q1): what distinct has to remember is bounded, over all
// conditions, and repeated values cost nothing.
func TestTalliesBounded(t *testing.T) {
	var leaves []*segment.Activity
	for _, property := range []string{"a", "b"} {
		leaves = append(leaves, parse(t, []byte(`{"kind":"activity","event":"e","aggregate":{"fn":"distinct","property":"`+property+`","op":">","value":1}}`)).Activity)
	}
	tallies := segment.NewTallies(leaves, 1)
	add := func(i int) error {
		return tallies.Add("e", false, 0, fmt.Appendf(nil, `{"a":%d,"b":"%040d"}`, i, i))
	}
	for i := range segment.MaxDistinctKept / 2 {
		if err := add(i); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	if err := add(0); err != nil {
		t.Errorf("a repeated value: %v", err)
	}
	for _, a := range leaves {
		if f := tallies.Facts(a); f.Value.Rat().Cmp(big.NewRat(segment.MaxDistinctKept/2, 1)) != 0 || f.Values != segment.MaxDistinctKept/2+1 {
			t.Errorf("found %+v", f)
		}
	}
	if err := add(-1); !errors.Is(err, segment.ErrTallyFull) {
		t.Errorf("one more: %v", err)
	}
}

// TestTalliesDistinct: one value, however it is written, is one, and different
// values are told apart, also texts that are remembered by their hash.
func TestTalliesDistinct(t *testing.T) {
	long := strings.Repeat("ü", 100)
	a := parse(t, []byte(`{"kind":"activity","event":"e","aggregate":{"fn":"distinct","property":"v","op":">","value":1}}`)).Activity
	for _, c := range []struct {
		values   []string
		distinct int64
		counted  uint64
	}{
		{[]string{`0`, `-0`, `0.0`, `-0e5`, `"0"`}, 2, 5},
		{[]string{`50`, `5e1`, `50.0`, `"50"`, `"n50"`}, 3, 5},
		{[]string{`true`, `false`, `"true"`, `"t"`, `"f"`, `""`}, 6, 6},
		{[]string{`null`, `[]`, `[1]`, `{}`, `{"v":1}`}, 0, 0},
		{[]string{`"a"`, `"\u0061"`, `"A"`}, 2, 3},
		{[]string{`"` + long + `"`, `"\u00fc` + long[2:] + `"`, `"` + long + ` "`, `"` + long[2:] + `"`}, 3, 4},
	} {
		tallies := segment.NewTallies([]*segment.Activity{a}, 1)
		for _, v := range c.values {
			if err := tallies.Add("e", false, 0, []byte(`{"v":`+v+`}`)); err != nil {
				t.Fatal(err)
			}
		}
		if f := tallies.Facts(a); f.Value.Rat().Cmp(big.NewRat(c.distinct, 1)) != 0 || f.Values != c.counted || f.Holds != (c.distinct > 1) {
			t.Errorf("%.60s: found %+v, value %v", c.values, f, f.Value)
		}
	}
}

func TestTalliesAfter(t *testing.T) {
	window := func(days string) *segment.Activity {
		return parse(t, []byte(`{"kind":"activity","event":"e","window":`+days+`}`)).Activity
	}
	day, week, always := window(`{"last_days":1}`), window(`{"last_days":7}`), window(`{"all_time":true}`)
	const at, dayMs = 1_000_000_000_000, 86_400_000
	if ms, ok := segment.NewTallies([]*segment.Activity{day, week, day}, at).AfterMs(); !ok || ms != at-7*dayMs {
		t.Errorf("have %d, %v", ms, ok)
	}
	if _, ok := segment.NewTallies([]*segment.Activity{week, always}, at).AfterMs(); ok {
		t.Error("all time has no beginning")
	}
	tallies := segment.NewTallies([]*segment.Activity{day, week, day}, at)
	if tallies.Len() != 2 || tallies.Facts(always) != nil {
		t.Errorf("have %d conditions", tallies.Len())
	}
}

// TestExplainLongValue: a value that is too long is not shown, and judged.
func TestExplainLongValue(t *testing.T) {
	for _, n := range []int{segment.MaxShownBytes - 2, segment.MaxShownBytes - 1} {
		p := &segment.NaiveProfile{Attributes: []byte(`{"x":"` + strings.Repeat("a", n) + `"}`)}
		x, _ := segment.Explain(parse(t, []byte(`{"kind":"attribute","field":"attributes.x","op":"starts_with","value":"aaa"}`)),
			segment.Explaining{Facts: segment.FactsOf(p)})
		shown := n+2 <= segment.MaxShownBytes
		if !x.Holds || (string(x.Attribute.Value) != "null") != shown || (x.Attribute.Bytes == n+2) == shown {
			t.Errorf("%d bytes: %v, %.20s, %d", n, x.Holds, x.Attribute.Value, x.Attribute.Bytes)
		}
	}
}
