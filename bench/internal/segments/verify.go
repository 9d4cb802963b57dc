package segments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
)

// ErrDiffers means that the engine and history do not agree.
var ErrDiffers = errors.New("S1 is violated")

// Verified says what was compared and found equal.
type Verified struct {
	Segments int    `json:"segments"`
	Members  uint64 `json:"members"` // of all of them
	// AheadMillis is how far the instant lay ahead of the present.
	AheadMillis int64 `json:"ahead_ms"`
}

// aheadUpTo is the largest account that is also compared at an instant to come:
// the look-ahead of many profiles holds up Apply.
const aheadUpTo = 200_000

// verify compares the members of all segments with DuckDB (S1).
func (s *step) verify(ctx context.Context) error {
	aheads := []time.Duration{0}
	if s.profiles <= aheadUpTo {
		aheads = append(aheads, 6*time.Hour)
	}
	for _, ahead := range aheads {
		v, err := s.a.verify(ctx, s.a.history, ahead)
		if err != nil {
			return fmt.Errorf("%d profiles: %w", s.profiles, err)
		}
		s.out.Verified = append(s.out.Verified, v)
	}
	return nil
}

// verify compares what the engine knows with what SQL finds in history, the
// account's own but in tests.
func (a *account) verify(ctx context.Context, sql query.History, ahead time.Duration) (Verified, error) {
	out := Verified{AheadMillis: ahead.Milliseconds()}
	st, err := a.takeState(ctx, ahead)
	if err != nil {
		return out, err
	}
	defer st.close()
	history := &rememberingHistory{sql, map[string]*roaring.Bitmap{}}
	for _, s := range st.saved {
		got := st.members[s.ID]
		if got == nil {
			return out, fmt.Errorf("segment %q is not live", s.Name)
		}
		want, err := st.evaluate(ctx, history, s.Root)
		if err != nil {
			return out, err
		}
		if err := differ(got, want); err != nil {
			return out, fmt.Errorf("%w: segment %q at %d, records below %d: %w; definition %s", ErrDiffers, s.Name, st.atMs, st.cut.UpTo, err, s.Definition)
		}
		out.Segments++
		out.Members += got.GetCardinality()
	}
	return out, nil
}

// differ says how what the engine has differs from what SQL found.
func differ(engine, sql *roaring.Bitmap) error {
	if engine.Equals(sql) {
		return nil
	}
	surplus, missing := roaring.AndNot(engine, sql), roaring.AndNot(sql, engine)
	return fmt.Errorf("the engine has %d members, SQL %d; surplus ordinals %v, missing %v",
		engine.GetCardinality(), sql.GetCardinality(), first(surplus), first(missing))
}

func first(b *roaring.Bitmap) (out []uint32) {
	for it := b.Iterator(); it.HasNext() && len(out) < 10; {
		out = append(out, it.Next())
	}
	return out
}
