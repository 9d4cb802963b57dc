package query_test

import (
	"context"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/segment"
)

// TestI6EvaluateLeavesAnonymousProfilesOut: profiles of which nothing says who they are belong
// to definitions alone that include them, also where others refer to those.
func TestI6EvaluateLeavesAnonymousProfilesOut(t *testing.T) {
	others := map[string]*segment.Node{
		"buyers":     parse(t, `{"kind":"activity","event":"did_0123"}`),
		"all_buyers": parse(t, `{"kind":"activity","event":"did_0123","include_anonymous":true}`),
	}
	for _, x := range []struct {
		definition string
		want       []uint32
	}{
		{`{"kind":"activity","event":"did_0123"}`, []uint32{0, 1}},
		{`{"kind":"activity","event":"did_0123","include_anonymous":false}`, []uint32{0, 1}},
		{`{"kind":"activity","event":"did_0123","include_anonymous":true}`, []uint32{0, 1, 2, 3}},
		{`{"kind":"activity","event":"did_0123","did":false}`, []uint32{5}},
		{`{"kind":"activity","event":"did_0123","did":false,"include_anonymous":true}`, []uint32{4, 5}},
		{`{"match":"any","conditions":[{"kind":"list","list_id":"l2"},{"kind":"list","list_id":"l5"}]}`, []uint32{5}},
		{`{"match":"any","conditions":[{"kind":"list","list_id":"l2"},{"kind":"list","list_id":"l5"}],"include_anonymous":true}`, []uint32{2, 5}},
		{`{"kind":"segment","segment_id":"buyers","include_anonymous":true}`, []uint32{0, 1}},
		{`{"kind":"segment","segment_id":"buyers","member":false,"include_anonymous":true}`, []uint32{2, 3, 4, 5}},
		{`{"kind":"segment","segment_id":"all_buyers"}`, []uint32{0, 1}},
		{`{"kind":"segment","segment_id":"all_buyers","member":false,"include_anonymous":true}`, []uint32{4, 5}},
	} {
		e := query.Evaluation{
			Root: parse(t, x.definition), Profiles: &profiles{anonymous: roaring.BitmapOf(2, 3, 4)},
			Segments: func(id string) (*segment.Node, bool) { n, ok := others[id]; return n, ok },
		}
		got, err := query.Evaluate(context.Background(), &history{}, e)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Equals(roaring.BitmapOf(x.want...)) {
			t.Errorf("%s: members %v, want %v", x.definition, got, x.want)
		}
		byPart, parts, err := query.EvaluateParts(context.Background(), &history{}, e)
		if err != nil || !byPart.Equals(got) {
			t.Errorf("%s: by part %v, %v", x.definition, byPart, err)
		}
		if !e.Root.IncludeAnonymous {
			for _, p := range parts {
				if p.Count > 3 || p.Without > 3 {
					t.Errorf("%s: a part counts anonymous profiles: %+v", x.definition, p)
				}
			}
		}
	}
}
