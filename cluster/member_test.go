package cluster

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

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
}

func (s *site) join(t *testing.T, id string, session time.Duration) (*Member, *wire, error) {
	t.Helper()
	w := new(wire)
	m, err := Join(t.Context(), Options{
		Brokers: s.brokers(), Topic: s.topic, Partitions: max(1, s.partitions), Node: Node{ID: id, Host: "host-" + id, Address: id + ":1"}, Key: s.key,
		SessionTimeout: session, HeartbeatInterval: session / 10, JoinTimeout: 30 * time.Second, dial: w.dial,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err == nil {
		t.Cleanup(func() { m.Close() })
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
	var owned *StrangerError
	if !errors.As(err, &owned) || owned.Owner.ID != owner || !strings.Contains(err.Error(), "host-"+owner) || owned.From == "" {
		t.Fatalf("%s joins while %s owns the topic: %v", id, owner, err)
	}
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestOneOwner follows one topic through owners without a key that come, are cut
// off, die and leave, and a broker that dies.
func TestOneOwner(t *testing.T) {
	t.Parallel()
	s := &site{kafka: services.OwnKafka(t, 1), topic: "owned"}
	if err := s.kafka.CreateTopic(t.Context(), s.topic, 1, 1); err != nil {
		t.Fatal(err)
	}
	const session = 2 * time.Second
	a, wireA := s.mustJoin(t, "a", session)
	s.refused(t, "b", "a")
	until(t, "a is confirmed after b was refused", func() bool { return a.Stats().Confirmed })

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
	until(t, "b is confirmed after a came back", func() bool { return b.Stats().Confirmed })
	if b.Err() != nil {
		t.Errorf("b: %v", b.Err())
	}

	// Cut off and nobody there: it goes on.
	before := b.Stats().Generation
	wireB.set(true)
	time.Sleep(session + time.Second)
	wireB.set(false)
	until(t, "b is a member again", func() bool { s := b.Stats(); return s.Confirmed && s.Generation > before })

	// Kafka is away for longer than the session.
	if err := s.kafka.Kill(0); err != nil {
		t.Fatal(err)
	}
	until(t, "b notices that Kafka is away", func() bool { return !b.Stats().Confirmed })
	time.Sleep(session)
	if err := s.kafka.Restart(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	until(t, "b is a member after Kafka came back", func() bool { return b.Stats().Confirmed })
	if b.Err() != nil {
		t.Errorf("b is lost because Kafka was away: %v", b.Err())
	}
	s.refused(t, "c", "b")

	// Who leaves makes room at once.
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
		until(t, what, func() bool {
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
			t.Errorf("partition %d went from %s to %s, though %s lives", p, id, second[p], id)
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

	// A change is told, and one that leaves makes room at once.
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
		t.Errorf("nobody was told that the partitions %v are distributed anew", third)
	}

	// Who has another key, or none, gets nothing and takes nothing away.
	for _, key := range []string{"", "other"} {
		x := *s
		x.key = key
		_, _, err := x.join(t, "x", session)
		var stranger *StrangerError
		if !errors.As(err, &stranger) {
			t.Errorf("with the key %q: %v", key, err)
		}
	}
	agree("the other two stay", 3, "a", "c")
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
