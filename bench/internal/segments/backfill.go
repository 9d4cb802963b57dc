package segments

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/musterhq/muster/bench/internal/report"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/segment"
)

// Backfill is how long it takes to build a segment.
type Backfill struct {
	Kind string `json:"kind"`
	// BuildMillis is from the command until the segment is live, BareMillis the
	// query of history (or, for an attribute, the scan of all profiles) that
	// finds the same members. Medians.
	BuildMillis float64 `json:"build_ms"`
	BareMillis  float64 `json:"bare_ms"`
	Ratio       float64 `json:"ratio"`
	Members     uint64  `json:"members"`
}

// backfillRepeatUpTo is how long the first of three repetitions may take for the
// others to follow.
const backfillRepeatUpTo = 8 * time.Second

// backfills builds segments of several kinds and deletes them, with the bare
// query before each.
func (s *step) backfills(ctx context.Context) error {
	for _, p := range probes() {
		b := Backfill{Kind: p.kind}
		var built, bare []float64
		begun := time.Now()
		for round := range 3 {
			if round > 0 && time.Since(begun) > backfillRepeatUpTo {
				break
			}
			took, members, err := s.bare(ctx, p.text)
			if err != nil {
				return fmt.Errorf("the bare query of a %s: %w", p.kind, err)
			}
			bare = append(bare, float64(took)/1e6)

			start := time.Now()
			id, err := s.a.define(ctx, p.kind, p.text)
			if err != nil {
				return err
			}
			if err := s.a.waitLive(ctx, id); err != nil {
				return err
			}
			built = append(built, float64(time.Since(start))/1e6)
			err = s.a.read(ctx, func(v *resolver.View) error {
				b.Members, _ = v.Segments().Count(id, time.Now().UnixMilli())
				return nil
			})
			if err != nil {
				return err
			}
			if b.Members != members && p.kind != "windowed count" { // a window may move between the two
				return fmt.Errorf("%w: a %s has %d members, the bare query finds %d", ErrDiffers, p.kind, b.Members, members)
			}
			if err := s.a.undefine(ctx, id); err != nil {
				return err
			}
		}
		b.BuildMillis, b.BareMillis = report.Median(built), report.Median(bare)
		b.Ratio = report.Ratio(b.BuildMillis, b.BareMillis)
		s.out.Backfill = append(s.out.Backfill, b)
	}
	return nil
}

// bare finds a condition's members without the engine.
func (s *step) bare(ctx context.Context, text string) (time.Duration, uint64, error) {
	root, err := segment.Parse(json.RawMessage(text), segment.Limits{})
	if err != nil {
		return 0, 0, err
	}
	st, err := s.a.takeState(ctx, 0)
	if err != nil {
		return 0, 0, err
	}
	defer st.close()
	n := uint64(0)
	begun := time.Now()
	if root.Kind == segment.KindActivity {
		b, err := s.a.history.Activity(ctx, query.ActivityQuery{Cut: st.cut, Account: accountNumber, Leaf: root.Activity, AtMs: st.atMs})
		if err != nil {
			return 0, 0, err
		}
		return time.Since(begun), b.GetCardinality(), nil
	}
	err = st.snap.Scan(ctx, func(_ uint32, f *segment.Facts) error {
		if f.Holds(root, st.atMs) {
			n++
		}
		return nil
	})
	return time.Since(begun), n, err
}
