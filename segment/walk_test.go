package segment

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const walked = `{"match":"all","conditions":[
	{"kind":"activity","event":"a"},
	{"match":"any","conditions":[
		{"kind":"segment","segment_id":"s2"},
		{"kind":"activity","event":"a","did":false},
		{"kind":"list","list_id":"l1","member":false},
		{"kind":"segment","segment_id":"s1","member":false}]},
	{"kind":"activity","event":"b"},
	{"kind":"segment","segment_id":"s2"}]}`

func TestWalk(t *testing.T) {
	n := mustParse(t, walked)
	var got []string
	n.Walk(func(path string, node *Node) { got = append(got, fmt.Sprintf("%s %s", path, node.Kind)) })
	want := []string{
		" group", "conditions[0] activity", "conditions[1] group", "conditions[1].conditions[0] segment",
		"conditions[1].conditions[1] activity", "conditions[1].conditions[2] list",
		"conditions[1].conditions[3] segment", "conditions[2] activity", "conditions[3] segment",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("walked %q", got)
	}
	if got := n.SegmentIDs(); !reflect.DeepEqual(got, []string{"s1", "s2"}) {
		t.Errorf("segments %q", got)
	}
	if got := n.ListIDs(); !reflect.DeepEqual(got, []string{"l1"}) {
		t.Errorf("lists %q", got)
	}
	activities := n.Activities()
	if len(activities) != 2 || activities[0].Event != "a" || activities[1].Event != "b" {
		t.Errorf("activities %v", activities)
	}
}

func TestCheckRefs(t *testing.T) {
	ref := func(ids ...string) *Node {
		var parts []string
		for _, id := range ids {
			parts = append(parts, `{"kind":"segment","segment_id":"`+id+`"}`)
		}
		return mustParse(t, `{"match":"any","conditions":[{"kind":"list","list_id":"l"},`+strings.Join(parts, ",")+`]}`)
	}
	leaf := mustParse(t, `{"kind":"list","list_id":"l"}`)
	segments := map[string]*Node{
		"leaf": leaf, "b": ref("leaf", "c"), "c": ref("leaf", "a"), "a": leaf,
		"x": ref("y"), "y": ref("x"), // a loop that must not catch the check
	}
	// A ladder in which every segment refers to the next twice must not take
	// exponential time.
	for i := range 200 {
		segments[fmt.Sprint("r", i)] = ref(fmt.Sprint("r", i+1), fmt.Sprint("r", i+1), "leaf")
	}
	segments["r200"] = leaf
	lookup := func(id string) (*Node, bool) { n, ok := segments[id]; return n, ok }
	for _, c := range []struct {
		id   string
		n    *Node
		want string
	}{
		{"a", leaf, ""},
		{"a", ref("leaf"), ""},
		{"", ref("b", "r0"), ""},
		{"a", ref("leaf", "a"), "conditions[2].segment_id must not lead back to the segment itself: a → a"},
		{"a", ref("leaf", "b"), "conditions[2].segment_id must not lead back to the segment itself: a → b → c → a"},
		{"new", ref("new"), "conditions[1].segment_id must not lead back to the segment itself: new → new"},
		{"a", ref("gone", "b"), `conditions[1].segment_id must be the id of a segment, there is no "gone"`},
		{"a", ref("x"), ""},
		{"a", ref("r0"), ""},
	} {
		got := ""
		if err := CheckRefs(c.id, c.n, lookup); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s %s: %q, want %q", c.id, c.n.Canonical(), got, c.want)
		}
	}
}
