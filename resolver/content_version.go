package resolver

import "github.com/musterhq/muster/resolver/internal/feature"

// Version names the segment's content, see [SegmentSave].
func (s *Segment) Version() string { return feature.Version(s.Name, string(s.Definition)) }
