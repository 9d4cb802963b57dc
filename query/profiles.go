package query

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/segment"
)

// Profiles is the state machine's profiles of an account at one cut. [Evaluate]
// answers attribute, consent and list conditions from it.
type Profiles interface {
	// Universe is the ordinals of all profiles, without those merged into
	// another. It must not be changed.
	Universe() *roaring.Bitmap
	// Anonymous is the profiles of the universe of which nothing says who they are: members
	// of definitions alone that include them. It must not be changed; nil is none.
	Anonymous() *roaring.Bitmap
	// Scan calls fn for each profile of the universe in order of ordinals.
	// The facts are reused: they are valid during the call only.
	Scan(ctx context.Context, fn func(ordinal uint32, f *segment.Facts) error) error
}
