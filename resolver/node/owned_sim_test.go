package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/eventtypes"
	"github.com/musterhq/muster/resolver/internal/fake"
	"github.com/musterhq/muster/resolver/view"
)

// frozenLog is the log as one process reaches it: while it is frozen, nothing
// that others append is read.
type frozenLog struct {
	*sharedLog
	frozen freeze
}

// freeze holds up its callers while it is on.
type freeze struct {
	mu     sync.Mutex
	thawed chan struct{} // guarded by mu; nil while it is off
}

func (f *freeze) set(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if on == (f.thawed != nil) {
		return
	}
	if on {
		f.thawed = make(chan struct{})
		return
	}
	close(f.thawed)
	f.thawed = nil
}

func (f *freeze) wait(ctx context.Context) error {
	for {
		f.mu.Lock()
		thawed := f.thawed
		f.mu.Unlock()
		if thawed == nil {
			return nil
		}
		select {
		case <-thawed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (l *frozenLog) Read(partition int, from int64) (eventlog.Reader, error) {
	r, err := l.sharedLog.Read(partition, from)
	if err != nil {
		return nil, err
	}
	return &frozenReader{r, l}, nil
}

type frozenReader struct {
	eventlog.Reader
	log *frozenLog
}

func (r *frozenReader) Next(ctx context.Context) (eventlog.Entry, error) {
	e, err := r.Reader.Next(ctx)
	if err := r.log.frozen.wait(ctx); err != nil {
		return eventlog.Entry{}, err
	}
	return e, err
}

// simProcess is a node with its own disk. A crash clones the disk and leaves the
// old node running for a while, as one that does not know yet.
type simProcess struct {
	fs   *fake.CrashFS
	log  *frozenLog
	node atomic.Pointer[Node]
}

// simAccount is what clients know of an account.
type simAccount struct {
	// A count that is read must lie between what was acknowledged or read before
	// the read began and what was tried before it ended: that, for a number that
	// only grows by the tries, is what linearizable means.
	tried, acked, seen atomic.Int64
	segment            string
	mu                 sync.Mutex
	keys               map[string]bool // by whether they were acknowledged
	defined            []string
}

type ownedSim struct {
	t         *testing.T
	seed      uint64
	c         *testCluster
	processes []*simProcess
	accounts  []*simAccount
	reads     atomic.Int64
	retries   atomic.Int64
	zombies   sync.WaitGroup
	opened    int
	named     bool
	change    func(*Options)
}

var ownedSimReads, ownedSimRetries atomic.Int64

// TestSimulationOwnedL1L2R1S1 lets two nodes take and release the partitions of
// one log at random, also both at once, under a load of events with idempotency
// keys, commands and counts, while processes crash, freeze and lose answers, and
// checks that
//
//	L1: what was acknowledged is there, and no read is stale: it says what was
//	    acknowledged or read before it began, whichever node answers,
//	L2: every idempotency key that was acknowledged counts once, the others once
//	    or not at all,
//	R1: the state equals that of a fresh replay of the whole log,
//	S1: members are counted as the events are.
//
// MUSTER_SEED repeats one seed, MUSTER_SEEDS sets how many are run.
func TestSimulationOwnedL1L2R1S1(t *testing.T) {
	t.Parallel()
	testlevel.EachSeed(t, testlevel.Count(6, 24), simulateOwned, func(seeds int) {
		reads, retries := ownedSimReads.Load(), ownedSimRetries.Load()
		t.Logf("%d reads compared, %d requests tried again", reads, retries)
		if reads < int64(seeds)*20 || retries < int64(seeds) {
			t.Error("too little happened to tell anything")
		}
	})
}

func simulateOwned(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 40))
	c := newTestCluster(t, seed, 0)
	for _, h := range c.history.parts {
		h.Failures = fake.Pick(rng, 0, 0, 20)
	}
	s := &ownedSim{t: t, seed: seed, c: c, named: rng.IntN(2) == 0}
	generation, interval := int64(fake.Pick(rng, 2_000, 50_000, 10_000_000)), fake.Pick(rng, 5*time.Millisecond, time.Hour)
	rows := 1 + rng.IntN(20)
	s.change = func(o *Options) {
		o.GenerationBytes, o.CheckpointInterval, o.CacheBytes, o.Feed.Rows, o.Remote = generation, interval, 4_000, rows, s
	}
	for range 2 {
		s.processes = append(s.processes, &simProcess{fs: &fake.CrashFS{MemFS: vfs.NewCrashableMem()}})
	}
	for _, p := range s.processes {
		s.start(p)
	}
	s.found()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	worker := func(i int, fn func(rng *rand.Rand)) {
		rng := rand.New(rand.NewPCG(seed, 50+uint64(i)))
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					fn(rng)
					time.Sleep(time.Duration(rng.IntN(200)) * time.Microsecond) // the moments of requests are random
				}
			}
		})
	}
	for i := range 3 {
		n := 0
		worker(i, func(rng *rand.Rand) { n++; s.write(rng, fmt.Sprint(i, "-", n)) })
	}
	for i := range 2 {
		worker(10+i, s.read)
	}
	n := 0
	worker(20, func(rng *rand.Rand) {
		if n++; n < 1000 {
			s.define(rng, fmt.Sprint("d", n))
		}
	})
	for range 12 + rng.IntN(12) {
		s.act(rng)
	}
	close(stop)
	s.takeOver()
	wg.Wait()
	s.zombies.Wait()
	for _, h := range c.history.parts {
		h.Mu.Lock()
		h.Failures = 0
		h.Mu.Unlock()
	}
	s.verify()
	for _, p := range s.processes {
		if err := p.node.Load().Close(context.Background()); err != nil {
			s.fatal("close: %v", err)
		}
	}
	if err := c.log.Close(); err != nil {
		s.fatal("close the log: %v", err)
	}
	ownedSimReads.Add(s.reads.Load())
	ownedSimRetries.Add(s.retries.Load())
}

func (s *ownedSim) fatal(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf("seed %d: "+format, append([]any{s.seed}, args...)...)
}

func (s *ownedSim) errorf(format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("seed %d: "+format, append([]any{s.seed}, args...)...)
}

// start opens the node of a process.
func (s *ownedSim) start(p *simProcess) {
	s.t.Helper()
	s.opened++
	p.log = &frozenLog{sharedLog: s.c.log}
	o := s.c.options(p.fs)
	s.change(&o)
	o.Log = p.log
	if s.named {
		o.NodeID, o.Advertise = fmt.Sprint("node-", s.opened), "127.0.0.1:1"
	}
	n, err := Open(context.Background(), o)
	if err != nil {
		s.fatal("open: %v", err)
	}
	p.node.Store(n)
}

// found makes the accounts, each with a segment of those who viewed.
func (s *ownedSim) found() {
	s.t.Helper()
	n := s.processes[0].node.Load()
	mustTake(s.t, n, 0, 1, 2)
	s.c.found(n)
	ctx := context.Background()
	for p := range clusterPartitions {
		reply, err := n.Command(ctx, clusterAccount(p), resolver.CommandSegmentCreate, resolver.SegmentSave{Name: "s", Definition: json.RawMessage(`{"match":"all","conditions":[{"kind":"activity","event":"viewed"}]}`)})
		var seg resolver.Segment
		if err == nil {
			err = json.Unmarshal(reply, &seg)
		}
		if err != nil {
			s.fatal("%v", err)
		}
		s.accounts = append(s.accounts, &simAccount{segment: seg.ID, keys: map[string]bool{}})
	}
}

// node is one that serves the partition, nil when there is none.
func (s *ownedSim) node(rng *rand.Rand, partition int) *Node {
	first := rng.IntN(len(s.processes))
	for i := range s.processes {
		if n := s.processes[(first+i)%len(s.processes)].node.Load(); n.Owns(partition) {
			return n
		}
	}
	return nil
}

// patience is how long a request is waited for.
func (s *ownedSim) patience(rng *rand.Rand) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), fake.Pick(rng, time.Millisecond, 20*time.Millisecond, time.Second))
}

// expected reports whether an error is one that clients are to try again after.
func (s *ownedSim) expected(err error) bool {
	both := errors.Is(err, resolver.ErrNotOwner) && errors.Is(err, resolver.ErrUnavailable)
	return !both && (errors.Is(err, resolver.ErrNotOwner) || errors.Is(err, resolver.ErrUnavailable) || errors.Is(err, resolver.ErrOverloaded) || errors.Is(err, context.DeadlineExceeded))
}

// write submits an event until it is acknowledged, a few times at most.
func (s *ownedSim) write(rng *rand.Rand, key string) {
	p := rng.IntN(clusterPartitions)
	a := s.accounts[p]
	a.mu.Lock()
	a.keys[key] = false
	a.mu.Unlock()
	a.tried.Add(1)
	for range 20 {
		n := s.node(rng, p)
		if n == nil {
			time.Sleep(200 * time.Microsecond) // a client that does not hurry: it may have no owner for long
			continue
		}
		ctx, cancel := s.patience(rng)
		status, err := s.c.event(ctx, n, clusterAccount(p), key)
		cancel()
		if err == nil {
			if status == resolver.EventRefused {
				s.errorf("an event was refused")
			}
			a.acked.Add(1)
			a.mu.Lock()
			a.keys[key] = true
			a.mu.Unlock()
			return
		}
		if !s.expected(err) {
			s.errorf("submit: %v", err)
			return
		}
		s.retries.Add(1)
	}
}

// read counts events or members and compares.
func (s *ownedSim) read(rng *rand.Rand) {
	p := rng.IntN(clusterPartitions)
	a, account := s.accounts[p], clusterAccount(p)
	n := s.node(rng, p)
	if n == nil {
		return
	}
	ctx, cancel := s.patience(rng)
	defer cancel()
	least := max(a.acked.Load(), a.seen.Load())
	var have uint64
	var err error
	known := true
	kind := rng.IntN(3)
	switch kind {
	case 0:
		have, err = viewed(ctx, n, account)
	case 1:
		have, known, err = n.CountMembers(ctx, account, a.segment, s.c.clock.Load())
	default:
		var seg view.CountedSegment
		seg, _, known = n.PublishedSegment(account, a.segment, s.c.clock.Load())
		have, known = seg.Members, known && seg.Known
	}
	if err != nil {
		if !s.expected(err) {
			s.errorf("read: %v", err)
		}
		return
	}
	if !known {
		return
	}
	if most := a.tried.Load(); int64(have) < least || int64(have) > most {
		s.errorf("L1, S1: a read (%d) of partition %d says %d, and it was at least %d before it and %d at most after it", kind, p, have, least, most)
	}
	for seen := a.seen.Load(); seen < int64(have) && !a.seen.CompareAndSwap(seen, int64(have)); seen = a.seen.Load() {
	}
	s.reads.Add(1)
}

// Command is the way from one node to another.
func (s *ownedSim) Command(ctx context.Context, partition int, rec []byte) ([]byte, error) {
	for _, p := range s.processes {
		if n := p.node.Load(); n.Owns(partition) {
			return n.SubmitCommand(ctx, partition, rec)
		}
	}
	return nil, notOwner(partition)
}

// define defines an event type through any node.
func (s *ownedSim) define(rng *rand.Rand, name string) {
	p := rng.IntN(clusterPartitions)
	n := s.processes[rng.IntN(len(s.processes))].node.Load()
	ctx, cancel := s.patience(rng)
	defer cancel()
	_, err := n.Command(ctx, clusterAccount(p), eventtypes.CommandDefine, eventtypes.Define{Name: name})
	if err != nil {
		if !s.expected(err) {
			s.errorf("command: %v", err)
		}
		return
	}
	a := s.accounts[p]
	a.mu.Lock()
	a.defined = append(a.defined, name)
	a.mu.Unlock()
}

// act is what befalls the cluster next.
func (s *ownedSim) act(rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), fake.Pick(rng, 2*time.Millisecond, time.Minute, time.Minute))
	defer cancel()
	i := rng.IntN(len(s.processes))
	from, to := s.processes[i], s.processes[1-i]
	p := rng.IntN(clusterPartitions)
	moves := func(err error) {
		if err != nil && !s.expected(err) && !errors.Is(err, errAway) {
			s.errorf("take or release: %v", err)
		}
	}
	pause := func(n int) { time.Sleep(time.Duration(rng.IntN(n)) * time.Millisecond) } // the moments of failures are random
	switch rng.IntN(9) {
	case 0, 1: // moves
		moves(from.node.Load().Release(ctx, p))
		moves(to.node.Load().Take(ctx, p))
	case 2, 3: // is taken from a node that does not know and reads nothing meanwhile
		from.log.frozen.set(true)
		moves(to.node.Load().Take(ctx, p))
		pause(8)
		from.log.frozen.set(false)
		pause(3)
		moves(from.node.Load().Release(ctx, p))
	case 4: // crashes; its partitions are the other's until then
		old := from.node.Load()
		owned := old.Owned()
		from.fs = from.fs.Crash(rng)
		oldLog := from.log
		oldLog.frozen.set(rng.IntN(2) == 0)
		s.start(from)
		for _, p := range owned {
			moves(fake.Pick(rng, from, to).node.Load().Take(ctx, p))
		}
		wakes := time.Duration(rng.IntN(4)) * time.Millisecond
		s.zombies.Go(func() {
			time.Sleep(wakes) // the moment at which it wakes is random
			oldLog.frozen.set(false)
			old.Fail(fake.ErrHistory)
			if err := old.Close(context.Background()); err != nil {
				s.errorf("close after a crash: %v", err)
			}
		})
	case 5:
		if err := from.node.Load().Checkpoint(); err != nil {
			s.errorf("checkpoint: %v", err)
		}
	case 6:
		s.c.log.lost.Store(int64(1 + rng.IntN(3)))
	case 7:
		s.c.log.away.Store(true)
		if rng.IntN(2) == 0 {
			moves(to.node.Load().Take(ctx, p))
		}
		pause(3)
		s.c.log.away.Store(false)
	default:
		s.c.clock.Add(rng.Int64N(1000))
	}
	pause(6)
}

// takeOver lets one process have everything, and the other release it.
func (s *ownedSim) takeOver() {
	s.c.log.away.Store(false)
	s.c.log.lost.Store(0)
	for i, p := range s.processes {
		p.log.frozen.set(false)
		for part := range clusterPartitions {
			var err error
			if i == 0 {
				err = p.node.Load().Take(context.Background(), part)
			} else {
				err = p.node.Load().Release(context.Background(), part)
			}
			if err != nil {
				s.fatal("take over partition %d: %v", part, err)
			}
		}
	}
}

func (s *ownedSim) verify() {
	n := s.processes[0].node.Load()
	ctx := context.Background()
	for p, a := range s.accounts {
		account := clusterAccount(p)
		var cut query.Cut
		count := int64(0)
		types := map[string]bool{}
		if err := n.Read(ctx, account, func(v *resolver.View) error {
			cut = v.Cut()
			for _, t := range v.EventTypes().List() {
				types[t.Key] = true
				if t.Key == "viewed" {
					count = int64(t.Count)
				}
			}
			return nil
		}); err != nil {
			s.fatal("read at the end: %v", err)
		}
		for _, name := range a.defined {
			if !types[name] {
				s.fatal("L1: type %s was defined and is gone", name)
			}
		}
		if members, known, err := n.CountMembers(ctx, account, a.segment, 0); err != nil || known && int64(members) != count {
			s.fatal("S1: %d members, %d events: %v", members, count, err)
		}
		eventually.Succeeds(s.t, func() error { // it failed until just now
			if err := n.WaitHistory(ctx, cut); err != nil {
				return fmt.Errorf("seed %d: history: %w", s.seed, err)
			}
			return nil
		})
		h := s.c.history.parts[p]
		h.Mu.Lock()
		rows := map[string]int{}
		for _, r := range h.Rows {
			if r.Key != "" {
				rows[r.Key]++
			}
		}
		h.Mu.Unlock()
		for key, acked := range a.keys {
			if have := rows[key]; have > 1 || acked && have != 1 {
				s.fatal("L2: key %s (acknowledged: %t) has %d rows in history", key, acked, have)
			}
		}
		if int64(len(rows)) != count || count < a.acked.Load() || count > a.tried.Load() {
			s.fatal("L2: %d events count, %d are in history, %d were acknowledged, %d tried", count, len(rows), a.acked.Load(), a.tried.Load())
		}
		next, sum, err := n.StateHash(p)
		if err != nil {
			s.fatal("%v", err)
		}
		if fresh := s.replay(p, next); fresh != sum {
			s.fatal("R1: the state of partition %d at %d differs from a fresh replay", p, next)
		}
	}
}

// replay is the hash of a fresh machine.
func (s *ownedSim) replay(partition int, next int64) string {
	m := testMachine(s.t)
	r, err := s.c.log.Read(partition, 0)
	if err != nil {
		s.fatal("%v", err)
	}
	defer r.Close()
	var out resolver.Outcome
	var rows query.Batch
	for m.Next() < next {
		e, err := r.Next(context.Background())
		if err == nil {
			err = m.Apply(e.Offset, e.Data, &rows, &out)
		}
		if err != nil {
			s.fatal("%v", err)
		}
	}
	sum, err := m.Hash()
	if err != nil {
		s.fatal("%v", err)
	}
	return sum
}
