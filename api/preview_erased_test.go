package api

import (
	"context"
	"fmt"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

// meanwhileHistory lets something happen while it is asked.
type meanwhileHistory struct {
	*memHistory
	happens func()
}

func (h *meanwhileHistory) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	b, err := h.memHistory.Activity(ctx, q)
	if h.happens != nil {
		h.happens()
	}
	return b, err
}

// TestPreviewOfSomebodyErasedMeanwhile: people who are erased between the count of a preview
// and its sample are left out of the sample, and those who became one with others are in it
// once.
func TestPreviewOfSomebodyErasedMeanwhile(t *testing.T) {
	t.Parallel()
	h := &meanwhileHistory{memHistory: &memHistory{}}
	s := newService(t, h, nil)
	var ids []string
	for i := range 3 {
		ids = append(ids, s.event(fmt.Sprintf(`{"event_type":"bought","user":{"email":"p%d@x.io","phone":"+491%d"}}`, i, i)))
	}
	ids = append(ids, s.event(`{"event_type":"bought","user":{"external_id":"visitor"}}`))
	preview := func() (p struct {
		Count  int
		Sample []struct {
			ID string `json:"profile_id"`
		}
		Explained []struct {
			ID string `json:"profile_id"`
		}
	}) {
		t.Helper()
		s.want("POST", "/segments/preview", `{"definition":{"kind":"activity","event":"bought"},"explain":true}`, &p)
		return p
	}
	if p := preview(); p.Count != 4 || len(p.Sample) != 4 || len(p.Explained) != 4 {
		t.Fatalf("before: %+v", p)
	}
	h.happens = func() {
		h.happens = nil
		_, err := s.node.Command(t.Context(), s.account(), resolver.CommandContactErase, resolver.ContactErase{ID: ids[1]})
		ok(t, err)
		s.event(`{"event_type":"seen","user":{"email":"p0@x.io","external_id":"visitor"}}`)
	}
	p := preview()
	if len(p.Sample) != 2 || len(p.Explained) != 2 || p.Sample[0].ID != ids[0] || p.Sample[1].ID != ids[2] {
		t.Errorf("the sample is %+v, explained %+v; want %s and %s", p.Sample, p.Explained, ids[0], ids[2])
	}
}
