package segment

import (
	"slices"

	"github.com/musterhq/muster/internal/jsonform"
)

// Walk calls visit for the node and all below it, parents first, in the order
// of the definition. path is the JSON path from n, empty for n itself.
func (n *Node) Walk(visit func(path string, node *Node)) { n.walk("", visit) }

func (n *Node) walk(path string, visit func(string, *Node)) {
	visit(path, n)
	for i, c := range n.Conditions {
		c.walk(jsonform.Index(jsonform.Join(path, "conditions"), i), visit)
	}
}

// Leaves lists the leaves in the order of the definition.
func (n *Node) Leaves() []*Node {
	var leaves []*Node
	n.Walk(func(_ string, node *Node) {
		if node.Kind != KindGroup {
			leaves = append(leaves, node)
		}
	})
	return leaves
}

// Activities lists the activity leaves, one per key, in the order of the
// definition.
func (n *Node) Activities() []*Activity {
	var out []*Activity
	seen := map[string]bool{}
	for _, leaf := range n.Leaves() {
		if leaf.Kind != KindActivity {
			continue
		}
		if key := leaf.Activity.Key(); !seen[key] {
			seen[key] = true
			out = append(out, leaf.Activity)
		}
	}
	return out
}

// SegmentIDs lists the segments the definition refers to itself, sorted.
func (n *Node) SegmentIDs() []string {
	return n.ids(func(leaf *Node) (string, bool) {
		if leaf.Kind != KindSegment {
			return "", false
		}
		return leaf.Segment.SegmentID, true
	})
}

// ListIDs lists the lists the definition refers to itself, sorted.
func (n *Node) ListIDs() []string {
	return n.ids(func(leaf *Node) (string, bool) {
		if leaf.Kind != KindList {
			return "", false
		}
		return leaf.List.ListID, true
	})
}

func (n *Node) ids(id func(*Node) (string, bool)) []string {
	var out []string
	for _, leaf := range n.Leaves() {
		if s, ok := id(leaf); ok {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Admits reports whether a profile may be a member of the definition, whatever its
// conditions: one of which nothing says who it is must be asked for.
func (n *Node) Admits(anonymous bool) bool { return n.IncludeAnonymous || !anonymous }

// Eval combines the answers of the leaves. holds judges one leaf, its negation
// included; it is asked only for leaves the answer depends on.
func (n *Node) Eval(holds func(leaf *Node) bool) bool {
	if n.Kind != KindGroup {
		return holds(n)
	}
	for _, c := range n.Conditions {
		if c.Eval(holds) != (n.Match == MatchAll) {
			return n.Match == MatchAny
		}
	}
	return n.Match == MatchAll
}
