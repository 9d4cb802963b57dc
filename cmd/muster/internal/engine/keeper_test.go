package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/musterhq/muster/cluster"
	"github.com/musterhq/muster/internal/eventually"
)

// group is a member that a test writes.
type group struct {
	mu         sync.Mutex
	assigned   []int
	planned    []int
	warmed     []int
	generation int32
	confirmed  bool
	changed    chan struct{}
}

func (g *group) assign(partitions ...int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.assigned, g.confirmed = partitions, true
	g.generation++
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *group) Assigned() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.assigned)
}

func (g *group) plan(partitions ...int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.planned = partitions
	close(g.changed)
	g.changed = make(chan struct{})
}

func (g *group) Planned() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.planned)
}

func (g *group) Warmed(partitions []int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.warmed = partitions
}

func (g *group) saysWarm(t *testing.T, partitions ...int) {
	t.Helper()
	eventually.Succeeds(t, func() error {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !slices.Equal(g.warmed, partitions) {
			return fmt.Errorf("the group's warm partitions are %v, want %v", g.warmed, partitions)
		}
		return nil
	})
}

func (g *group) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

func (g *group) Stats() cluster.Stats {
	g.mu.Lock()
	defer g.mu.Unlock()
	return cluster.Stats{Generation: g.generation, Confirmed: g.confirmed}
}

// partitions is a node that a test writes.
type partitions struct {
	mu     sync.Mutex
	here   map[int]bool
	behind map[int]bool // another node's epoch stands behind ours
	calls  []string
	// forgotten counts by partition how often it was to be forgotten.
	forgotten map[int]int
	take      func(ctx context.Context, partition int) error
	warm      func(ctx context.Context, partition int) error
	changed   chan struct{}
	failed    chan struct{}
}

func newPartitions() *partitions {
	return &partitions{here: map[int]bool{}, behind: map[int]bool{}, forgotten: map[int]int{}, changed: make(chan struct{}), failed: make(chan struct{})}
}

func (n *partitions) set(what string, f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	if what != "" {
		n.calls = append(n.calls, what)
	}
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *partitions) Take(ctx context.Context, partition int) error {
	n.mu.Lock()
	take := n.take
	n.mu.Unlock()
	if take != nil {
		if err := take(ctx, partition); err != nil {
			return err
		}
	}
	n.set(fmt.Sprint("take ", partition), func() { n.here[partition], n.behind[partition] = true, false })
	return nil
}

func (n *partitions) Warm(ctx context.Context, partition int) error {
	n.mu.Lock()
	warm := n.warm
	n.mu.Unlock()
	if warm != nil {
		if err := warm(ctx, partition); err != nil {
			return err
		}
	}
	n.set(fmt.Sprint("warm ", partition), func() {})
	return nil
}

func (n *partitions) Cool(_ context.Context, partition int) error {
	n.set(fmt.Sprint("cool ", partition), func() {})
	return nil
}

func (n *partitions) Release(_ context.Context, partition int) error {
	n.set(fmt.Sprint("release ", partition), func() { n.here[partition] = false })
	return nil
}

func (n *partitions) Forget(_ context.Context, partition int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.forgotten[partition]++; n.here[partition] {
		n.calls = append(n.calls, fmt.Sprint("forget what is here: ", partition))
	}
	return nil
}

func (n *partitions) Owns(partition int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.here[partition]
}

func (n *partitions) HoldsLease(partition int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.here[partition] && !n.behind[partition]
}

func (n *partitions) Changed() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.changed
}

func (n *partitions) Failed() <-chan struct{} { return n.failed }

// did waits until exactly these calls were made since the last time, in any
// order.
func (n *partitions) did(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	eventually.Succeeds(t, func() error {
		n.mu.Lock()
		have := slices.Clone(n.calls)
		n.mu.Unlock()
		if slices.Sort(have); !slices.Equal(have, want) {
			return fmt.Errorf("have %q, want %q", have, want)
		}
		return nil
	})
	time.Sleep(20 * time.Millisecond) // of the test's own clock: no more than these
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.calls) != len(want) {
		t.Fatalf("have %q, want %q", n.calls, want)
	}
	n.calls = nil
}

// TestKeeper follows four partitions through generations: what is assigned is
// taken, again in each; what is not is released; what cannot be taken is tried
// again; what leaves while it is loaded is given up.
func TestKeeper(t *testing.T) { synctest.Test(t, keeperFollows) }

func keeperFollows(t *testing.T) {
	g, n := &group{changed: make(chan struct{})}, newPartitions()
	g.assign(0, 1)
	k := newKeeper(n, g, 4, slog.New(slog.NewTextHandler(t.Output(), nil)))
	defer k.close()
	n.did(t, "take 0", "take 1")
	if err := k.loaded(t.Context()); err != nil || len(k.loading()) != 0 {
		t.Errorf("%v %v", err, k.loading())
	}
	g.assign(1, 2)
	n.did(t, "release 0", "take 1", "take 2")

	// Another node's epoch, in no new generation: ours is renewed, not at once.
	n.set("", func() { n.behind[1] = true })
	n.did(t)
	if n.HoldsLease(1) {
		t.Error("renewed at once")
	}
	n.did(t, "take 1")
	// Not while Kafka does not confirm that it is ours.
	n.set("", func() { g.mu.Lock(); g.confirmed = false; g.mu.Unlock(); n.behind[1] = true })
	time.Sleep(renewPause + 200*time.Millisecond) // of the test's own clock: nothing may happen meanwhile
	n.did(t)
	g.assign(1, 2)
	n.did(t, "take 1", "take 2")

	// One that cannot be taken, twice.
	fault := errors.New("it is broken")
	failures := 2
	n.set("", func() {
		n.take = func(_ context.Context, partition int) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			if partition == 3 && failures > 0 {
				failures--
				return fault
			}
			return nil
		}
	})
	g.assign(3)
	n.did(t, "release 1", "release 2", "take 3")

	// One that leaves while it is loaded, and comes back.
	loading := make(chan error)
	n.set("", func() {
		n.take = func(ctx context.Context, partition int) error {
			if partition != 0 {
				return nil
			}
			<-ctx.Done()
			loading <- ctx.Err()
			return ctx.Err()
		}
	})
	g.assign(0, 3)
	n.did(t, "take 3")
	if have := k.loading(); !slices.Equal(have, []int{0}) {
		t.Errorf("loading %v", have)
	}
	waiting := make(chan error, 1)
	go func() { waiting <- k.loaded(t.Context()) }()
	g.assign(3)
	if err := <-loading; err == nil {
		t.Error("loading continued")
	}
	n.did(t, "take 3")
	if err := <-waiting; err != nil {
		t.Errorf("what left is still waited for: %v", err)
	}
	n.set("", func() { n.take = func(context.Context, int) error { return fault } })
	g.assign(0, 3)
	eventually.Holds(t, "a partition that cannot be taken is reported", func() bool { return errors.Is(k.loaded(t.Context()), fault) })
}

// TestH1KeeperIsNotWarmAfterAFailure: taking what is warm fails, because it was
// given to another node meanwhile; it is not said to be warm when it is planned
// again, until it is.
func TestH1KeeperIsNotWarmAfterAFailure(t *testing.T) { synctest.Test(t, keeperIsNotWarmAfterAFailure) }

func keeperIsNotWarmAfterAFailure(t *testing.T) {
	g, n := &group{changed: make(chan struct{})}, newPartitions()
	g.assign(0)
	k := newKeeper(n, g, 3, slog.New(slog.NewTextHandler(t.Output(), nil)))
	defer k.close()
	n.did(t, "take 0")
	g.plan(1)
	n.did(t, "warm 1")
	g.saysWarm(t, 1)
	taking := make(chan struct{})
	n.set("", func() {
		n.take = func(ctx context.Context, partition int) error {
			if partition != 1 {
				return nil
			}
			close(taking)
			<-ctx.Done()
			return ctx.Err() // and nothing of the partition is here
		}
	})
	g.assign(0, 1)
	<-taking
	n.did(t, "take 0")
	n.set("", func() {
		n.warm = func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		}
	})
	g.assign(0) // and still planned
	n.did(t, "take 0", "cool 1")
	g.saysWarm(t)
}

// TestH1H3KeeperWarms: what is planned is warmed, reported as warm, and taken when
// it is assigned; given up when it is planned no more; tried again when it fails;
// and what is assigned waits for none of it.
func TestH1H3KeeperWarms(t *testing.T) { synctest.Test(t, keeperWarms) }

func keeperWarms(t *testing.T) {
	g, n := &group{changed: make(chan struct{})}, newPartitions()
	g.assign(0)
	k := newKeeper(n, g, 8, slog.New(slog.NewTextHandler(t.Output(), nil)))
	defer k.close()
	n.did(t, "take 0")
	g.plan(1, 2)
	n.did(t, "warm 1", "warm 2")
	g.saysWarm(t, 1, 2)
	g.assign(0, 1)
	n.did(t, "take 0", "take 1")
	g.saysWarm(t, 2)
	g.plan()
	n.did(t, "cool 2")
	g.saysWarm(t)
	if have := k.loading(); len(have) > 0 {
		t.Errorf("loading %v", have)
	}

	// One that cannot be warmed is no fault of the node's.
	failures := 1
	n.set("", func() {
		n.warm = func(context.Context, int) error {
			n.mu.Lock()
			defer n.mu.Unlock()
			if failures--; failures >= 0 {
				return errors.New("it is broken")
			}
			return nil
		}
	})
	g.plan(3)
	n.did(t, "warm 3")
	g.saysWarm(t, 3)
	if err := k.loaded(t.Context()); err != nil {
		t.Error(err)
	}

	// All places are taken by what gets warm for ever: what is assigned is taken,
	// be it planned before or not, and so is what gets warm once it is assigned.
	going := make(chan struct{})
	n.set("", func() {
		n.warm = func(ctx context.Context, partition int) error {
			select {
			case <-going:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	g.plan(3, 4, 5, 6, 7)
	synctest.Wait()
	g.assign(0, 1, 2, 3)
	n.did(t, "take 0", "take 1", "take 2", "take 3")
	g.saysWarm(t)
	g.plan()
	synctest.Wait()
	g.plan(4)
	synctest.Wait()
	g.plan()
	synctest.Wait()
	g.assign(0, 4) // given up, then taken cold
	n.did(t, "take 0", "take 4", "release 1", "release 2", "release 3")
	g.plan(5)
	synctest.Wait()
	g.mu.Lock()
	g.planned = nil
	g.mu.Unlock()
	g.assign(0, 4, 5) // continues getting warm
	n.did(t, "take 0", "take 4")
	close(going)
	n.did(t, "warm 5", "take 5")
	g.saysWarm(t)
}

// TestKeeperForgets: what other nodes have is to go from here, as soon as it can; what
// is this node's, or is to be, stays.
func TestKeeperForgets(t *testing.T) { synctest.Test(t, keeperForgets) }

func keeperForgets(t *testing.T) {
	g, n := &group{changed: make(chan struct{})}, newPartitions()
	g.assign(0)
	g.plan(1)
	k := newKeeper(n, g, 3, slog.New(slog.NewTextHandler(t.Output(), nil)))
	defer k.close()
	n.did(t, "take 0", "warm 1")
	forgotten := func(want ...int) {
		t.Helper()
		synctest.Wait()
		n.mu.Lock()
		defer n.mu.Unlock()
		for p, count := range want {
			if n.forgotten[p] != count {
				t.Errorf("partition %d was to be forgotten %d times, want %d", p, n.forgotten[p], count)
			}
		}
	}
	forgotten(0, 0, 1)
	time.Sleep(2*forgetPause + time.Second)
	forgotten(0, 0, 3)
	g.plan()
	n.did(t, "cool 1")
	g.assign()
	n.did(t, "release 0")
	forgotten(1, 1, 3)
}
