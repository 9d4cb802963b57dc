package resolver

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/feed"
)

var _ io.Reader = (*seededReader)(nil)

// acked is what the server answered to a client.
type acked struct {
	key     string
	status  EventStatus
	profile ProfileID
	offset  int64
	index   int
}

// TestSimulationL1L2R1S1S2 drives log, state machine and checkpoints through
// crashes with torn writes, failing fsyncs and a failing history, and checks
// after each restart that
//
//	L1: every acknowledged event is still there, with the same answer,
//	L2: every idempotency key has one row in history, and that of an erased
//	    profile none,
//	R1: the state equals that of a fresh replay of the whole log,
//	S1: the members of every segment that is live are those found naively,
//	S2: the transitions in history add up to the members.
//
// Between two starts a file of a checkpoint may be damaged, and history may lose
// what it had.
//
// MUSTER_SEED repeats one seed, MUSTER_SEEDS sets how many are run.
func TestSimulationL1L2R1S1S2(t *testing.T) {
	t.Parallel()
	testlevel.EachSeed(t, testlevel.Count(12, 300), simulate, func(seeds int) {
		if n := segmentsChecked.Load(); n < int64(seeds)/10 {
			t.Errorf("only %d segments were compared", n)
		}
		if n := keptChecked.Load(); n < int64(seeds) {
			t.Errorf("only %d profiles were found in sets", n)
		}
		if n := columnsChecked.Load(); n < int64(seeds)/10 {
			t.Errorf("only %d columns compared", n)
		}
		if n := erasedInSims.Load(); n < int64(seeds)/10 {
			t.Errorf("only %d profiles were erased", n)
		}
	})
}

func simulate(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2))
	history := &modelHistory{Rand: rand.New(rand.NewPCG(seed, 3)), Failures: pick(rng, 0, 0, 20, 60)}
	fs := &crashFS{MemFS: vfs.NewCrashableMem()}
	var clock atomic.Int64
	clock.Store(1_000_000_000_000)
	world := pick(rng, 3, 10, 30)
	var (
		mu     sync.Mutex
		told   []acked
		ids    = &seededReader{Rand: rand.New(rand.NewPCG(seed, 4))}
		rounds = 2 + rng.IntN(3)
	)
	for round := range rounds {
		// From a random fsync on, every one of the log's fails.
		var dying atomic.Bool
		logFS := vfs.FS(fs)
		if rng.IntN(3) == 0 {
			left := atomic.Int64{}
			left.Store(int64(20 + rng.IntN(60)))
			logFS = errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) && left.Add(-1) < 0 {
					dying.Store(true)
					return errorfs.ErrInjected
				}
				return nil
			}))
		}
		log, err := file.Open("log", file.Options{FS: logFS, Partitions: 1})
		if err != nil {
			if dying.Load() {
				fs = fs.Crash(rng)
				continue
			}
			t.Fatalf("seed %d round %d: open log: %v", seed, round, err)
		}
		node, err := Serve(context.Background(), ServeOptions{
			FS: fs, Dir: "state", Log: wholeLog{Log: log}, History: history, Rand: ids,
			Now:                func() time.Time { return time.UnixMilli(clock.Load()) },
			CheckpointInterval: time.Hour, GenerationBytes: int64(pick(rng, 2_000, 20_000, 1_000_000)), CacheBytes: int64(pick(rng, 4_000, 1<<20)),
			Feed: feed.Options{Rows: 1 + rng.IntN(20), Delay: time.Millisecond, MemoryBytes: int64(pick(rng, 300, 1<<20)), SpoolBytes: 1 << 30, RetryMax: time.Millisecond},
		})
		if err != nil {
			t.Fatalf("seed %d round %d: open node: %v", seed, round, err)
		}
		if round == 0 {
			if _, err := node.Command(context.Background(), testAccount, CommandBootstrap, testBootstrap(DefaultSettings())); err != nil && !dying.Load() {
				t.Fatalf("seed %d: bootstrap: %v", seed, err)
			}
		}
		if len(node.Accounts()) > 0 {
			verify(t, seed, node, log, history, told)
			var wg sync.WaitGroup
			for w := range 3 {
				wrng := rand.New(rand.NewPCG(seed<<8+uint64(round)<<4+uint64(w), 5))
				wg.Go(func() {
					for range 4 + wrng.IntN(12) {
						if wrng.IntN(4) == 0 {
							randomSegmentCommand(wrng, node)
						}
						for range wrng.IntN(3) {
							randomContactCommand(wrng, world, node)
						}
						evs := make([]eventlog.Event, 1+wrng.IntN(5))
						for i := range evs {
							if evs[i] = randomEvent(wrng, world, clock.Load()); wrng.IntN(3) == 0 {
								evs[i] = trackingEvent(wrng, world, clock.Load())
								evs[i].MessageID = false // the keys below are of one namespace
							}
							evs[i].IdempotencyKey = fmt.Appendf(nil, "%d-%d-%d", round, w, wrng.IntN(40))
						}
						env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: testAccount, StampMs: clock.Add(wrng.Int64N(1000))}
						_, _ = ids.Read(env.ID[:])
						var out Outcome
						if err := node.Submit(context.Background(), testAccount, appendEvents(env.Append(nil), evs), &out); err != nil {
							if !dying.Load() && !errors.Is(err, ErrOverloaded) {
								t.Errorf("seed %d: submit: %v", seed, err)
							}
							return
						}
						mu.Lock()
						for i, o := range out.Events {
							told = append(told, acked{string(evs[i].IdempotencyKey), o.Status, o.Profile, out.Offset, i})
						}
						mu.Unlock()
					}
				})
			}
			for range rng.IntN(4) {
				if err := node.Checkpoint(); err != nil {
					t.Fatalf("seed %d: checkpoint: %v", seed, err)
				}
			}
			wg.Wait()
			if !dying.Load() {
				verifySegments(t, seed, node, history, clock.Load())
			}
			if !dying.Load() && rng.IntN(3) == 0 {
				changeSome(rng, node, world, clock.Add(rng.Int64N(1000)))
				verifySegments(t, seed, node, history, clock.Load())
			}
		}
		// What history holds at the moment of the crash is of durable records;
		// what the dead process continues storing is not.
		history.Mu.Lock()
		crashed := fs.Crash(rng)
		left := history.Clone()
		history.Mu.Unlock()
		stop(node, log)
		if rng.IntN(4) > 0 || dying.Load() {
			fs, history = crashed, left
		}
		// What is derived from the log may be damaged or lost while the machine is
		// closed.
		if rng.IntN(4) == 0 {
			damageSomeFile(t, rng, fs)
		}
		if rng.IntN(4) == 0 {
			history.Lose(rng)
		}
	}
	log, err := file.Open("log", file.Options{FS: fs, Partitions: 1})
	if err != nil {
		t.Fatalf("seed %d: open log at the end: %v", seed, err)
	}
	history.Mu.Lock()
	history.Failures = 0
	history.Mu.Unlock()
	node, err := Serve(context.Background(), ServeOptions{FS: fs, Dir: "state", Log: wholeLog{Log: log}, History: history, Rand: ids,
		Now: func() time.Time { return time.UnixMilli(clock.Load()) }, Feed: feed.Options{Delay: time.Millisecond, RetryMax: time.Millisecond}})
	if err != nil {
		t.Fatalf("seed %d: open node at the end: %v", seed, err)
	}
	if len(node.Accounts()) > 0 {
		verify(t, seed, node, log, history, told)
		verifyHistory(t, seed, node, history, told)
		for range 3 {
			// Reads look ahead, also at what time makes of statuses and scores.
			later := int64(pick(rng, 0, 1, 3, 8)) * 30 * dayMs
			verifySegments(t, seed, node, history, clock.Add(rng.Int64N(20_000))+later)
		}
	}
	stop(node, log)
}

func stop(node interface{ Close(context.Context) error }, log *file.Log) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_ = node.Close(ctx)
	_ = log.Close()
}

// verify checks L1 and R1 on a node that was just opened.
func verify(t *testing.T, seed uint64, node Served, log eventlog.Log, history *modelHistory, told []acked) {
	t.Helper()
	next, sum, err := node.StateHash(0)
	if err != nil {
		t.Fatalf("seed %d: hash: %v", seed, err)
	}
	m, answers := replay(t, log, next)
	fresh, err := m.Hash()
	if err != nil {
		t.Fatal(err)
	}
	checkDevices(t, m)
	if fresh != sum {
		t.Fatalf("R1: seed %d: the state at %d differs from a fresh replay", seed, next)
	}
	for _, a := range told {
		outs, ok := answers[a.offset]
		if !ok || a.index >= len(outs) {
			t.Fatalf("L1: seed %d: acknowledged record %d is gone (log ends at %d)", seed, a.offset, next)
		}
		if got := outs[a.index]; got.Status != a.status || got.Profile != a.profile {
			t.Fatalf("L1: seed %d: event %d of record %d was answered %v %v, replay says %v %v", seed, a.index, a.offset, a.status, a.profile, got.Status, got.Profile)
		}
	}
}

// replay applies the whole log to a fresh machine.
func replay(t *testing.T, log eventlog.Log, next int64) (*Machine, map[int64][]EventOutcome) {
	t.Helper()
	m := testMachine(t)
	r, err := log.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	answers := map[int64][]EventOutcome{}
	var out Outcome
	var rows query.Batch
	for m.next < next {
		e, err := r.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		recordLog(t, m, e.Data)
		if err := m.Apply(e.Offset, e.Data, &rows, &out); err != nil {
			t.Fatal(err)
		}
		answers[e.Offset] = append([]EventOutcome(nil), out.Events...)
	}
	return m, answers
}

// erasedInSims counts profiles that were acknowledged and erased.
var erasedInSims atomic.Int64

func verifyHistory(t *testing.T, seed uint64, node Served, history *modelHistory, told []acked) {
	t.Helper()
	var cut query.Cut
	erased := map[ProfileID]bool{}
	gone := map[uint32]bool{}
	eventually.Succeeds(t, func() error {
		pending := 0
		if err := node.Read(context.Background(), testAccount, func(v *View) error {
			cut, pending = v.Cut(), v.Erasures().Pending()
			for _, x := range told {
				if _, ok := v.Profiles().Resolve(x.profile); !ok && x.status != EventRefused {
					erased[x.profile] = true
				}
			}
			for o := range accountOf(v).Profiles.Headers.Count {
				gone[o] = accountOf(v).Profiles.Erased(o)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if pending > 0 {
			return fmt.Errorf("seed %d: %d erasures do not end", seed, pending)
		}
		return nil
	})
	if err := waitHistory(t, node, cut); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	history.Mu.Lock()
	defer history.Mu.Unlock()
	for _, r := range history.Rows {
		if gone[r.Ordinal] {
			t.Fatalf("L2: seed %d: history has an event of profile %d, which is erased", seed, r.Ordinal)
		}
	}
	for _, m := range history.Moved {
		if gone[m.Ordinal] {
			t.Fatalf("S2: seed %d: history has a transition of profile %d, which is erased", seed, m.Ordinal)
		}
	}
	erasedInSims.Add(int64(len(erased)))
	seen := map[string]int{}
	at := map[[12]byte]bool{}
	for _, r := range history.Rows {
		if r.Key != "" { // the service's own events have none
			seen[r.Key]++
		}
		var p [12]byte
		binary.LittleEndian.PutUint64(p[:], uint64(r.Offset))
		binary.LittleEndian.PutUint32(p[8:], r.Index)
		if at[p] {
			t.Fatalf("L2: seed %d: position %d/%d twice in history", seed, r.Offset, r.Index)
		}
		at[p] = true
	}
	for k, c := range seen {
		if c != 1 {
			t.Fatalf("L2: seed %d: key %s has %d rows in history", seed, k, c)
		}
	}
	for _, a := range told {
		if a.status != EventRefused && !erased[a.profile] && seen[a.key] != 1 {
			t.Fatalf("L2: seed %d: acknowledged key %s has %d rows in history", seed, a.key, seen[a.key])
		}
	}
}

// waitHistory waits until history holds what the cut may see, also while it is being
// rebuilt.
func waitHistory(t *testing.T, node Served, cut query.Cut) (err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	eventually.Holds(t, "history is there and not being rebuilt", func() bool {
		err = node.WaitHistory(ctx, cut)
		return !node.Rebuilding() && !errors.Is(err, query.ErrUnavailable) || ctx.Err() != nil
	})
	return err
}

// damageSomeFile damages a file of the newest checkpoint, if there is one.
func damageSomeFile(t *testing.T, rng *rand.Rand, fs vfs.FS) {
	t.Helper()
	offset, err := NewestCheckpoint(fs, "state", 0)
	if err != nil {
		t.Fatal(err)
	}
	if offset < 0 {
		return
	}
	files := filesBelow(t, fs, fs.PathJoin("state", "p0", checkpoint.DirCheckpoints, checkpoint.Name(offset)))
	damageFile(t, fs, pick(rng, files...), pick(rng, damageKinds...))
}
