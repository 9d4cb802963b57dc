package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/services"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

// TestL2KilledClickHouse has two stores append the same records, in batches of
// their own, while ClickHouse is killed, started again, frozen for longer than
// the stores wait, and thawed. Each record below the position is there once at
// each reader's look, and the position never goes back.
func TestL2KilledClickHouse(t *testing.T) {
	t.Parallel()
	rounds := 5
	if testlevel.Long() {
		rounds = 60
	}
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("MUSTER_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("MUSTER_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 3))
	server := services.OwnClickHouse(t)
	opts := Options{DSN: server.DSN(), DialTimeout: time.Second, QuietTimeout: 700 * time.Millisecond}
	reader := openOptions(t, Options{DSN: server.DSN(), DialTimeout: 30 * time.Second}) // what must succeed at once goes by it
	var stop atomic.Bool
	var writers sync.WaitGroup
	var appended, failed atomic.Int64
	for n := range 2 {
		s := openOptions(t, opts)
		s.blockRows = 100
		own := rand.New(rand.NewPCG(seed, uint64(10+n)))
		writers.Go(func() {
			b := new(query.Batch)
			position := int64(0)
			for !stop.Load() {
				partition := own.IntN(2)
				position = max(0, position-own.Int64N(40))
				if own.IntN(2) == 0 || position == 0 {
					at, err := s.Position(context.Background(), partition)
					if err != nil {
						time.Sleep(20 * time.Millisecond) // a writer that does not hurry, while the server is away
						continue
					}
					position = at
				}
				historytest.FillRecords(b, partition, max(0, position-own.Int64N(30)), position+1+own.Int64N(80))
				switch err := s.Append(context.Background(), b); {
				case err == nil:
					appended.Add(1)
					position = b.To
				case errors.Is(err, query.ErrGap): // of the other partition
					position = 0
				case errors.Is(err, ErrUnavailable):
					failed.Add(1)
					time.Sleep(20 * time.Millisecond) // as above
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	defer writers.Wait()
	defer stop.Store(true)
	var last [2]int64
	look := func() {
		for partition := range last {
			p := checkRecords(t, reader, partition)
			if p < last[partition] {
				t.Fatalf("L2: partition %d went back from %d to %d", partition, last[partition], p)
			}
			last[partition] = p
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	for round := range rounds {
		time.Sleep(time.Duration(rng.Int64N(int64(700 * time.Millisecond)))) // the moment of a kill is random
		if round%4 == 3 {
			if err := server.Freeze(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1500 * time.Millisecond) // a server that answers nothing for so long is what is tested
			thaw(t, server, reader)
		} else {
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.Restart(ctx); err != nil {
				t.Fatal(err)
			}
		}
		eventually.Succeeds(t, func() error { _, err := reader.Position(ctx, 0); return err })
		look()
	}
	eventually.Succeeds(t, func() error {
		for partition := range last {
			if at, err := reader.Position(ctx, partition); err != nil || at == 0 {
				return fmt.Errorf("partition %d is at %d: %w", partition, at, err)
			}
		}
		return nil
	})
	stop.Store(true)
	writers.Wait()
	look()
	spans := scalar(t, reader, "SELECT count(DISTINCT writer) FROM commits")
	garbage := scalar(t, reader, "SELECT count() FROM events") - scalar(t, reader, "SELECT count() FROM stored_events")
	t.Logf("%d rounds, positions %v, %d appends and %d that failed, %d writers, %d rows of garbage", rounds, last, appended.Load(), failed.Load(), spans, garbage)
	if last[0] == 0 || last[1] == 0 || failed.Load() == 0 || spans < 4 {
		t.Fatal("too little happened to tell anything")
	}
	var w sweep
	for range 2 {
		if err := w.run(ctx, reader); err != nil {
			t.Fatal(err)
		}
	}
	look()
}

// thaw lets the server continue. ClickHouse 26.7 may end itself when it finds
// connections reset that were new when it was frozen; then it is started again.
func thaw(t *testing.T, server *services.ClickHouseServer, s *Store) {
	t.Helper()
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // nothing may happen in a while: a server that ends itself does so a moment later
	if _, err := s.Position(context.Background(), 0); err == nil {
		return
	}
	t.Log("the server did not survive being frozen")
	if err := server.Restart(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// TestUnavailable: when ClickHouse is killed or frozen, whatever is asked fails
// soon and says so; when it is back, the same store continues.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	server := services.OwnClickHouse(t)
	// The store under test gives up soon, which on a busy machine may be too soon for a server
	// that is well. What must succeed at once goes by a patient one.
	patient := openOptions(t, Options{DSN: server.DSN()})
	appendRecords(t, patient, 0, 0, 100)
	s := openOptions(t, Options{DSN: server.DSN(), DialTimeout: 3 * time.Second, QuietTimeout: time.Second})
	ctx := context.Background()
	cut := query.Cut{UpTo: 100}
	b := new(query.Batch)
	historytest.FillRecords(b, 0, 50, 150)
	calls := map[string]func() error{
		"position": func() error { _, err := s.Position(ctx, 0); return err },
		"append":   func() error { return s.Append(ctx, b) },
		"timeline": func() error {
			_, err := s.Timeline(ctx, query.TimelineQuery{Cut: cut, Account: 7, Ordinals: []uint32{1}, Limit: 1})
			return err
		},
		"activity": func() error {
			_, err := s.Activity(ctx, query.ActivityQuery{Cut: cut, Account: 7, Leaf: historytest.CountLeaf("tested", 1), AtMs: 1 << 50})
			return err
		},
		"replay": func() error {
			return s.Replay(ctx, query.ReplayQuery{Cut: cut, Account: 7, EventType: "tested"}, func(*query.ReplayBlock) error { return nil })
		},
		"transitions": func() error {
			_, err := s.Transitions(ctx, query.TransitionsQuery{Cut: cut, Account: 7, Limit: 1})
			return err
		},
		"series": func() error {
			_, err := s.Series(ctx, query.SeriesQuery{Cut: cut, Account: 7, ToMs: 1 << 50})
			return err
		},
		"moves": func() error { _, err := s.Moves(ctx, query.MovesQuery{Cut: cut, Account: 7, ToMs: 1}); return err },
		"erase": func() error {
			return s.Erase(ctx, query.EraseQuery{Cut: cut, Account: 1, Ordinals: []uint32{999}})
		},
		"usage": func() error { _, err := s.Usage(ctx); return err },
		"open": func() error {
			other, err := Open(ctx, Options{DSN: server.DSN(), DialTimeout: time.Second, QuietTimeout: 500 * time.Millisecond})
			if err == nil {
				err = other.Close()
			}
			return err
		},
	}
	down := func(how string) {
		t.Helper()
		for name, call := range calls {
			began := time.Now()
			if err := call(); !errors.Is(err, ErrUnavailable) {
				t.Errorf("%s, %s: %v", how, name, err)
			}
			if d := time.Since(began); d > 12*time.Second {
				t.Errorf("%s, %s: failed after %v", how, name, d)
			}
		}
	}
	up := func() {
		t.Helper()
		for _, call := range calls {
			eventually.Succeeds(t, call)
		}
	}
	up()
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	down("frozen")
	thaw(t, server, s)
	up()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	down("killed")
	if err := server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	up()
	checkRecords(t, patient, 0)
}
