package resolver

import (
	"strconv"

	"github.com/musterhq/muster/resolver/internal/feature"
)

// Version names the segment's content, see [SegmentSave].
func (s *Segment) Version() string { return feature.Version(s.Name, string(s.Definition)) }

// Version names the template's content, see [TemplateSave]. The texts must be there, as
// [View.WholeTemplate] has them.
func (t *Template) Version() string {
	return feature.Version(t.Name, t.Source, t.Subject, t.HTML, t.Text, strconv.FormatBool(t.Transactional))
}
