package evaluation

import (
	"context"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// TestSharedAnswersAreCopies: callers may change an answer from the cache.
func TestSharedAnswersAreCopies(t *testing.T) {
	root, err := segment.Parse([]byte(`{"kind":"activity","event":"item_purchased"}`), segment.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	h := &sharedHistory{History: fixedHistory{}}
	q := query.ActivityQuery{Leaf: root.Activity}
	for range 3 {
		b, err := h.Activity(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if b.GetCardinality() != 2 {
			t.Fatalf("have %d, want 2", b.GetCardinality())
		}
		b.Clear()
	}
}

type fixedHistory struct{ query.History }

func (fixedHistory) Activity(context.Context, query.ActivityQuery) (*roaring.Bitmap, error) {
	return roaring.BitmapOf(1, 2), nil
}
