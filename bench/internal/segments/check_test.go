package segments

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"go.uber.org/goleak"

	"github.com/musterhq/muster/bench/internal/condition"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/query"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testRun(t *testing.T, profiles int) *run {
	t.Helper()
	o := &Options{EventsPerProfile: 5, Workers: 4, Seed: 1, StaleReads: 200, Options: server.Options{Dir: t.TempDir()}}
	r := &run{o: o, base: context.Background(), profiles: profiles}
	if err := r.fresh(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.drop(false); err != nil {
			t.Error(err)
		}
	})
	if _, err := r.a.grow(context.Background(), o, 1, profiles); err != nil {
		t.Fatal(err)
	}
	return r
}

// forgetful answers with one profile less.
type forgetful struct{ query.History }

func (f forgetful) Activity(ctx context.Context, q query.ActivityQuery) (*roaring.Bitmap, error) {
	b, err := f.History.Activity(ctx, q)
	if err == nil {
		b.Remove(b.Minimum())
	}
	return b, err
}

// S1: the comparison passes when engine and SQL agree, and notices one profile.
func TestS1DifferencesAreNoticed(t *testing.T) {
	ctx := context.Background()
	r := testRun(t, 300)
	id, err := r.a.define(ctx, "x", condition.Activity("page_viewed", condition.LastDays(80)))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.a.waitLive(ctx, id); err != nil {
		t.Fatal(err)
	}
	for _, ahead := range []time.Duration{0, time.Hour} {
		v, err := r.a.verify(ctx, r.a.history, ahead)
		if err != nil || v.Segments != 1 || v.Members < 100 {
			t.Errorf("%v ahead: %+v, %v", ahead, v, err)
		}
	}
	if _, err := r.a.verify(ctx, forgetful{r.a.history}, 0); !errors.Is(err, ErrDiffers) {
		t.Errorf("a missing profile: %v", err)
	}
	if err := differ(roaring.BitmapOf(1, 2), roaring.BitmapOf(1, 2)); err != nil {
		t.Error(err)
	}
	for _, other := range []*roaring.Bitmap{roaring.BitmapOf(1), roaring.BitmapOf(1, 2, 3), roaring.BitmapOf(1, 3)} {
		if differ(roaring.BitmapOf(1, 2), other) == nil {
			t.Errorf("%v is not told from {1,2}", other)
		}
	}

	// A second account at another size starts empty.
	if err := r.fresh(ctx, 2); err != nil {
		t.Fatal(err)
	}
	if st := r.a.node.Stats()[0]; st.Profiles != 0 {
		t.Errorf("%d profiles in a new account", st.Profiles)
	}
}

// L2: no read is stale, and the check can tell.
func TestStaleReadsAreNoticed(t *testing.T) {
	ctx := context.Background()
	r := testRun(t, 400)
	got, err := r.staleCheck(ctx)
	if err != nil || got.Reads != 200 || got.Stale != 0 {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := r.clear(ctx); err != nil {
		t.Fatal(err)
	}
	sums, err := r.a.define(ctx, "sums", condition.Activity("stale_sum", condition.Aggregate("sum", "v", ">=", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.a.waitLive(ctx, sums); err != nil {
		t.Fatal(err)
	}
	// This probe believes in a thousand members too many, and asks about the
	// attribute where the sum is judged.
	p := staleProbe{a: r.a, maker: newMaker(1, 99), worker: 3, sums: sums, on: sums, count: sums, members: 1000, summed: make([]bool, 20), switched: make([]bool, 20)}
	missed := 0
	for range 60 {
		what, err := p.next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if what != "" {
			missed++
		}
	}
	if missed < 15 {
		t.Errorf("%d of 60 wrong expectations were noticed", missed)
	}
}
