package segment

import (
	"strings"

	"github.com/musterhq/muster/internal/jsonform"
)

// CheckRefs refuses a definition that refers to a segment that is not there or
// leads back to itself, at once or through others. id is the segment the
// definition is for, empty for a new one; lookup finds the definitions of the
// account's segments. The error is a *[DefinitionError].
func CheckRefs(id string, n *Node, lookup func(segmentID string) (*Node, bool)) error {
	// clean holds the segments that do not lead to id.
	clean := map[string]bool{}
	var err error
	n.Walk(func(path string, node *Node) {
		if err != nil || node.Kind != KindSegment {
			return
		}
		ref := node.Segment.SegmentID
		if _, ok := lookup(ref); !ok && ref != id {
			err = jsonform.Faultf(jsonform.Join(path, "segment_id"), "must be the id of a segment, there is no %q", ref)
			return
		}
		if chain := chainTo(id, ref, lookup, clean); chain != nil {
			err = jsonform.Faultf(jsonform.Join(path, "segment_id"), "must not lead back to the segment itself: %s",
				strings.Join(append([]string{id}, chain...), " → "))
		}
	})
	return err
}

// CheckLists refuses a definition that refers to a list that is not there. The
// error is a *[DefinitionError].
func CheckLists(n *Node, has func(listID string) bool) error {
	var err error
	n.Walk(func(path string, node *Node) {
		if err == nil && node.Kind == KindList && !has(node.List.ListID) {
			err = jsonform.Faultf(jsonform.Join(path, "list_id"), "must be the id of a list, there is no %q", node.List.ListID)
		}
	})
	return err
}

// chainTo is the way from segment at to segment id, nil when there is none.
func chainTo(id, at string, lookup func(string) (*Node, bool), clean map[string]bool) []string {
	if at == id {
		return []string{at}
	}
	if clean[at] {
		return nil
	}
	// Marked before the descent: a way back to at itself is not one to id.
	clean[at] = true
	n, ok := lookup(at)
	if !ok {
		return nil
	}
	for _, next := range n.SegmentIDs() {
		if chain := chainTo(id, next, lookup, clean); chain != nil {
			return append([]string{at}, chain...)
		}
	}
	return nil
}
