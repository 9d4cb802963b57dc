package resolver

import "github.com/musterhq/muster/resolver/internal/contentversion"

// Version names the segment's content, see [SegmentSave].
func (s *Segment) Version() string { return contentversion.Of(s.Name, string(s.Definition)) }

// Version names the flow's content, see [FlowSave].
func (f *Flow) Version() string { return contentversion.Of(string(f.Definition)) }
