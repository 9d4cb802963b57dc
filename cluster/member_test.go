package cluster

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/services"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire carries a member's connections and can be cut.
type wire struct {
	mu   sync.Mutex
	cut  bool
	open []net.Conn
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return nil, errors.New("the wire is cut")
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err == nil {
		w.open = append(w.open, c)
	}
	return c, err
}

func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	for _, c := range w.open {
		c.Close()
	}
	w.open = nil
}

// site is a broker that may be killed, or those that all tests share, and a topic
// on it.
type site struct {
	kafka  *services.KafkaCluster
	shared []string
	topic  string
	// partitions are those of the topic, 0 for 1; key is what the members share.
	partitions int
	key        string
	// cold members get nothing warm by themselves.
	cold bool
	// knock reports whether a node listens; nil for all do.
	knock func(id string) error
	// answers reports whether a process is alive; nil for none is.
	answers func(self string) bool
}

func (s *site) join(t *testing.T, id string, session time.Duration) (*Member, *wire, error) {
	t.Helper()
	w := new(wire)
	m, err := Join(t.Context(), Options{
		Brokers: s.brokers(), Topic: s.topic, Partitions: max(1, s.partitions), Node: Node{ID: id, Host: "host-" + id, Address: id + ":1"}, Key: s.key,
		SessionTimeout: session, HeartbeatInterval: session / 10, JoinTimeout: 30 * time.Second, dial: w.dial,
		knock: func(_ context.Context, address string) error {
			if s.knock == nil {
				return nil
			}
			return s.knock(strings.TrimSuffix(address, ":1"))
		},
		Self:    "http://" + id + ":1/" + id,
		answers: func(_ context.Context, self string) bool { return s.answers != nil && s.answers(self) },
		Logger:  slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err == nil {
		t.Cleanup(func() { m.Close() })
	}
	if err == nil && !s.cold {
		ctx, stop := context.WithCancel(context.Background())
		var warming sync.WaitGroup
		t.Cleanup(func() { stop(); warming.Wait() })
		warming.Go(func() {
			for ctx.Err() == nil {
				changed := m.Changed()
				m.Warmed(m.Planned())
				select {
				case <-changed:
				case <-ctx.Done():
				}
			}
		})
	}
	return m, w, err
}

func (s *site) brokers() []string {
	if s.kafka != nil {
		return s.kafka.Addrs()
	}
	return s.shared
}

func (s *site) mustJoin(t *testing.T, id string, session time.Duration) (*Member, *wire) {
	t.Helper()
	m, w, err := s.join(t, id, session)
	if err != nil {
		t.Fatal(err)
	}
	return m, w
}

func (s *site) refused(t *testing.T, id, owner string) {
	t.Helper()
	_, _, err := s.join(t, id, 3*time.Second)
	var owned *ForeignOwnerError
	if !errors.As(err, &owned) || owned.Owner.ID != owner || !strings.Contains(err.Error(), "host-"+owner) || owned.From == "" {
		t.Fatalf("%s joins while %s owns the topic: %v", id, owner, err)
	}
}

// TestOneOwner follows one topic through owners without a key that come, are cut
// off, are killed and leave, and a broker that is killed.
func TestOneOwner(t *testing.T) {
	t.Parallel()
	s := &site{kafka: services.OwnKafka(t, 1), topic: "owned"}
	if err := s.kafka.CreateTopic(t.Context(), s.topic, 1, 1); err != nil {
		t.Fatal(err)
	}
	const session = 2 * time.Second
	a, wireA := s.mustJoin(t, "a", session)
	s.refused(t, "b", "a")
	eventually.Holds(t, "a is confirmed after b was refused", func() bool { return a.Stats().Confirmed })

	// a is cut off for longer than its session: b waits for that, and takes over.
	wireA.set(true)
	b, wireB := s.mustJoin(t, "b", session)
	if a.Err() != nil {
		t.Errorf("a is lost before it can know: %v", a.Err())
	}
	wireA.set(false)
	select {
	case <-a.Lost():
	case <-time.After(20 * time.Second):
		t.Fatal("a came back and does not notice b")
	}
	if err := a.Err(); !strings.Contains(err.Error(), "host-b") {
		t.Errorf("a is lost: %v", err)
	}
	a.Close()
	eventually.Holds(t, "b is confirmed after a came back", func() bool { return b.Stats().Confirmed })
	if b.Err() != nil {
		t.Errorf("b: %v", b.Err())
	}

	// Cut off and no other member there: it continues.
	before := b.Stats().Generation
	wireB.set(true)
	time.Sleep(session + time.Second) // that it is cut off for longer than its session is what is tested
	wireB.set(false)
	eventually.Holds(t, "b is a member again", func() bool { s := b.Stats(); return s.Confirmed && s.Generation > before })

	// Kafka is away for longer than the session.
	if err := s.kafka.Kill(0); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "b notices that Kafka is away", func() bool { return !b.Stats().Confirmed })
	time.Sleep(session) // that Kafka is away for longer than the session is what is tested
	if err := s.kafka.Restart(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "b is a member after Kafka came back", func() bool { return b.Stats().Confirmed })
	if b.Err() != nil {
		t.Errorf("b is lost because Kafka was away: %v", b.Err())
	}
	s.refused(t, "c", "b")

	// A member that leaves makes room at once.
	b.Close()
	c, wireC := s.mustJoin(t, "c", 20*time.Second)

	// Killed and started again: its former self does not count.
	wireC.set(true)
	begun := time.Now()
	again, _ := s.mustJoin(t, "c", 20*time.Second)
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("a node that was killed took %v to come back, of a session of 20 s", took)
	}
	// That self was only cut off, which the lock on a node's data excludes: it
	// must not stay beside the new one.
	wireC.set(false)
	select {
	case <-c.Lost():
	case <-again.Lost():
		t.Error("the former self took over")
	case <-time.After(20 * time.Second):
		t.Error("the former self stays")
	}
}

// TestSeveralOwners follows six partitions through members that share a key: all
// start at once, one is cut off and comes back, one leaves, one is turned away.
func TestSeveralOwners(t *testing.T) {
	const session = 6 * time.Second
	t.Parallel()
	s := &site{shared: services.Kafka(t), topic: services.Topic(t, 6), partitions: 6, key: "k"}
	var starting sync.WaitGroup
	all, wires := map[string]*Member{}, map[string]*wire{}
	var mu sync.Mutex
	for _, id := range []string{"a", "b", "c"} {
		starting.Go(func() {
			m, w, err := s.join(t, id, session)
			mu.Lock()
			defer mu.Unlock()
			if all[id], wires[id] = m, w; err != nil {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	starting.Wait()
	if t.Failed() {
		return
	}
	// agree waits until the members own a number of partitions each, and know
	// who owns which.
	agree := func(what string, each int, ids ...string) map[int]string {
		t.Helper()
		owners := map[int]string{}
		eventually.Holds(t, what, func() bool {
			clear(owners)
			for _, id := range ids {
				list := all[id].Assigned()
				for _, p := range list {
					owners[p] = id
				}
				if len(list) != each {
					return false
				}
			}
			for _, id := range ids {
				for p, owner := range owners {
					if n, ok := all[id].Owner(p); !ok || n.ID != owner || n.Address != owner+":1" {
						return false
					}
				}
				if len(all[id].Nodes()) != len(ids) {
					return false
				}
			}
			return len(owners) == 6
		})
		return owners
	}
	first := agree("three nodes own two partitions each", 2, "a", "b", "c")

	// One is cut off: it keeps what it had; the others take that over once its
	// session is over, and keep theirs.
	wires["c"].set(true)
	second := agree("two nodes own three each", 3, "a", "b")
	for p, id := range first {
		if id != "c" && second[p] != id {
			t.Errorf("partition %d went from %s to %s, though %s runs", p, id, second[p], id)
		}
	}
	if n := len(all["c"].Assigned()); n != 2 || all["c"].Stats().Confirmed {
		t.Errorf("a node that is cut off has %d partitions, %+v", n, all["c"].Stats())
	}
	wires["c"].set(false)
	third := agree("three nodes own two each again", 2, "a", "b", "c")
	if err := all["c"].Err(); err != nil {
		t.Errorf("a node that came back is lost: %v", err)
	}

	// A change is signalled, and one that leaves makes room at once.
	changed := all["a"].Changed()
	begun := time.Now()
	leaving, cancel := context.WithTimeout(t.Context(), session)
	defer cancel()
	all["b"].Leave(leaving)
	for _, id := range []string{"a", "c"} {
		for p := range 6 {
			if n, ok := all[id].Owner(p); !ok || n.ID == "b" {
				t.Errorf("b has left in order, and %s takes %+v for the owner of partition %d", id, n, p)
			}
		}
	}
	agree("the other two own three each", 3, "a", "c")
	if took := time.Since(begun); took > session-time.Second {
		t.Errorf("took %v to take over from a node that left", took)
	}
	select {
	case <-changed:
	default:
		t.Errorf("no signal that the partitions %v are distributed again", third)
	}

	// A member with another key, or none, gets nothing and takes nothing away.
	for _, key := range []string{"", "other"} {
		x := *s
		x.key = key
		_, _, err := x.join(t, "x", session)
		var foreign *ForeignOwnerError
		if !errors.As(err, &foreign) {
			t.Errorf("with the key %q: %v", key, err)
		}
	}
	agree("the other two stay", 3, "a", "c")
}

// TestD1D2Killed: a node whose process was killed is given up at once, however
// long its session; one that is frozen, one that never took a connection and one
// that was given up once are left to Kafka.
func TestD1D2Killed(t *testing.T) {
	t.Parallel()
	const session = 20 * time.Second
	var mu sync.Mutex
	faults := map[string]error{"d": syscall.ECONNREFUSED} // it never listened
	set := func(id string, err error) {
		mu.Lock()
		defer mu.Unlock()
		faults[id] = err
	}
	s := &site{shared: services.Kafka(t), topic: services.Topic(t, 4), partitions: 4, key: "k"}
	s.knock = func(id string) error {
		mu.Lock()
		defer mu.Unlock()
		return faults[id]
	}
	all, wires := map[string]*Member{}, map[string]*wire{}
	for _, id := range []string{"a", "b", "c", "d"} {
		all[id], wires[id] = s.mustJoin(t, id, session)
	}
	each := func(what string, ids ...string) {
		t.Helper()
		eventually.Holds(t, what, func() bool {
			n := 0
			for _, id := range ids {
				if list := all[id].Assigned(); len(list) < 4/len(ids) || all[id].Stats().Nodes != len(ids) {
					return false
				} else {
					n += len(list)
				}
			}
			return n == 4
		})
	}
	lives := func(id string) string {
		all[id].mu.Lock()
		defer all[id].mu.Unlock()
		return all[id].mu.id
	}
	life := lives("d")
	each("four own one each", "a", "b", "c", "d")
	stays := func(what string, ids ...string) {
		t.Helper()
		time.Sleep(3 * knockEvery) // each has knocked at those that it looks at
		generation := all["a"].Stats().Generation
		time.Sleep(6 * knockEvery) // nothing may happen in a while
		if n := all["a"].Stats().Generation; n != generation {
			t.Errorf("D1, D2: %s, and generation %d became %d", what, generation, n)
		}
		each(what, ids...)
	}
	stays("d refuses and never did otherwise", "a", "b", "c", "d")
	if lives("d") != life {
		t.Error("D1: d never took a connection and was given up")
	}
	set("c", errors.New("i/o timeout")) // frozen, or behind a cut wire
	stays("c does not answer", "a", "b", "c", "d")

	wires["c"].set(true) // killed: not a word to Kafka
	set("c", syscall.ECONNREFUSED)
	begun := time.Now()
	each("three own it all", "a", "b", "d")
	if took := time.Since(begun); took > session/2 {
		t.Errorf("D1: it took %v to give up a node that was killed, of a session of %v", took, session)
	}

	// It runs after all, and refuses: it is a member again and stays one.
	wires["c"].set(false)
	each("c is there again", "a", "b", "c", "d")
	stays("c was given up once", "a", "b", "c", "d")
}

// TestNeighbours: each node is looked at by two others, whichever they are.
func TestNeighbours(t *testing.T) {
	all := []candidate{{named("b", 2, 0), "m1"}, {named("d", 9, 0), "m2"}, {named("a", 1, 0), "m3"}, {keyed("x", named("c", 0, 0)), "m4"}, {named("a", 0, 0), "m5"}}
	for own, want := range map[string]string{"a": "bd", "b": "da", "d": "ab"} {
		c := named(own, 1, 0)
		var ids string
		for _, x := range next(all, &c) {
			ids += x.ID
		}
		if ids != want {
			t.Errorf("%s looks at %s, want %s", own, ids, want)
		}
	}
	c := named("a", 1, 0)
	if list := next(all[3:], &c); len(list) > 0 {
		t.Errorf("a looks at %v", list)
	}
}

// TestD1TwoKilled: two that are killed at once are given up at once.
func TestD1TwoKilled(t *testing.T) {
	t.Parallel()
	const session = 20 * time.Second
	var killed atomic.Bool
	s := &site{shared: services.Kafka(t), topic: services.Topic(t, 4), partitions: 4, key: "k"}
	s.knock = func(id string) error {
		if killed.Load() && (id == "b" || id == "c") {
			return syscall.ECONNREFUSED
		}
		return nil
	}
	all, wires := map[string]*Member{}, map[string]*wire{}
	for _, id := range []string{"a", "b", "c", "d"} {
		all[id], wires[id] = s.mustJoin(t, id, session)
	}
	own := func(id string, n int) bool { return len(all[id].Assigned()) == n && all[id].Stats().Confirmed }
	eventually.Holds(t, "each owns one", func() bool { return own("a", 1) && own("b", 1) && own("c", 1) && own("d", 1) })
	time.Sleep(4 * knockEvery) // each has looked at its neighbours, of which nothing tells
	wires["b"].set(true)
	wires["c"].set(true)
	killed.Store(true)
	begun := time.Now()
	eventually.Holds(t, "two own two each", func() bool { return own("a", 2) && own("d", 2) })
	if took := time.Since(begun); took > session/2 {
		t.Errorf("D1: it took %v to give up two nodes that were killed, of a session of %v", took, session)
	}
}

// TestKnock: an address with a listener is told from one without.
func TestKnock(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := knock(t.Context(), l.Addr().String()); err != nil {
		t.Error(err)
	}
	l.Close()
	if err := knock(t.Context(), l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v", err)
	}
}

// TestH1H3Warm: what a member is to own stays with its owner until it is warm,
// partition by partition, and one that leaves keeps what it has as long as it may
// unless its next owner is warm.
func TestH1H3Warm(t *testing.T) {
	t.Parallel()
	s := &site{shared: services.Kafka(t), topic: services.Topic(t, 4), partitions: 4, key: "k", cold: true}
	a, _ := s.mustJoin(t, "a", 6*time.Second)
	b, _ := s.mustJoin(t, "b", 6*time.Second)
	own := func(what string, ofA, ofB, toB []int) {
		t.Helper()
		eventually.Holds(t, what, func() bool {
			return slices.Equal(a.Assigned(), ofA) && slices.Equal(b.Assigned(), ofB) && slices.Equal(b.Planned(), toB) && a.Stats().Confirmed && b.Stats().Confirmed
		})
	}
	own("b is to have two", []int{0, 1, 2, 3}, nil, []int{2, 3})
	generation := a.Stats().Generation
	b.Warmed([]int{3})
	own("b has one", []int{0, 1, 2}, []int{3}, []int{2})
	if n, _ := a.Owner(2); n.ID != "a" {
		t.Errorf("H1: %v owns a partition that no other has warm", n)
	}
	b.Warmed([]int{2})
	own("b has two", []int{0, 1}, []int{2, 3}, nil)
	b.Warmed(nil) // no news
	if n := a.Stats().Generation; n < generation+2 {
		t.Errorf("generation %d after %d", n, generation)
	}

	// a leaves: it keeps what b has not got warm for as long as it may.
	left := make(chan time.Duration, 1)
	leave := func(m *Member, within time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		begun := time.Now()
		go func() {
			defer cancel()
			m.Leave(ctx)
			left <- time.Since(begun)
		}()
	}
	leave(a, time.Minute)
	own("b is to have all", []int{0, 1}, []int{2, 3}, []int{0, 1})
	b.Warmed([]int{0})
	own("b has three", []int{1}, []int{0, 2, 3}, []int{1})
	b.Warmed([]int{1})
	eventually.Holds(t, "b has all", func() bool { return len(b.Assigned()) == 4 })
	if took := <-left; took > 30*time.Second {
		t.Errorf("a left after %v", took)
	}

	// H3: no member gets warm in time.
	c, _ := s.mustJoin(t, "c", 6*time.Second)
	eventually.Holds(t, "c is to have two", func() bool { return len(c.Planned()) == 2 && b.Stats().Nodes == 2 })
	leave(b, 4*time.Second)
	if took := <-left; took < 2*time.Second || took > 15*time.Second {
		t.Errorf("b left after %v, with 4 s to do so", took)
	}
	eventually.Holds(t, "c has all that b had", func() bool { return len(c.Assigned()) == 4 })

	// No other member is there, so there is no wait.
	leave(c, time.Minute)
	if took := <-left; took > 15*time.Second {
		t.Errorf("the last one left after %v", took)
	}
}

func TestOptions(t *testing.T) {
	good := Options{Brokers: []string{"x:1"}, Topic: "t", Partitions: 1, Node: Node{ID: "n"}}
	if _, err := good.withDefaults(); err != nil {
		t.Error(err)
	}
	for _, bad := range []func(*Options){
		func(o *Options) { o.Brokers = nil }, func(o *Options) { o.Topic = "" }, func(o *Options) { o.Partitions = 0 }, func(o *Options) { o.Node.ID = "" },
		func(o *Options) { o.SessionTimeout = time.Millisecond }, func(o *Options) { o.HeartbeatInterval = 5 * time.Second }, func(o *Options) { o.JoinTimeout = -1 },
		func(o *Options) { o.Key = strings.Repeat("x", 65) },
	} {
		o := good
		bad(&o)
		if _, err := o.withDefaults(); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestTwin: a process under the id of a member whose process answers gets nothing and
// takes nothing away; of one that does not answer it takes the place.
func TestTwin(t *testing.T) {
	t.Parallel()
	var asked, dead atomic.Bool
	s := &site{shared: services.Kafka(t), topic: services.Topic(t, 2), partitions: 2, key: "k"}
	s.answers = func(self string) bool { asked.Store(self == "http://a:1/a"); return !dead.Load() }
	a, _ := s.mustJoin(t, "a", 6*time.Second)
	if asked.Load() {
		t.Error("it is asked for a process that never was")
	}
	generation := a.Stats().Generation
	_, _, err := s.join(t, "a", 6*time.Second)
	var twin *TwinError
	if !errors.As(err, &twin) || twin.Twin.ID != "a" || !asked.Load() {
		t.Fatalf("a process on a copy of a's directory: %v", err)
	}
	if n := a.Stats(); n.Generation != generation || n.Assigned != 2 {
		t.Errorf("a is %+v, of generation %d before", n, generation)
	}
	dead.Store(true)
	again, _ := s.mustJoin(t, "a", 6*time.Second)
	if n := len(again.Assigned()); n != 2 {
		t.Errorf("a owns %d partitions after it died and was started again", n)
	}
	// It runs after all, frozen until now.
	select {
	case <-a.Lost():
	case <-again.Lost():
		t.Error("the former self took over")
	case <-time.After(40 * time.Second):
		t.Fatal("two processes of one id")
	}
	if err := a.Err(); !errors.As(err, &twin) {
		t.Errorf("a is lost: %v", err)
	}
}

// TestAnswers: a process is alive only if it says so itself, in time.
func TestAnswers(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	answer := func(status int) string {
		x := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(x.Close)
		return x.URL
	}
	for what, x := range map[string]struct {
		self string
		want bool
	}{
		"the process": {answer(204), true}, "another one": {answer(404), false}, "another server": {answer(200), false},
		"nobody": {"http://" + silent.Addr().String(), false}, "no address": {"x y", false},
	} {
		begun := time.Now()
		if have := answers(t.Context(), x.self); have != x.want || time.Since(begun) > askTimeout+time.Second {
			t.Errorf("%s: %v after %v", what, have, time.Since(begun))
		}
	}
}
