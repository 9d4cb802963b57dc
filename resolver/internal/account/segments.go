package account

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/segment"
)

// Segment is a saved definition.
type Segment struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Definition json.RawMessage `json:"definition"` // canonical
	CreatedMs  int64           `json:"created_ms"`
	UpdatedMs  int64           `json:"updated_ms"`

	// Root is the parsed definition; it is never changed.
	Root *segment.Node `json:"-"`
}

// Version names the segment's content, see resolver.SegmentSave.
func (s *Segment) Version() string { return feature.Version(s.Name, string(s.Definition)) }

// SegmentsByAge lists the saved segments, the oldest first.
func (a *State) SegmentsByAge() []*Segment {
	list := slices.Collect(maps.Values(a.Segments))
	slices.SortFunc(list, func(x, y *Segment) int {
		return cmp.Or(cmp.Compare(x.CreatedMs, y.CreatedMs), cmp.Compare(x.ID, y.ID))
	})
	return list
}

// Definition finds the definition of a saved segment.
func (a *State) Definition(id string) (*segment.Node, bool) {
	if s := a.Segments[id]; s != nil {
		return s.Root, true
	}
	return nil, false
}

// Label is how refusals name the segment.
func (s *Segment) Label() string { return `"` + s.Name + `" (` + s.ID + ")" }
