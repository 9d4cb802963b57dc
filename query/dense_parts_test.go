package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
)

type universeOnly struct{ all, anonymous *roaring.Bitmap }

func (u universeOnly) Universe() *roaring.Bitmap { return u.all }

func (u universeOnly) Anonymous() *roaring.Bitmap { return u.anonymous }

func (universeOnly) Scan(context.Context, func(uint32, *segment.Facts) error) error {
	panic("everything is known")
}

// drawTree is a random tree of conditions on lists, whose number it counts.
func drawTree(rng *rand.Rand, depth int, lists *int) string {
	if depth == 0 || rng.IntN(3) == 0 {
		*lists++
		return fmt.Sprintf(`{"kind":"list","list_id":"l%d","member":%t}`, *lists-1, rng.IntN(3) > 0)
	}
	text := ""
	for i := range 1 + rng.IntN(4) {
		if i > 0 {
			text += ","
		}
		text += drawTree(rng, depth-1, lists)
	}
	return fmt.Sprintf(`{"match":%q,"conditions":[%s]}`, []string{"all", "any"}[rng.IntN(2)], text)
}

// TestDensePartsEqualSparse: both ways to count the parts of a definition give the same,
// over several pieces of the universe and holes in it.
func TestDensePartsEqualSparse(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	tried := 0
	var before, beforeAs *roaring.Bitmap // an earlier answer, and as it was given
	for range 200 {
		lists := 0
		text := drawTree(rng, 3, &lists)
		root, err := segment.Parse([]byte(text), segment.Limits{})
		places := []place(nil)
		if err == nil {
			places = placesOf(root)
		}
		if err != nil || len(places) > MaxParts {
			continue
		}
		tried++
		span := uint32(1 + rng.IntN(3*64*denseWords))
		draw := func(many bool) *roaring.Bitmap {
			b := roaring.New()
			if many {
				b.AddRange(uint64(span/3), uint64(span))
			}
			for range rng.IntN(2000) {
				b.Add(rng.Uint32N(span + 100))
			}
			return b
		}
		e := Evaluation{Root: root, Profiles: universeOnly{draw(true), nil}}
		if rng.IntN(2) == 0 {
			all := e.Profiles.Universe()
			e.Profiles = universeOnly{all, roaring.And(all, draw(false))}
			root.IncludeAnonymous = root.Kind == segment.KindGroup && rng.IntN(3) == 0
		}
		known := map[string]*roaring.Bitmap{}
		e.Known = func(leaf *segment.Node) (*roaring.Bitmap, bool) {
			if known[leaf.Key()] == nil {
				known[leaf.Key()] = draw(rng.IntN(2) == 0)
			}
			return known[leaf.Key()], true
		}
		if e.Profiles.Universe().IsEmpty() {
			continue
		}
		members, parts, err := evaluateDense(context.Background(), nil, e, places)
		if err != nil {
			t.Fatal(err)
		}
		// The words that an answer was made of are used again, the answer is the caller's.
		if before != nil && !before.Equals(beforeAs) {
			t.Fatalf("%s: an earlier answer has changed", text)
		}
		before, beforeAs = members, members.Clone()
		wantMembers, wantParts, err := evaluateSparse(context.Background(), nil, e, places)
		if err != nil {
			t.Fatal(err)
		}
		if !members.Equals(wantMembers) || !reflect.DeepEqual(parts, wantParts) {
			t.Fatalf("%s\nuniverse up to %d: %d members and %v, expected %d and %v", text, span, members.GetCardinality(), parts, wantMembers.GetCardinality(), wantParts)
		}
	}
	if tried < 100 {
		t.Errorf("only %d definitions were tried", tried)
	}
}
