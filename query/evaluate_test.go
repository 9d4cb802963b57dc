package query_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// That members are right is tested as S1 in query/duckdb; here is how they are
// come by.

// history answers each activity with the ordinals of its event's name, and
// counts the questions.
type history struct {
	query.History
	mu    sync.Mutex // several are asked at once
	asked []query.ActivityQuery
}

func (h *history) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	h.mu.Lock()
	h.asked = append(h.asked, q)
	h.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b := roaring.New()
	for _, digit := range strings.TrimPrefix(q.Leaf.Event, "did_") {
		b.Add(uint32(digit - '0'))
	}
	return b, nil
}

// profiles are ordinals 0 to 5; profile n is called n and is on list n.
type profiles struct {
	scans     int
	anonymous *roaring.Bitmap
}

func (p *profiles) Universe() *roaring.Bitmap { return roaring.BitmapOf(0, 1, 2, 3, 4, 5) }

func (p *profiles) Anonymous() *roaring.Bitmap { return p.anonymous }

func (p *profiles) Scan(_ context.Context, fn func(uint32, *segment.Facts) error) error {
	p.scans++
	var f segment.Facts
	for o := range uint32(6) {
		f = segment.Facts{Fields: segment.Fields{FirstName: fmt.Append(nil, o)}, Lists: []string{fmt.Sprint("l", o)}}
		if err := fn(o, &f); err != nil {
			return err
		}
	}
	return nil
}

func parse(t *testing.T, definition string) *segment.Node {
	t.Helper()
	n, err := segment.Parse([]byte(definition), segment.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func did(digits, rest string) string {
	return fmt.Sprintf(`{"kind":"activity","event":"did_%s"%s}`, digits, rest)
}

func group(match string, conditions ...string) string {
	return fmt.Sprintf(`{"match":%q,"conditions":[%s]}`, match, strings.Join(conditions, ","))
}

func TestEvaluate(t *testing.T) {
	name := func(n int) string {
		return fmt.Sprintf(`{"kind":"attribute","field":"first_name","op":"=","value":"%d"}`, n)
	}
	other := map[string]string{
		"s1": did("123", ""),
		"s2": group("any", `{"kind":"segment","segment_id":"s1"}`, name(5)),
	}
	for _, c := range []struct {
		definition, want string
		asked, scans     int
	}{
		{did("13", ""), "{1,3}", 1, 0},
		{did("13", `,"did":false`), "{0,2,4,5}", 1, 0},
		// Counts that hold without any events are asked the other way round.
		{did("13", `,"count":{"op":"<","value":2}`), "{0,2,4,5}", 1, 0},
		{did("13", `,"did":false,"count":{"op":"<","value":2}`), "{1,3}", 1, 0},
		// One question however often and however negated.
		{group("all", did("123", ""), did("123", `,"count":{"op":">","value":0}`), group("any", did("123", `,"did":false`), name(2))), "{2}", 1, 1},
		{group("any", name(1), name(2), `{"kind":"list","list_id":"l4"}`, `{"kind":"consent","channel":"sms","status":"subscribed"}`), "{1,2,4}", 0, 1},
		{`{"kind":"list","list_id":"l4","member":false}`, "{0,1,2,3,5}", 0, 1},
		{group("all", `{"kind":"segment","segment_id":"s2"}`, `{"kind":"segment","segment_id":"s1","member":false}`), "{5}", 1, 1},
		// History keeps the events of profiles that are gone, here 8 and 9.
		{did("189", ""), "{1}", 1, 0},
		{group("any", did("89", ""), did("9", `,"did":false`)), "{0,1,2,3,4,5}", 2, 0},
	} {
		h, p := &history{}, &profiles{}
		got, err := query.Evaluate(context.Background(), h, query.Evaluation{Root: parse(t, c.definition), Profiles: p,
			Segments: func(id string) (*segment.Node, bool) { d, ok := other[id]; return parse(t, d), ok }})
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != c.want || len(h.asked) != c.asked || p.scans != c.scans {
			t.Errorf("%s\ngot %v with %d questions and %d scans, want %s with %d and %d", c.definition, got, len(h.asked), p.scans, c.want, c.asked, c.scans)
		}
	}
}

// TestEvaluateKnown: what is known is neither asked nor scanned for, whether
// negated or nested, and stays as it was handed in.
func TestEvaluateKnown(t *testing.T) {
	name := func(n int) string {
		return fmt.Sprintf(`{"kind":"attribute","field":"first_name","op":"=","value":"%d"}`, n)
	}
	ref := func(id, member string) string {
		return fmt.Sprintf(`{"kind":"segment","segment_id":%q,"member":%s}`, id, member)
	}
	other := map[string]string{"s1": did("123", ""), "s2": group("any", ref("s1", "true"), name(5)), "s3": did("4", "")}
	// These answers are others than history and the profiles would give.
	known := map[string]*roaring.Bitmap{
		parse(t, did("13", "")).Key():                             roaring.BitmapOf(0, 1),
		parse(t, did("2", `,"count":{"op":"<","value":2}`)).Key(): roaring.BitmapOf(3),
		parse(t, name(4)).Key():                                   roaring.BitmapOf(2, 4),
		parse(t, `{"kind":"list","list_id":"l4"}`).Key():          roaring.BitmapOf(5),
		parse(t, ref("s1", "true")).Key():                         roaring.BitmapOf(1, 5),
	}
	for _, c := range []struct {
		definition, want string
		asked, scans     int
	}{
		{did("13", ""), "{0,1}", 0, 0},
		{did("13", `,"did":false`), "{2,3,4,5}", 0, 0},
		{did("2", `,"count":{"op":"<","value":2}`), "{3}", 0, 0},
		{did("2", `,"did":false,"count":{"op":"<","value":2}`), "{0,1,2,4,5}", 0, 0},
		{group("any", did("13", ""), name(4), `{"kind":"list","list_id":"l4","member":false}`), "{0,1,2,3,4}", 0, 0},
		{group("all", name(4), did("13", `,"did":false`), ref("s1", "false")), "{2,4}", 0, 0},
		{group("any", ref("s1", "true"), ref("s3", "true")), "{1,4,5}", 1, 0},
		{ref("s2", "false"), "{0,2,3,4}", 0, 1},
		{group("any", name(4), name(3)), "{2,3,4}", 0, 1},
		{group("all", did("13", ""), did("123", "")), "{1}", 1, 0},
	} {
		h, p := &history{}, &profiles{}
		before := map[string]string{}
		for k, b := range known {
			before[k] = b.String()
		}
		got, err := query.Evaluate(context.Background(), h, query.Evaluation{Root: parse(t, c.definition), Profiles: p,
			Segments: func(id string) (*segment.Node, bool) { d, ok := other[id]; return parse(t, d), ok },
			Known:    func(leaf *segment.Node) (*roaring.Bitmap, bool) { b, ok := known[leaf.Key()]; return b, ok }})
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != c.want || len(h.asked) != c.asked || p.scans != c.scans {
			t.Errorf("%s\ngot %v with %d questions and %d scans, want %s with %d and %d", c.definition, got, len(h.asked), p.scans, c.want, c.asked, c.scans)
		}
		got.Clear()
		for k, b := range known {
			if b.String() != before[k] {
				t.Errorf("%s\nchanged what is known of %s", c.definition, k)
			}
		}
	}
}

// TestEvaluateCycle: segments that refer to each other end in an error. Saving
// refuses them, so this is a last line.
// TestEvaluateParts: the counts of all parts, and of the whole without each, are those of
// asking for them one by one, and no condition is asked for twice.
func TestEvaluateParts(t *testing.T) {
	definitions := []string{
		did("12", ""), group("all", did("0123", ""), did("2345", "")),
		group("any", did("01", ""), group("all", did("123", ""), did("235", ""), did("25", `,"did":false`)), did("4", "")),
		group("all", group("any", group("all", did("5", ""))), did("1", `,"did":false`), did("5", "")),
	}
	for _, definition := range definitions {
		root, h := parse(t, definition), &history{}
		ask := func(n *segment.Node) uint64 {
			b, err := query.Evaluate(context.Background(), &history{}, query.Evaluation{Root: n, Profiles: &profiles{}})
			if err != nil {
				t.Fatal(err)
			}
			return b.GetCardinality()
		}
		members, parts, err := query.EvaluateParts(context.Background(), h, query.Evaluation{Root: root, Profiles: &profiles{}})
		if err != nil || members.GetCardinality() != ask(root) {
			t.Fatalf("%s: %v %v", definition, members, err)
		}
		i := 0
		root.Walk(func(path string, n *segment.Node) {
			if n == root {
				return
			}
			want := query.Part{Path: path, Count: ask(n), Without: 6}
			if rest := pruned(root, n); rest != nil {
				want.Without = ask(rest)
			}
			if parts[i] != want {
				t.Errorf("%s: %+v, expected %+v", definition, parts[i], want)
			}
			i++
		})
		if i != len(parts) || len(h.asked) > strings.Count(definition, `"event"`) {
			t.Errorf("%s: %d parts, %d questions", definition, len(parts), len(h.asked))
		}
	}
	many := make([]string, query.MaxParts+1)
	for i := range many {
		many[i] = did("1", "")
	}
	if _, parts, err := query.EvaluateParts(context.Background(), &history{}, query.Evaluation{Root: parse(t, group("any", many...)), Profiles: &profiles{}}); err != nil || parts != nil {
		t.Errorf("%d parts, %v", len(parts), err)
	}
}

// pruned is a definition without one of its nodes, nil if nothing is left.
func pruned(n, left *segment.Node) *segment.Node {
	if n == left || n.Kind != segment.KindGroup {
		if n == left {
			return nil
		}
		return n
	}
	kept := *n
	kept.Conditions = nil
	for _, c := range n.Conditions {
		if c = pruned(c, left); c != nil {
			kept.Conditions = append(kept.Conditions, c)
		}
	}
	if kept.Conditions == nil {
		return nil
	}
	return &kept
}

func TestEvaluateCycle(t *testing.T) {
	a := parse(t, group("all", `{"kind":"segment","segment_id":"b"}`, `{"kind":"segment","segment_id":"b","member":false}`))
	_, err := query.Evaluate(context.Background(), &history{}, query.Evaluation{Root: a, Profiles: &profiles{},
		Segments: func(string) (*segment.Node, bool) { return a, true }})
	if err == nil || !strings.Contains(err.Error(), "deep") {
		t.Fatalf("got %v", err)
	}
}

func TestEvaluateCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, d := range []string{did("1", ""), group("any", did("1", ""), `{"kind":"list","list_id":"l4"}`)} {
		_, err := query.Evaluate(ctx, &history{}, query.Evaluation{Root: parse(t, d), Profiles: &profiles{}})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
	}
}
