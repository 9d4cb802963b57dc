package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	kgo "github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/internal/pause"
)

const (
	// requestTimeout bounds one request to the coordinator.
	requestTimeout = 5 * time.Second
	// rejoinPause is between two tries to enter the group.
	rejoinPause = time.Second
	// closeTimeout bounds leaving the group.
	closeTimeout = 3 * time.Second
	// warmWait is how long what is warm waits for more.
	warmWait = 2 * time.Second
)

// ForeignOwnerError reports that the partitions belong to a node that does not share
// them with this one: its key is another, or one of both has none.
type ForeignOwnerError struct {
	Topic string
	// Owner is who owns them.
	Owner Node
	// From is where the owner is connected to Kafka from.
	From string
	// Session is after how long of silence a dead owner is given up.
	Session time.Duration
}

func (e *ForeignOwnerError) Error() string {
	from := ""
	if e.From != "" {
		from = ", connected to Kafka from " + e.From
	}
	return fmt.Sprintf("topic %s belongs to another node at present: %s%s", e.Topic, e.Owner, from)
}

// Member is this node's membership of the topic's group.
type Member struct {
	opts      Options
	balancer  *balancer
	group     *kgo.ConsumerGroup
	client    *kgo.Client
	transport *kgo.Transport
	joined    chan error // the outcome of the first generation
	lost      chan struct{}
	ask       chan struct{} // wakes the goroutine that follows the owners
	news      chan struct{} // there may be something that the group must learn
	done      sync.WaitGroup
	stop      context.CancelFunc
	closeOnce sync.Once

	mu struct {
		sync.Mutex
		lost       error // nil unless foreign nodes own the partitions, or a twin
		generation int32
		confirmed  bool   // until the generation ends
		rejoins    uint64 // generations after the first
		troubled   bool   // an error was logged, and no success since
		id         string // of this member in the group, of the generation
		assigned   []int
		planned    []int // to be this node's once it has them warm
		owners     owners
		members    []candidate   // as Kafka reported last
		more       *time.Timer   // announces what is warm
		changed    chan struct{} // closed at the next change of assigned or owners
		twinSince  time.Time     // when another process of this node was seen first; zero while none is there
	}
}

// Stats is a snapshot of a membership.
type Stats struct {
	// Generation is the group's, of the last time the partitions were assigned.
	Generation int32
	// Confirmed reports whether Kafka counts the node as a member at present, as
	// far as it knows.
	Confirmed bool
	// Rejoins counts how often the group was entered again.
	Rejoins uint64
	// Assigned is how many partitions are this node's, Planned how many more are
	// to be once they are warm, Nodes how many nodes there are, as far as it knows.
	Assigned, Planned, Nodes int
}

// Join enters the group and returns once Kafka has said which partitions are
// this node's, of which there may be none. That they belong to a foreign node is a
// [*ForeignOwnerError], that the process of a member with this node's id answers a
// [*TwinError]. A node that died without a word is waited for, for as long
// as its session lasts.
func Join(ctx context.Context, opts Options) (_ *Member, err error) {
	if opts, err = opts.withDefaults(); err != nil {
		return nil, err
	}
	m := &Member{opts: opts, balancer: &balancer{}, joined: make(chan error, 1), lost: make(chan struct{}), ask: make(chan struct{}, 1), news: make(chan struct{}, 1)}
	m.mu.changed = make(chan struct{})
	m.balancer.mu.claim = claim{Node: opts.Node, Self: opts.Self, Key: opts.Key, SinceMs: opts.Now().UnixMilli()}
	m.transport = &kgo.Transport{Dial: opts.dial, DialTimeout: requestTimeout, TLS: opts.TLS, SASL: opts.SASL, ClientID: "muster"}
	m.client = &kgo.Client{Addr: kgo.TCP(opts.Brokers...), Transport: m.transport, Timeout: requestTimeout}
	wait, cancel := context.WithTimeout(ctx, opts.JoinTimeout)
	defer cancel()
	former, err := m.formerSelves(wait)
	if err != nil {
		m.transport.CloseIdleConnections()
		return nil, fmt.Errorf("cluster: ask about group %s: %w", Group(opts.Topic), err)
	}
	if err := m.twin(wait, former); err != nil {
		m.transport.CloseIdleConnections()
		return nil, err
	}
	m.group, err = kgo.NewConsumerGroup(kgo.ConsumerGroupConfig{
		ID: Group(opts.Topic), Brokers: opts.Brokers, Topics: []string{opts.Topic}, GroupBalancers: []kgo.GroupBalancer{m.balancer},
		Dialer:         &kgo.Dialer{ClientID: "muster", Timeout: requestTimeout, DialFunc: opts.dial, TLS: opts.TLS, SASLMechanism: opts.SASL},
		SessionTimeout: opts.SessionTimeout, HeartbeatInterval: opts.HeartbeatInterval, RebalanceTimeout: opts.SessionTimeout,
		JoinGroupBackoff: rejoinPause, Timeout: requestTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	var run context.Context
	run, m.stop = context.WithCancel(context.Background())
	m.done.Go(func() { m.run(run) })
	m.done.Go(func() { m.follow(run) })
	m.done.Go(func() { m.watch(run) })
	if len(former) > 0 {
		m.dismiss(wait, former)
	}
	select {
	case err = <-m.joined:
	case <-wait.Done():
		err = fmt.Errorf("cluster: enter group %s: %w", Group(opts.Topic), wait.Err())
	}
	if err == nil {
		err = m.awaitOwners(wait)
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// awaitOwners waits until it is known who owns the partitions, if this node owns
// none: that may be a foreign node. A coordinator that does not answer in time is no
// reason to stay away.
func (m *Member) awaitOwners(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for {
		m.mu.Lock()
		known, changed := m.mu.owners.known(m.opts.Partitions) || len(m.mu.assigned) > 0, m.mu.changed
		m.mu.Unlock()
		if known {
			return nil
		}
		select {
		case <-changed:
		case <-m.lost:
			return m.Err()
		case <-ctx.Done():
			return nil
		}
	}
}

// Assigned are the partitions that are this node's, in order. A node that is cut
// off keeps what it had.
func (m *Member) Assigned() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.mu.assigned)
}

// Planned are the partitions, in order, that are to be this node's once it has
// them warm, see [Member.Warmed]. Until then their owners keep them.
func (m *Member) Planned() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.mu.planned)
}

// Warmed says which partitions that are not this node's it could take at once: it
// has their state and follows their log. Another one has the partitions
// distributed again.
//
// What is still planned is waited for a little, so that a node that joins moves
// its partitions in few generations of the group.
func (m *Member) Warmed(partitions []int) {
	if !m.balancer.warmed(slices.Clone(partitions)) {
		return
	}
	announce := func() {
		m.balancer.again()
		m.requestRejoin()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case !slices.ContainsFunc(m.mu.planned, func(p int) bool { return !slices.Contains(partitions, p) }):
		if m.mu.more != nil {
			m.mu.more.Stop() // it has nothing more to announce
			m.mu.more = nil
		}
		announce()
	case m.mu.more == nil:
		m.mu.more = time.AfterFunc(warmWait, func() {
			m.mu.Lock()
			m.mu.more = nil
			m.mu.Unlock()
			announce()
		})
	}
}

// requestRejoin has the group entered again if it must learn something.
func (m *Member) requestRejoin() {
	select {
	case m.news <- struct{}{}:
	default:
	}
}

// Changed is closed when other partitions are assigned or planned, or other nodes
// own them.
// It must be taken before what it is about is looked at.
func (m *Member) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.changed
}

// Lost is closed when foreign nodes own the partitions, or another process that has
// this node's id; [Member.Err] says who.
func (m *Member) Lost() <-chan struct{} { return m.lost }

// Err is why the node is lost, nil while it is not.
func (m *Member) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.lost
}

// Stats returns a snapshot.
func (m *Member) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Stats{
		Generation: m.mu.generation, Confirmed: m.mu.confirmed, Rejoins: m.mu.rejoins,
		Assigned: len(m.mu.assigned), Planned: len(m.mu.planned), Nodes: len(m.mu.owners.nodes),
	}
}

// handoverTime is how long the other nodes may need to learn of owners that Kafka
// has answered with already.
const handoverTime = 300 * time.Millisecond

// Leave hands over what this node owns, if there are others, and leaves the group.
// It returns once they know who owns what, or ctx ends: until then requests come
// here. A partition is kept until its next owner is warm, for at most three
// quarters of the time that ctx leaves.
func (m *Member) Leave(ctx context.Context) {
	others := m.Stats().Nodes > 1
	if others {
		m.handOver(ctx)
	}
	m.leave()
	for others && ctx.Err() == nil {
		g, err := m.describe(ctx)
		owned := 0
		for _, x := range g.Members {
			owned += len(partitionsOf(x, m.opts.Topic))
		}
		if err == nil && g.GroupState == groupStable && owned == m.opts.Partitions {
			pause.For(ctx, handoverTime) // it ends either way
			return
		}
		if err == nil && len(g.Members) == 0 || pause.For(ctx, pollEvery) != nil {
			return
		}
	}
}

// handOver waits until others own what this node did, or no other node is there.
func (m *Member) handOver(ctx context.Context) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)*3/4)
		defer cancel()
	}
	m.balancer.leaves()
	m.requestRejoin()
	for {
		m.mu.Lock()
		changed := m.mu.changed
		done := len(m.mu.assigned) == 0 || m.mu.owners.confirmed && !m.mu.owners.heirs
		m.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-m.lost:
			return
		case <-ctx.Done():
			m.opts.Logger.Warn("the other nodes could not load in time what this one leaves; requests wait until they have", "partitions", m.Assigned())
			return
		}
	}
}

// Close leaves the group, so that other nodes can take over at once. When Kafka
// does not answer it returns all the same; the session then runs out.
func (m *Member) Close() error {
	m.leave()
	m.transport.CloseIdleConnections()
	return nil
}

func (m *Member) leave() {
	m.closeOnce.Do(func() {
		m.mu.Lock()
		if m.mu.more != nil {
			m.mu.more.Stop()
		}
		m.mu.Unlock()
		m.stop()
		m.done.Wait()
		left := make(chan struct{})
		go func() {
			defer close(left)
			_ = m.group.Close() // returns no errors
			m.transport.CloseIdleConnections()
		}()
		select {
		case <-left:
		case <-time.After(closeTimeout):
			m.opts.Logger.Warn("Kafka did not answer in time that this node leaves; another can take over once its session has run out", "after", m.opts.SessionTimeout)
		}
	})
}

// run follows the generations until ctx ends.
func (m *Member) run(ctx context.Context) {
	first := true
	for {
		gen, err := m.group.Next(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, kgo.ErrGroupClosed):
			return
		case err != nil:
			if fatal := m.failed(err, first); fatal != nil {
				m.joined <- fatal
				return
			}
			continue
		}
		owns := []int{}
		for _, a := range gen.Assignments[m.opts.Topic] {
			owns = append(owns, a.ID)
		}
		slices.Sort(owns)
		m.balancer.own(gen.ID, owns)
		m.confirm(gen, owns, first)
		if first {
			m.joined <- nil
			first = false
		}
	}
}

// confirm notes what is this node's until the generation ends.
func (m *Member) confirm(gen *kgo.Generation, owns []int, first bool) {
	m.mu.Lock()
	m.mu.generation, m.mu.confirmed = gen.ID, true
	if !first {
		m.mu.rejoins++
	}
	troubled := m.mu.troubled
	m.mu.troubled = false
	before := m.mu.assigned
	m.mu.assigned, m.mu.id = owns, gen.MemberID
	m.mu.planned = slices.DeleteFunc(m.mu.planned, func(p int) bool { return slices.Contains(owns, p) })
	m.mu.owners.confirmed = false // they may be others now
	m.announce()
	m.mu.Unlock()
	if troubled || !slices.Equal(before, owns) {
		m.opts.Logger.Info("the partitions of the log are distributed", "group", gen.GroupID, "generation", gen.ID, "this_node", owns)
	}
	m.Refresh()
	gen.Start(func(ctx context.Context) {
		// The generation ends when this returns, and the group is entered again.
		for over := false; !over && !m.balancer.unsent(); {
			select {
			case <-m.news:
			case <-ctx.Done():
				over = true
			}
		}
		m.mu.Lock()
		if m.mu.generation == gen.ID {
			m.mu.confirmed = false
		}
		m.mu.Unlock()
	})
}

// announce reports that something changed. The lock is held.
func (m *Member) announce() {
	close(m.mu.changed)
	m.mu.changed = make(chan struct{})
}

// failed notes an error on the way into the group. Before the first generation
// it returns those that do not pass.
func (m *Member) failed(err error, first bool) error {
	group := Group(m.opts.Topic)
	if first {
		switch {
		case errors.Is(err, kgo.InvalidSessionTimeout):
			return fmt.Errorf("cluster: Kafka refuses a session timeout of %v: set group.min.session.timeout.ms below and group.max.session.timeout.ms above it on the brokers: %w", m.opts.SessionTimeout, err)
		case errors.Is(err, kgo.InconsistentGroupProtocol):
			return fmt.Errorf("cluster: group %s has members that are no nodes of this version; end those that use it: %w", group, err)
		case errors.Is(err, kgo.GroupAuthorizationFailed):
			return fmt.Errorf("cluster: the user may not read group %s; allow it (kafka-acls.sh --add --operation Read --group %s): %w", group, group, err)
		}
	}
	m.mu.Lock()
	troubled := m.mu.troubled
	m.mu.troubled = true
	m.mu.Unlock()
	if !troubled {
		m.opts.Logger.Warn("cannot enter the group of nodes, trying again; the node continues meanwhile", "group", group, "err", err)
	}
	return nil
}
