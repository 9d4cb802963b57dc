package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/fake"
	"github.com/musterhq/muster/resolver/internal/peek"
	"github.com/musterhq/muster/resolver/view"
)

const otherAccount = testAccount + 1

// accountOf is the account that a view is of.
func accountOf(v *resolver.View) *account.State { return peek.Account(v).(*account.State) }

// publishedNode is a node with two accounts on one partition.
func publishedNode(t *testing.T) (*fixture, *Node) {
	t.Helper()
	f := newFixture(t)
	n, err := Open(context.Background(), Options{FS: f.fs, Dir: "state", Log: f.log, History: newApartHistory(f.history),
		Now: func() time.Time { return f.now }, Rand: &fake.Random{Rand: rand.New(rand.NewPCG(2, 2))}, Feed: FeedOptions{Delay: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Command(context.Background(), testAccount, resolver.CommandBootstrap, testBootstrap(resolver.DefaultSettings())); err != nil {
		t.Fatal(err)
	}
	b := testBootstrap(resolver.DefaultSettings())
	b.Company.ID, b.User.ID, b.User.Email, b.APIKey.ID = "com_2", "usr_2", "b@b.c", "key_2"
	if _, err := n.Command(context.Background(), otherAccount, resolver.CommandCompanyCreate, b); err != nil {
		t.Fatal(err)
	}
	return f, n
}

// apartHistory keeps the accounts apart, which its model does not.
type apartHistory struct {
	*fake.History
	own struct {
		sync.Mutex
		account map[int64]uint64 // by offset of the record
	}
}

func newApartHistory(h *fake.History) *apartHistory {
	a := &apartHistory{History: h}
	a.own.account = map[int64]uint64{}
	return a
}

func (h *apartHistory) Append(ctx context.Context, b *query.Batch) error {
	h.own.Lock()
	for i, o := range b.Offset {
		h.own.account[o] = b.Account[i]
	}
	h.own.Unlock()
	return h.History.Append(ctx, b)
}

func (h *apartHistory) Replay(ctx context.Context, q query.ReplayQuery, fn func(*query.ReplayBlock) error) error {
	h.own.Lock()
	h.Mu.Lock()
	c := h.Clone()
	c.Rand = rand.New(rand.NewPCG(1, 2))
	h.Mu.Unlock()
	c.Rows = slices.DeleteFunc(c.Rows, func(r fake.Row) bool { return h.own.account[r.Offset] != q.Account })
	c.Aliases = slices.DeleteFunc(c.Aliases, func(a query.Alias) bool { return h.own.account[a.Offset] != q.Account })
	h.own.Unlock()
	return c.Replay(ctx, q, fn)
}

// comparePublished compares what is published with what is counted under the
// lock, at some instants. It returns how many answers were compared.
func comparePublished(t *testing.T, n *Node, account uint64, instants ...int64) (compared, refused int) {
	t.Helper()
	err := n.Read(context.Background(), account, func(v *resolver.View) error {
		want := v.Segments().All()
		for _, ms := range instants {
			list, at, ok := n.PublishedSegments(account, ms)
			if !ok || at != max(ms, v.LogTimeMs()) || len(list) != len(want) {
				t.Fatalf("S1: account %d at %d: %d segments at %d (known: %t), want %d at %d", account, ms, len(list), at, ok, len(want), max(ms, v.LogTimeMs()))
			}
			for i, s := range list {
				if s.ID != want[i].ID || s.Name != want[i].Name || string(s.Definition) != string(want[i].Definition) {
					t.Fatalf("S1: published is %+v, saved is %+v", s.Segment, want[i])
				}
				one, at, ok := n.PublishedSegment(account, s.ID, ms)
				if !ok || one != s || at != max(ms, v.LogTimeMs()) {
					t.Fatalf("S1: alone the segment is %+v at %d (known: %t), among all %+v", one, at, ok, s)
				}
				count, live := v.Segments().Count(s.ID, at)
				switch {
				case s.Known && !live:
					t.Fatalf("S1: segment %s is published and not live", s.ID)
				case s.Known && s.Members != count:
					t.Fatalf("S1: segment %s at %d: %d members as published, %d as counted: %s", s.ID, at, s.Members, count, s.Definition)
				case s.Known:
					compared++
				case live:
					refused++
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return compared, refused
}

// TestS1PublishedEqualsLocked: with random events, segments that come, change
// and go, time that passes and restarts, what is published is what is counted
// under the lock, at random instants and at the edge of the next expiry ± 1 ms,
// in both accounts (S1).
func TestS1PublishedEqualsLocked(t *testing.T) {
	t.Parallel()
	f, n := publishedNode(t)
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(11, 1))
	var clock atomic.Int64 // the fixture's clock is read by the node's goroutines
	clock.Store(f.now.UnixMilli())
	ids := &fake.Random{Rand: rand.New(rand.NewPCG(11, 2))}
	history := newApartHistory(f.history)
	reopen := func() {
		f.close(t, n)
		f.openLog(t)
		var err error
		n, err = Open(ctx, Options{FS: f.fs, Dir: "state", Log: f.log, History: history,
			Now: func() time.Time { return time.UnixMilli(clock.Load()) }, Rand: ids,
			Feed: FeedOptions{Delay: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
	}
	reopen()
	compared, refused := 0, 0
	var out resolver.Outcome
	for i := range 1500 {
		account := uint64(testAccount + i%2)
		switch k := rng.IntN(100); {
		case k < 8 && account == testAccount:
			randomSegmentCommand(rng, n)
		case k < 11 && account == otherAccount:
			_, _ = n.Command(ctx, account, resolver.CommandSegmentCreate, resolver.SegmentSave{Name: fmt.Sprint("s", i), Definition: json.RawMessage(fake.RandomDefinition(rng, nil, nil))})
		case k < 25:
			clock.Add(rng.Int64N(3000))
		case k < 26:
			reopen()
		default:
			env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: account, StampMs: clock.Load()}
			if err := n.stamp(&env); err != nil {
				t.Fatal(err)
			}
			if err := n.Submit(ctx, account, fake.AppendEvents(env.Append(nil), []eventlog.Event{fake.RandomEvent(rng, 20, clock.Load())}), &out); err != nil {
				t.Fatal(err)
			}
		}
		now := clock.Load()
		for _, a := range []uint64{testAccount, otherAccount} {
			at := []int64{now, now + rng.Int64N(20_000)}
			_ = n.Read(ctx, a, func(v *resolver.View) error {
				if due, ok := accountOf(v).Engine.NextDue(); ok {
					at = append(at, due-1, due, due+1)
				}
				return nil
			})
			c, r := comparePublished(t, n, a, at...)
			compared, refused = compared+c, refused+r
		}
	}
	t.Logf("%d counts compared, %d of live segments were not published", compared, refused)
	if compared < 1000 || refused > compared {
		t.Fatal("too little is published to tell anything")
	}
	f.close(t, n)
}

// TestS1PublishedIsNotStale: single events from many goroutines, each followed by
// a count that must include it, while others save and delete segments and an
// account of its own fills the partition (S1).
func TestS1PublishedIsNotStale(t *testing.T) {
	t.Parallel()
	f, n := publishedNode(t)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	const workers = 8
	each := testlevel.Count(100, 400)
	var ids [workers]string
	for w := range ids {
		reply, err := n.Command(ctx, testAccount, resolver.CommandSegmentCreate, resolver.SegmentSave{Name: "worker", Definition: json.RawMessage(
			fmt.Sprintf(`{"kind":"activity","event":"turned","where":[{"property":"w","op":"=","value":%d}],"aggregate":{"fn":"sum","property":"v","op":">=","value":1}}`, w))})
		if err != nil {
			t.Fatal(err)
		}
		var saved struct{ ID string }
		if err := json.Unmarshal(reply, &saved); err != nil {
			t.Fatal(err)
		}
		ids[w] = saved.ID
	}
	send := func(rng *rand.Rand, account uint64, ev ...eventlog.Event) error {
		env := eventlog.Envelope{Kind: eventlog.KindEvents, Account: account, StampMs: f.now.UnixMilli()}
		for i := range env.ID {
			env.ID[i] = byte(rng.Uint32())
		}
		var out resolver.Outcome
		return n.Submit(ctx, account, fake.AppendEvents(env.Append(nil), ev), &out)
	}
	var wait, beside sync.WaitGroup
	beside.Add(2)
	go func() {
		defer beside.Done()
		for i := 0; ctx.Err() == nil; i++ {
			reply, err := n.Command(ctx, testAccount, resolver.CommandSegmentCreate, resolver.SegmentSave{Name: "beside", Definition: json.RawMessage(
				fmt.Sprintf(`{"kind":"activity","event":"turned","aggregate":{"fn":"sum","property":"v","op":">=","value":%d}}`, i%5))})
			if err != nil {
				continue
			}
			var saved struct{ ID string }
			_ = json.Unmarshal(reply, &saved)
			list, _, whole := n.partitions[0].Load().published.segments.Segments(testAccount, 0)
			found := slices.ContainsFunc(list, func(s view.CountedSegment) bool { return s.ID == saved.ID })
			if whole && !found { // else the lock would be taken
				t.Errorf("S1: segment %s is saved and not published", saved.ID)
			}
			if _, err := n.Command(ctx, testAccount, resolver.CommandSegmentDelete, resolver.SegmentDelete{ID: saved.ID}); err != nil {
				continue
			}
			if s, _, ok := n.PublishedSegment(testAccount, saved.ID, 0); ok {
				t.Errorf("S1: segment %s is deleted and still published: %+v", saved.ID, s)
			}
		}
	}()
	go func() {
		defer beside.Done()
		rng := rand.New(rand.NewPCG(5, 5))
		for i := 0; ctx.Err() == nil; i++ {
			var evs []eventlog.Event
			for range 50 {
				evs = append(evs, fake.RandomEvent(rng, 500, f.now.UnixMilli()))
			}
			_ = send(rng, otherAccount, evs...)
		}
	}()
	var published atomic.Int64
	for w := range workers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			rng := rand.New(rand.NewPCG(7, uint64(w)))
			on, members := [20]bool{}, uint64(0)
			for range each {
				p, v := rng.IntN(len(on)), 1
				members++
				if on[p] {
					v, members = -1, members-2
				}
				on[p] = !on[p]
				e := fake.Event("external_id", fmt.Sprintf("w%d-%d", w, p))
				e.Type, e.Properties = []byte("turned"), fmt.Appendf(nil, `{"v":%d,"w":%d}`, v, w)
				if err := send(rng, testAccount, e); err != nil {
					t.Error(err)
					return
				}
				if s, _, ok := n.PublishedSegment(testAccount, ids[w], 0); ok && s.Known {
					published.Add(1)
					if s.Members != members {
						t.Errorf("S1: worker %d: %d members as published, want %d", w, s.Members, members)
						return
					}
				}
				if got, known, err := n.CountMembers(ctx, testAccount, ids[w], 0); err != nil || !known || got != members {
					t.Errorf("S1: worker %d: %d members (known: %t, %v), want %d", w, got, known, err, members)
					return
				}
			}
		}()
	}
	wait.Wait()
	stop()
	beside.Wait()
	if n := published.Load(); n < int64(workers*each)/2 && !t.Failed() {
		t.Errorf("%d of %d counts were published", n, workers*each)
	}
	t.Logf("%d of %d counts were published", published.Load(), workers*each)
	f.close(t, n)
}

// TestPublishedWithoutAccountOrNode: what is not there, or has failed, is not
// answered from what was published.
func TestPublishedWithoutAccountOrNode(t *testing.T) {
	t.Parallel()
	f, n := publishedNode(t)
	ctx := context.Background()
	reply, err := n.Command(ctx, testAccount, resolver.CommandSegmentCreate, resolver.SegmentSave{Name: "s", Definition: json.RawMessage(`{"kind":"attribute","field":"attributes.age","op":">=","value":30}`)})
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Split(string(reply), `"`)[3]
	if s, _, ok := n.PublishedSegment(testAccount, id, 0); !ok || !s.Known {
		t.Fatalf("segment %s of %s is not published", id, reply)
	}
	if _, _, ok := n.PublishedSegment(otherAccount, id, 0); ok {
		t.Error("R2: the segment of another account is answered")
	}
	if list, _, ok := n.PublishedSegments(otherAccount, 0); !ok || len(list) != 0 {
		t.Errorf("R2: segments of another account: %v", list)
	}
	if _, _, ok := n.PublishedSegments(12345, 0); ok {
		t.Error("there is no such account")
	}
	if _, _, err := n.CountMembers(ctx, 12345, id, 0); !errors.Is(err, resolver.ErrNoAccount) {
		t.Errorf("no account: %v", err)
	}
	if _, known, err := n.CountMembers(ctx, testAccount, "seg_none", 0); known || err != nil {
		t.Errorf("no segment: known %t, %v", known, err)
	}
	// The record cannot be read: the partition fails.
	if _, err := f.log.Append(ctx, 0, []byte("no record at all, but long enough for an envelope")); err != nil {
		t.Fatal(err)
	}
	<-n.Failed()
	if _, _, ok := n.PublishedSegment(testAccount, id, 0); ok {
		t.Error("a partition that has failed answers")
	}
	if _, _, ok := n.PublishedSegments(testAccount, 0); ok {
		t.Error("a partition that has failed answers")
	}
	if _, _, err := n.CountMembers(ctx, testAccount, id, 0); !errors.Is(err, resolver.ErrUnavailable) {
		t.Errorf("a partition that has failed: %v", err)
	}
	_ = n.Close(ctx)
	if err := f.log.Close(); err != nil {
		t.Fatal(err)
	}
}
