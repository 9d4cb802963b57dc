package segments

import (
	"context"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

// state is one state of the account and one instant: profiles, definitions,
// cut and the members the engine knows belong together.
type state struct {
	cut     query.Cut
	atMs    int64
	saved   []resolver.Segment
	defs    map[string]*segment.Node
	members map[string]*roaring.Bitmap
	snap    *view.Snapshot
}

// takeState takes the present state, which history has by then, to be judged ahead of the
// present time. close must follow.
func (a *account) takeState(ctx context.Context, ahead time.Duration) (*state, error) {
	return a.takeStateAt(ctx, func(nowMs int64) int64 { return nowMs + ahead.Milliseconds() })
}

// takeStateAt is takeState for an instant that at chooses; it must not be before
// the present.
func (a *account) takeStateAt(ctx context.Context, at func(nowMs int64) int64) (*state, error) {
	st := &state{defs: map[string]*segment.Node{}, members: map[string]*roaring.Bitmap{}}
	err := a.read(ctx, func(v *resolver.View) error {
		st.cut = v.Cut()
		st.atMs = at(max(time.Now().UnixMilli(), v.LogTimeMs()))
		st.saved = v.Segments().All()
		for _, s := range st.saved {
			st.defs[s.ID] = s.Root
			if m, ok := v.Segments().Members(s.ID, st.atMs); ok {
				st.members[s.ID] = m
			}
		}
		st.snap = v.Snapshot()
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := a.node.WaitHistory(ctx, st.cut); err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

func (st *state) close() { st.snap.Close() } // it only gives memory back

func (st *state) evaluate(ctx context.Context, h query.History, root *segment.Node) (*roaring.Bitmap, error) {
	return query.Evaluate(ctx, h, query.Evaluation{
		Account: accountNumber, Cut: st.cut, AtMs: st.atMs, Root: root, Profiles: st.snap,
		Segments: func(id string) (*segment.Node, bool) { n, ok := st.defs[id]; return n, ok },
	})
}

// rememberingHistory asks for a condition once, however many segments have it.
type rememberingHistory struct {
	query.History
	answers map[string]*roaring.Bitmap
}

func (h *rememberingHistory) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	key := q.Leaf.Key()
	if b := h.answers[key]; b != nil {
		return b.Clone(), nil
	}
	b, err := h.History.Activity(ctx, q)
	if err == nil {
		h.answers[key] = b.Clone()
	}
	return b, err
}
