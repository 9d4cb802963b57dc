package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/internal/fake"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
)

// sharedLog is a log as several nodes see it: no node's checkpoint trims it, and
// it can be told to fail as one that is reached over a network.
type sharedLog struct {
	eventlog.Log
	away atomic.Bool // no answer to any question
	// lost counts down the appends whose answer is lost.
	lost atomic.Int64
}

var errAway = errors.New("the log is away")

func (l *sharedLog) Trim(int, int64) error { return nil }

func (l *sharedLog) Bounds(ctx context.Context, partition int) (start, end int64, err error) {
	if l.away.Load() {
		return 0, 0, errAway
	}
	return l.Log.Bounds(ctx, partition)
}

func (l *sharedLog) Append(ctx context.Context, partition int, data []byte) (int64, error) {
	if l.away.Load() {
		return 0, eventlog.ErrUncertain
	}
	o, err := l.Log.Append(ctx, partition, data)
	if err == nil && l.lost.Add(-1) == 0 {
		return 0, eventlog.ErrUncertain
	}
	return o, err
}

// sharedHistory has a model for each partition.
type sharedHistory struct {
	*fake.History // for what no test here asks
	parts         []*fake.History
	erases        func() error // unless it is nil, asked before anything is erased
}

func newSharedHistory(partitions int) *sharedHistory {
	h := &sharedHistory{}
	for i := range partitions {
		h.parts = append(h.parts, &fake.History{Rand: rand.New(rand.NewPCG(9, uint64(i)))})
	}
	return h
}

func (h *sharedHistory) Position(ctx context.Context, p int) (int64, error) {
	return h.parts[p].Position(ctx, p)
}
func (h *sharedHistory) Append(ctx context.Context, b *query.Batch) error {
	return h.parts[b.Partition].Append(ctx, b)
}
func (h *sharedHistory) Replay(ctx context.Context, q query.ReplayQuery, fn func(*query.ReplayBlock) error) error {
	return h.parts[q.Cut.Partition].Replay(ctx, q, fn)
}
func (h *sharedHistory) Erase(ctx context.Context, q query.EraseQuery) error {
	if h.erases != nil {
		if err := h.erases(); err != nil {
			return err
		}
	}
	return h.parts[q.Cut.Partition].Erase(ctx, q)
}
func (h *sharedHistory) Activity(context.Context, query.ActivityQuery) (*roaring.Bitmap, error) {
	return nil, fake.ErrHistory
}
func (h *sharedHistory) Close() error { return nil }

// cluster is some nodes over one log of several partitions, with one account in
// each.
type testCluster struct {
	t       testing.TB
	logFS   vfs.FS
	log     *sharedLog
	history *sharedHistory
	clock   atomic.Int64
	ids     *fake.Random
	fs      []vfs.FS
	nodes   []*Node
}

const clusterPartitions = 3

// clusterAccount is the account of a partition.
func clusterAccount(partition int) uint64 { return uint64(30 + partition) }

func newTestCluster(t testing.TB, seed uint64, nodes int) *testCluster {
	t.Helper()
	c := &testCluster{t: t, logFS: vfs.NewMem(), history: newSharedHistory(clusterPartitions), ids: &fake.Random{Rand: rand.New(rand.NewPCG(seed, 77))}}
	c.clock.Store(1_000_000_000_000)
	l, err := file.Open("log", file.Options{FS: c.logFS, Partitions: clusterPartitions})
	if err != nil {
		t.Fatal(err)
	}
	c.log = &sharedLog{Log: l}
	for range nodes {
		c.fs = append(c.fs, vfs.NewMem())
		c.nodes = append(c.nodes, nil)
	}
	return c
}

func (c *testCluster) options(fs vfs.FS) Options {
	return Options{FS: fs, Dir: "state", Log: c.log, History: c.history, Rand: c.ids, Cluster: Cluster{Owned: []int{}, RemoteLog: true},
		Now:  func() time.Time { return time.UnixMilli(c.clock.Load()) },
		Feed: FeedOptions{Delay: time.Millisecond, RetryMax: time.Millisecond}}
}

func (c *testCluster) open(i int, change func(*Options)) *Node {
	c.t.Helper()
	o := c.options(c.fs[i])
	if change != nil {
		change(&o)
	}
	n, err := Open(context.Background(), o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.nodes[i] = n
	return n
}

// found makes the accounts, on a node that owns all.
func (c *testCluster) found(n *Node) {
	c.t.Helper()
	for p := range clusterPartitions {
		if _, err := n.Command(context.Background(), clusterAccount(p), resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *testCluster) close() {
	c.t.Helper()
	for _, n := range c.nodes {
		if n != nil {
			if err := n.Close(context.Background()); err != nil {
				c.t.Error(err)
			}
		}
	}
	if err := c.log.Close(); err != nil {
		c.t.Error(err)
	}
}

// event submits one event of a person of its own.
func (c *testCluster) event(ctx context.Context, n *Node, account uint64, key string) (resolver.EventStatus, error) {
	env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: account, StampMs: c.clock.Load()}
	if _, err := c.ids.Read(env.ID[:]); err != nil {
		return 0, err
	}
	e := fake.Event("external_id", "person "+key)
	e.IdempotencyKey = []byte(key)
	var out resolver.Outcome
	if err := n.Submit(ctx, account, fake.AppendEvents(env.Append(nil), []eventlog.Event{e}), &out); err != nil {
		return 0, err
	}
	return out.Events[0].Status, nil
}

// viewed is how many events the account has.
func viewed(ctx context.Context, n *Node, account uint64) (count uint64, err error) {
	err = n.Read(ctx, account, func(v *resolver.View) error {
		for _, t := range v.EventTypes().List() {
			if t.Key == "viewed" {
				count = t.Count
			}
		}
		return nil
	})
	return count, err
}

func mustTake(t testing.TB, n *Node, partitions ...int) {
	t.Helper()
	for _, p := range partitions {
		if err := n.Take(context.Background(), p); err != nil {
			t.Fatal(err)
		}
	}
}

func mustRelease(t testing.TB, n *Node, partitions ...int) {
	t.Helper()
	for _, p := range partitions {
		if err := n.Release(context.Background(), p); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOwnedIsTold: what a node says of its partitions, what it answers for those
// that are elsewhere, and that nothing of it is stored.
func TestOwnedIsTold(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1, 1)
	n := c.open(0, nil)
	defer c.close()
	ctx := context.Background()
	if n.Partitions() != 3 || n.PartitionOf(clusterAccount(2)) != 2 || len(n.Owned()) != 0 || n.Owns(0) || n.Owns(-1) || n.Owns(3) {
		t.Fatalf("an empty node: %d partitions, owned %v", n.Partitions(), n.Owned())
	}
	elsewhere := func(p int) {
		t.Helper()
		_, ends, err := c.log.Bounds(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		account := clusterAccount(p)
		refused := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, resolver.ErrNotOwner) || errors.Is(err, resolver.ErrUnavailable) {
				t.Errorf("%s of partition %d: %v", what, p, err)
			}
		}
		_, err = c.event(ctx, n, account, "x")
		refused("an event", err)
		_, err = n.Command(ctx, account, eventtypes.CommandDefine, eventtypes.Define{Name: "X"})
		refused("a command", err)
		refused("a read", n.Read(ctx, account, func(*resolver.View) error { return nil }))
		refused("the barrier", n.Barrier(ctx, account))
		refused("history", n.WaitHistory(ctx, query.Cut{Partition: p, UpTo: 1}))
		_, _, err = n.CountMembers(ctx, account, "seg_1", 0)
		refused("a count", err)
		_, _, err = n.KeyAccess(account, [32]byte{})
		refused("a key", err)
		_, _, err = n.StateHash(p)
		refused("the hash", err)
		env := eventlog.Envelope{Kind: eventlog.KindCommand, Account: account}
		_, err = n.SubmitCommand(ctx, p, eventlog.AppendCommand(env.Append(nil), eventtypes.CommandDefine, []byte(`{}`)))
		refused("a command handed over", err)
		if w, ok := n.Watch(account); !ok {
			t.Error("too many watch")
		} else {
			<-w.Ended()
			refused("a watcher", w.Err())
			w.Close()
		}
		if w, ok := n.WatchTransitions(account, "seg_1"); !ok {
			t.Error("too many watch")
		} else {
			if _, open := <-w.Events; open {
				t.Error("a transition of nowhere")
			}
			refused("a watcher of transitions", w.Err())
			w.Close()
		}
		if _, now, err := c.log.Bounds(ctx, p); err != nil || now != ends {
			t.Errorf("the log went from %d to %d: %v", ends, now, err)
		}
	}
	for p := range 3 {
		elsewhere(p)
	}
	changed := n.Changed()
	mustTake(t, n, 0, 1, 2)
	<-changed
	c.found(n)
	if len(n.Accounts()) != 3 || len(n.Stats()) != 3 {
		t.Fatalf("accounts %v", n.Accounts())
	}
	changed = n.Changed()
	mustTake(t, n, 1) // nothing to do
	select {
	case <-changed:
		t.Error("nothing changed")
	default:
	}
	mustRelease(t, n, 1, 1)
	<-changed
	if fmt.Sprint(n.Owned()) != "[0 2]" || n.Owns(1) || !n.Owns(2) || len(n.Accounts()) != 2 || len(n.Stats()) != 2 {
		t.Fatalf("owned %v, accounts %v", n.Owned(), n.Accounts())
	}
	elsewhere(1)
	if due, _ := n.OutboxAccounts(0); len(due) != 0 {
		t.Errorf("due %v", due)
	}
	if err := n.Checkpoint(); err != nil {
		t.Error(err)
	}
	if s := n.Ownership(); s.Partitions != 3 || s.Owned != 2 || s.Taken != 3 || s.Released != 1 || s.TakesFailed != 0 || s.TakeNanoseconds == 0 {
		t.Errorf("%+v", s)
	}
	if err := n.Take(ctx, 3); err == nil || errors.Is(err, resolver.ErrNotOwner) {
		t.Errorf("a partition that the log lacks: %v", err)
	}
	for _, p := range []int{-1, 7} {
		if _, err := Open(ctx, Options{FS: vfs.NewMem(), Dir: "s", Log: c.log, History: c.history, Rand: c.ids, Now: time.Now, Cluster: Cluster{Owned: []int{p}}}); err == nil {
			t.Errorf("a partition that the log lacks: %d", p)
		}
	}
}

// TestL1L2Release: a request under way is answered before its partition goes, as
// long as the release may wait, and otherwise told that it may have been stored;
// one that comes later is refused. What another node then takes has all of it.
func TestL1L2Release(t *testing.T) {
	t.Parallel()
	for _, patient := range []bool{true, false} {
		t.Run(fmt.Sprintf("patient=%t", patient), func(t *testing.T) {
			c := newTestCluster(t, 1, 2)
			reads := &frozenLog{sharedLog: c.log}
			a, b := c.open(0, func(o *Options) { o.Log = reads }), c.open(1, nil)
			defer c.close()
			ctx := context.Background()
			mustTake(t, a, 0, 1, 2)
			c.found(a)
			account := clusterAccount(1)
			// Records become durable, and are not applied for now.
			reads.frozen.set(true)
			_, begun, err := c.log.Bounds(ctx, 1)
			if err != nil {
				t.Fatal(err)
			}
			const waiting = 5
			answers := make(chan error, waiting)
			for i := range waiting {
				go func() {
					_, err := c.event(ctx, a, account, fmt.Sprint("k", i))
					answers <- err
				}()
			}
			p := a.partitions[1].Load()
			eventually.Holds(t, "the records are in the log", func() bool {
				_, end, err := c.log.Bounds(ctx, 1)
				return err != nil || end == begun+waiting
			})
			rctx, cancel := context.WithCancel(ctx)
			defer cancel()
			released := make(chan error, 1)
			left := a.Changed()
			go func() { released <- a.Release(rctx, 1) }()
			<-left
			if _, err := c.event(ctx, a, account, "late"); !errors.Is(err, resolver.ErrNotOwner) {
				t.Errorf("a request after the release began: %v", err)
			}
			// It is refused as well when it found the partition before.
			late, cancelLate := context.WithTimeout(ctx, time.Second)
			defer cancelLate()
			env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: account, ID: eventlog.RecordID{5}, StampMs: c.clock.Load()}
			if err := p.submit(late, env, env.Append(nil), new(resolver.Outcome)); !errors.Is(err, resolver.ErrNotOwner) || errors.Is(err, resolver.ErrUnavailable) {
				t.Errorf("a request that found the partition before: %v", err)
			}
			if !patient {
				cancel()
				<-p.life.left
			} else {
				time.Sleep(20 * time.Millisecond) // nothing may happen in a while: the release waits for the requests
				reads.frozen.set(false)
			}
			for range waiting {
				err := <-answers
				if patient && err != nil || !patient && (!errors.Is(err, resolver.ErrUnavailable) || errors.Is(err, resolver.ErrNotOwner)) {
					t.Errorf("L1: a request under way: %v", err)
				}
			}
			reads.frozen.set(false)
			if err := <-released; patient && err != nil || !patient && err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("release: %v", err)
			}
			// So are those who read and found it before, when its files are closed.
			if err := a.Take(ctx, 1); err != nil {
				t.Fatal(err)
			}
			mustRelease(t, a, 1)
			if err := p.read(ctx, account, func(*resolver.View) error { return nil }); !errors.Is(err, resolver.ErrNotOwner) {
				t.Errorf("a reader that found the partition before: %v", err)
			}
			mustTake(t, b, 1)
			for i := range waiting {
				if s, err := c.event(ctx, b, account, fmt.Sprint("k", i)); err != nil || s != resolver.EventDuplicate {
					t.Errorf("L1: event %d is not there: %v %v", i, s, err)
				}
			}
			if n, err := viewed(ctx, b, account); err != nil || n != waiting {
				t.Errorf("L2: %d events count, want %d: %v", n, waiting, err)
			}
			mustTake(t, a, 1) // behind a release that had no time
		})
	}
}

// TestTakeWhileTheLogGrows: another node appends all the time while a partition is
// taken, and history and checkpoints move; reads of both see everything that was
// acknowledged before, by whomever (L1).
func TestL1TakeWhileTheLogGrows(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1, 2)
	a, b := c.open(0, nil), c.open(1, nil)
	defer c.close()
	ctx := context.Background()
	mustTake(t, a, 0, 1, 2)
	c.found(a)
	account := clusterAccount(2)
	var acked atomic.Uint64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	defer wg.Wait()
	var once sync.Once
	end := func() { once.Do(func() { close(stop) }) }
	defer end()
	for w := range 2 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := c.event(ctx, a, account, fmt.Sprint(w, "-", i)); err != nil {
					t.Error(err)
					return
				}
				acked.Add(1)
			}
		})
	}
	for range 4 {
		mustTake(t, b, 2)
		for range 20 {
			for _, n := range []*Node{a, b} {
				before := acked.Load()
				if have, err := viewed(ctx, n, account); err != nil || have < before {
					t.Fatalf("L1: a stale read: %d of %d events: %v", have, before, err)
				}
			}
		}
		mustRelease(t, b, 2)
	}
	end()
	wg.Wait()
}

// TestTakeThatFailsLeavesNothing: a partition that cannot be loaded, or not in
// time, holds no files or goroutines (the package's goleak), is not served, and
// can be taken later.
func TestTakeThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1, 2)
	a, b := c.open(0, nil), c.open(1, nil)
	defer c.close()
	ctx := context.Background()
	mustTake(t, a, 0, 1, 2)
	c.found(a)
	for i := range 300 {
		if _, err := c.event(ctx, a, clusterAccount(0), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	fails := func(ctx context.Context, want error) {
		t.Helper()
		if err := b.Take(ctx, 0); !errors.Is(err, want) {
			t.Fatalf("want %v, have %v", want, err)
		}
		if b.Owns(0) || b.slots[0].partition() != nil || b.Err() != nil || len(b.Stats()) != 0 {
			t.Fatal("something was left behind")
		}
	}
	c.log.away.Store(true)
	fails(ctx, errAway)
	c.log.away.Store(false)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	fails(ended, context.Canceled)
	// The log ends behind what is replayed: the take waits, and is cut off.
	short, cancel := context.WithCancel(ctx)
	defer cancel()
	b.opts.Log = &aheadLog{c.log, cancel}
	fails(short, context.Canceled)
	b.opts.Log = c.log
	mustTake(t, b, 0)
	if n, err := viewed(ctx, b, clusterAccount(0)); err != nil || n != 300 {
		t.Fatalf("%d events: %v", n, err)
	}
	if s := b.Ownership(); s.TakesFailed != 2 || s.Taken != 1 {
		t.Errorf("%+v", s)
	}
}

// aheadLog says that it ends further than it does, and calls told some moments later.
type aheadLog struct {
	eventlog.Log
	told func()
}

func (l *aheadLog) Bounds(ctx context.Context, p int) (int64, int64, error) {
	start, end, err := l.Log.Bounds(ctx, p)
	time.AfterFunc(20*time.Millisecond, l.told)
	return start, end + 1, err
}

// TestBarrierIsBounded: a log that does not answer fails reads as unavailable,
// the caller's patience is kept, and a node alone asks no other.
func TestBarrierIsBounded(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1, 2)
	a := c.open(0, nil)
	defer c.close()
	ctx := context.Background()
	mustTake(t, a, 0, 1, 2)
	c.found(a)
	account := clusterAccount(0)
	c.log.away.Store(true)
	if err := a.Read(ctx, account, func(*resolver.View) error { return nil }); !errors.Is(err, resolver.ErrUnavailable) || !errors.Is(err, errAway) || errors.Is(err, resolver.ErrNotOwner) {
		t.Errorf("the log is away: %v", err)
	}
	if _, _, ok := a.PublishedSegments(account, 0); ok {
		t.Error("what is published is not known to be fresh")
	}
	c.log.away.Store(false)
	a.opts.Log = &aheadLog{c.log, func() {}}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := a.Read(short, account, func(*resolver.View) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the caller's deadline: %v", err)
	}
	a.opts.Log = c.log
	c.log.away.Store(true)
	a.opts.RemoteLog = false
	if err := a.Read(ctx, account, func(*resolver.View) error { return nil }); err != nil {
		t.Errorf("alone: %v", err)
	}
	c.log.away.Store(false)
	a.opts.RemoteLog = true
}

// TestReadersOfWhatIsReleased: views, snapshots, counts, watchers, those who wait
// for history, checkpoints and metrics continue while partitions come and go, and
// end with a clear error or the truth.
func TestReadersOfWhatIsReleased(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1, 1)
	n := c.open(0, nil)
	defer c.close()
	ctx := context.Background()
	mustTake(t, n, 0, 1, 2)
	c.found(n)
	account := clusterAccount(1)
	reply, err := n.Command(ctx, account, resolver.CommandSegmentCreate, resolver.SegmentSave{Name: "s", Definition: json.RawMessage(`{"match":"all","conditions":[{"kind":"activity","event":"viewed"}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	var seg resolver.Segment
	if err := json.Unmarshal(reply, &seg); err != nil {
		t.Fatal(err)
	}
	const people = 200
	for i := range people {
		if _, err := c.event(ctx, n, account, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var read, refused atomic.Int64
	ok := func(what string, err error) bool {
		if errors.Is(err, resolver.ErrNotOwner) {
			refused.Add(1)
			return false
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return false
		}
		read.Add(1)
		return true
	}
	reader := func(fn func()) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					fn()
					time.Sleep(100 * time.Microsecond) // not to wait for: readers without a pause would starve the releases
				}
			}
		})
	}
	reader(func() { // under the lock, reading documents
		err := n.Read(ctx, account, func(v *resolver.View) error {
			for o := range uint32(20) {
				if _, err := v.Profiles().Get(o); err != nil {
					return err
				}
			}
			return nil
		})
		ok("view", err)
	})
	reader(func() { // behind the lock
		var s *view.Snapshot
		var cut query.Cut
		if !ok("snapshot", n.Read(ctx, account, func(v *resolver.View) error { s, cut = v.Snapshot(), v.Cut(); return nil })) {
			return
		}
		found := 0
		err := s.Scan(ctx, func(uint32, *segment.Facts) error { found++; return nil })
		if ok("scan", err) && found != people {
			t.Errorf("%d of %d profiles scanned", found, people)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		ok("history", n.WaitHistory(ctx, cut))
	})
	reader(func() {
		members, known, err := n.CountMembers(ctx, account, seg.ID, c.clock.Load())
		if ok("count", err) && (!known || members != people) {
			t.Errorf("S1: %d members (known: %t), want %d", members, known, people)
		}
	})
	reader(func() {
		n.Stats()
		n.Accounts()
		n.OutboxAccounts(c.clock.Load())
		n.App([]byte(resolver.AppID(account)))
		ok("checkpoint", n.Checkpoint())
		_, _, err := n.StateHash(1)
		ok("hash", err)
		n.Owned()
	})
	for range 20 {
		w, _ := n.Watch(account)
		tr, _ := n.WatchTransitions(account, seg.ID)
		other, _ := n.Watch(clusterAccount(0))
		before := read.Load()
		eventually.Holds(t, "readers read what is owned again", func() bool { return read.Load() > before+10 })
		mustRelease(t, n, 1)
		<-w.Ended()
		if _, open := <-tr.Events; open || !errors.Is(tr.Err(), resolver.ErrNotOwner) || !errors.Is(w.Err(), resolver.ErrNotOwner) {
			t.Errorf("watchers ended with %v and %v", w.Err(), tr.Err())
		}
		if other.Err() != nil {
			t.Errorf("a watcher of another partition: %v", other.Err())
		}
		w.Close()
		tr.Close()
		other.Close()
		mustTake(t, n, 1)
	}
	close(stop)
	wg.Wait()
	if n.live.Watchers() != 0 || n.transitions.Watchers() != 0 {
		t.Error("watchers are left")
	}
	if read.Load() == 0 || refused.Load() == 0 {
		t.Errorf("%d reads, %d refused: the test saw too little", read.Load(), refused.Load())
	}
}

// TestSnapshotHoldsFilesOpen: a partition that is released while a snapshot is
// read gives its files up with the snapshot, not before.
func TestSnapshotHoldsFilesOpen(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1, 1)
	n := c.open(0, nil)
	defer c.close()
	ctx := context.Background()
	mustTake(t, n, 0, 1, 2)
	c.found(n)
	account := clusterAccount(0)
	for i := range 3 {
		if _, err := c.event(ctx, n, account, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	var s *view.Snapshot
	if err := n.Read(ctx, account, func(v *resolver.View) error { s = v.Snapshot(); return nil }); err != nil {
		t.Fatal(err)
	}
	released, cancel := context.WithCancel(ctx)
	defer cancel()
	left := n.Changed()
	go func() {
		<-left
		cancel()
	}()
	if err := s.Scan(ctx, func(uint32, *segment.Facts) error {
		if err := n.Release(released, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("files are still read: %v", err)
		}
		return nil
	}); err != nil { // it is looked at now and then only
		t.Error(err)
	}
	if err := s.Scan(ctx, func(uint32, *segment.Facts) error { return nil }); !errors.Is(err, resolver.ErrNotOwner) {
		t.Errorf("a scan after the release: %v", err)
	}
	short, end := context.WithTimeout(ctx, 50*time.Millisecond)
	defer end()
	if err := n.Take(short, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a take beside files that are open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	mustTake(t, n, 0)
	if have, err := viewed(ctx, n, account); err != nil || have != 3 {
		t.Errorf("%d events: %v", have, err)
	}
}

// TestWaitHistoryEnds: waiting for a history that takes nothing ends when
// the partition is released.
func TestWaitHistoryEnds(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1, 1)
	n := c.open(0, func(o *Options) { o.Feed.Delay = time.Hour })
	defer c.close()
	ctx := context.Background()
	mustTake(t, n, 0, 1, 2)
	c.found(n)
	waits := make(chan error, 1)
	p := n.partitions[0].Load()
	go func() { waits <- n.WaitHistory(ctx, query.Cut{Partition: 0, UpTo: 1 << 40}) }()
	eventually.Holds(t, "it waits", func() bool { return p.feed.Status().Wanted == 1<<40 })
	mustRelease(t, n, 0)
	if err := <-waits; !errors.Is(err, resolver.ErrNotOwner) {
		t.Errorf("%v", err)
	}
}

// remotes hands commands to a node.
type remotes struct {
	to   atomic.Pointer[Node]
	many int // times that each is handed over
}

func (r *remotes) Command(ctx context.Context, partition int, rec []byte) (reply []byte, err error) {
	reply, err = r.to.Load().SubmitCommand(ctx, partition, rec)
	for range r.many - 1 {
		var again *resolver.Refusal // says that it was applied before
		if _, e := r.to.Load().SubmitCommand(ctx, partition, rec); err == nil && !errors.As(e, &again) {
			return nil, fmt.Errorf("the record counts twice: %w", e)
		}
	}
	return reply, err
}

// TestL2RemoteCommand: a command for a partition that is elsewhere is carried out
// there, once however often it is handed over, with its refusals, and stamped by
// the owner's clock; what is no command of the partition is not.
func TestL2RemoteCommand(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1, 2)
	r := &remotes{many: 3}
	a := c.open(0, nil)
	b := c.open(1, func(o *Options) {
		o.Remote = r
		o.Now = func() time.Time { return time.UnixMilli(c.clock.Load() + 60_000) }
	})
	defer c.close()
	r.to.Store(a)
	ctx := context.Background()
	mustTake(t, a, 0, 1, 2)
	c.found(a)
	account := clusterAccount(1)
	reply, err := b.Command(ctx, account, resolver.CommandSegmentCreate, resolver.SegmentSave{Name: "s", Definition: json.RawMessage(`{"match":"all","conditions":[{"kind":"activity","event":"viewed"}]}`)})
	if err != nil || !strings.Contains(string(reply), `"id":"seg_`) {
		t.Fatalf("%s %v", reply, err)
	}
	if err := a.Read(ctx, account, func(v *resolver.View) error {
		if list := v.Segments().All(); len(list) != 1 {
			t.Errorf("L2: %d segments were made", len(list))
		}
		if v.LogTimeMs() > c.clock.Load() {
			t.Errorf("the log time is %d ms ahead of the owner's clock", v.LogTimeMs()-c.clock.Load())
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	var refusal *resolver.Refusal
	if _, err := b.Command(ctx, account, resolver.CommandSegmentCreate, resolver.SegmentSave{Definition: json.RawMessage(`{}`)}); !errors.As(err, &refusal) {
		t.Errorf("a refusal: %v", err)
	}
	_, end, _ := c.log.Bounds(ctx, 1)
	for _, wrong := range []eventlog.Envelope{{Kind: eventlog.KindCommand, Account: clusterAccount(2)}, {Kind: eventlog.KindEvents, Account: account}} {
		rec := eventlog.AppendCommand(wrong.Append(nil), eventtypes.CommandDefine, []byte(`{}`))
		if _, err := a.SubmitCommand(ctx, 1, rec); err == nil || errors.Is(err, resolver.ErrNotOwner) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	if _, err := a.SubmitCommand(ctx, 9, eventlog.AppendCommand((&eventlog.Envelope{Kind: eventlog.KindCommand}).Append(nil), eventtypes.CommandDefine, []byte(`{}`))); err == nil {
		t.Error("a partition that the log lacks")
	}
	if _, now, _ := c.log.Bounds(ctx, 1); now != end {
		t.Errorf("%d records were stored", now-end)
	}
	mustRelease(t, a, 1)
	if _, err := b.Command(ctx, account, eventtypes.CommandDefine, eventtypes.Define{Name: "X"}); !errors.Is(err, resolver.ErrNotOwner) {
		t.Errorf("no node owns it: %v", err)
	}
}

// TestFailStopsWhatIsTaken: a node that must fail takes nothing any more and
// stops what it has, and its Close returns.
func TestFailStopsWhatIsTaken(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1, 1)
	n := c.open(0, nil)
	defer c.close()
	ctx := context.Background()
	mustTake(t, n, 0)
	n.Fail(fake.ErrHistory)
	if err := n.Take(ctx, 1); !errors.Is(err, resolver.ErrUnavailable) || !errors.Is(err, fake.ErrHistory) {
		t.Errorf("%v", err)
	}
	if err := n.Barrier(ctx, clusterAccount(0)); !errors.Is(err, resolver.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if err := n.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := n.Take(ctx, 1); !errors.Is(err, resolver.ErrUnavailable) {
		t.Errorf("after Close: %v", err)
	}
	if err := n.Read(ctx, clusterAccount(0), func(*resolver.View) error { return nil }); !errors.Is(err, resolver.ErrUnavailable) {
		t.Errorf("after Close: %v", err)
	}
}

// boundsLog counts how often the log is asked for its bounds.
type boundsLog struct {
	eventlog.Log
	asked atomic.Int64
	away  atomic.Bool
}

func (l *boundsLog) Bounds(ctx context.Context, p int) (start, end int64, err error) {
	l.asked.Add(1)
	if l.away.Load() {
		return 0, 0, errors.New("the log is away")
	}
	return l.Log.Bounds(ctx, p)
}

// TestRecent: a state is recent for a second after the log was asked for its
// end, not longer, and not by a clock that was put back; a log that is away makes
// none recent.
func TestRecent(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 1, 1)
	defer c.close()
	l := &boundsLog{Log: c.log}
	n := c.open(0, func(o *Options) { o.Log = l })
	ctx, account := context.Background(), clusterAccount(0)
	partition := n.PartitionOf(account)
	if err := n.Recent(ctx, account); !errors.Is(err, resolver.ErrNotOwner) {
		t.Errorf("elsewhere: %v", err)
	}
	if err := n.Take(ctx, partition); err != nil {
		t.Fatal(err)
	}
	asked := func(want int64) {
		t.Helper()
		before := l.asked.Load()
		if err := n.Recent(ctx, account); err != nil {
			t.Fatal(err)
		}
		if have := l.asked.Load() - before; have != want {
			t.Errorf("the log was asked %d times, want %d", have, want)
		}
	}
	asked(1)
	asked(0)
	c.clock.Add(999)
	asked(0)
	c.clock.Add(1)
	asked(1)
	c.clock.Add(-5)
	asked(1)
	c.clock.Add(1000)
	l.away.Store(true)
	if err := n.Recent(ctx, account); !errors.Is(err, resolver.ErrUnavailable) {
		t.Errorf("away: %v", err)
	}
	l.away.Store(false)
	asked(1)
}
