package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	kgo "github.com/segmentio/kafka-go"
)

const (
	// requestTimeout bounds one request to the coordinator.
	requestTimeout = 5 * time.Second
	// rejoinPause is between two tries to enter the group.
	rejoinPause = time.Second
	// closeTimeout bounds leaving the group.
	closeTimeout = 3 * time.Second
)

// OwnedError says that another node owns the partitions.
type OwnedError struct {
	Topic string
	// Owner is who owns them; its ID is empty when Kafka did not say in time.
	Owner Node
	// From is where the owner is connected to Kafka from.
	From string
	// Session is after how long of silence a dead owner is given up.
	Session time.Duration
}

func (e *OwnedError) Error() string {
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
	done      chan struct{}
	stop      context.CancelFunc
	closeOnce sync.Once

	mu struct {
		sync.Mutex
		lost       error
		generation int32
		confirmed  bool
		rejoins    uint64
		troubled   bool // an error was logged, and no success since
	}
}

// Stats is a snapshot of a membership.
type Stats struct {
	// Generation is the group's, of the last time the partitions were assigned.
	Generation int32
	// Confirmed tells whether Kafka counts the node as a member at present, as
	// far as it knows.
	Confirmed bool
	// Rejoins counts how often the group was entered again.
	Rejoins uint64
}

// Join enters the group and returns once Kafka has said that all partitions are
// this node's. That they are another's is an [*OwnedError]. A node that died
// without a word is waited for, for as long as its session lasts.
func Join(ctx context.Context, opts Options) (_ *Member, err error) {
	if opts, err = opts.withDefaults(); err != nil {
		return nil, err
	}
	m := &Member{opts: opts, balancer: &balancer{}, joined: make(chan error, 1), lost: make(chan struct{}), done: make(chan struct{})}
	m.balancer.mu.claim = claim{Node: opts.Node, SinceMs: opts.Now().UnixMilli()}
	m.transport = &kgo.Transport{Dial: opts.dial, DialTimeout: requestTimeout, TLS: opts.TLS, SASL: opts.SASL, ClientID: "muster"}
	m.client = &kgo.Client{Addr: kgo.TCP(opts.Brokers...), Transport: m.transport, Timeout: requestTimeout}
	wait, cancel := context.WithTimeout(ctx, opts.JoinTimeout)
	defer cancel()
	former, err := m.formerSelves(wait)
	if err != nil {
		m.transport.CloseIdleConnections()
		return nil, fmt.Errorf("cluster: ask about group %s: %w", Group(opts.Topic), err)
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
	go m.run(run)
	if len(former) > 0 {
		m.dismiss(wait, former)
	}
	select {
	case err = <-m.joined:
	case <-wait.Done():
		err = fmt.Errorf("cluster: enter group %s: %w", Group(opts.Topic), wait.Err())
		if trouble := m.Err(); trouble != nil {
			err = trouble
		}
	}
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Lost is closed when another node owns the partitions; [Member.Err] says which.
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
	return Stats{Generation: m.mu.generation, Confirmed: m.mu.confirmed, Rejoins: m.mu.rejoins}
}

// Close leaves the group, so that another node can take over at once. When
// Kafka does not answer it returns all the same; the session then runs out.
func (m *Member) Close() error {
	m.closeOnce.Do(func() {
		m.stop()
		<-m.done
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
	return nil
}

// run follows the generations until the node is lost or told to stop.
func (m *Member) run(ctx context.Context) {
	defer close(m.done)
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
		var owns []int
		for _, a := range gen.Assignments[m.opts.Topic] {
			owns = append(owns, a.ID)
		}
		slices.Sort(owns)
		if len(owns) < m.opts.Partitions {
			err := m.owner(ctx)
			if first {
				m.joined <- err
				return
			}
			m.mu.Lock()
			m.mu.lost, m.mu.confirmed = err, false
			m.mu.Unlock()
			close(m.lost)
			return
		}
		m.balancer.own(gen.ID, owns)
		m.confirm(gen, first)
		if first {
			m.joined <- nil
			first = false
		}
	}
}

// confirm notes that the partitions are this node's until the generation ends.
func (m *Member) confirm(gen *kgo.Generation, first bool) {
	m.mu.Lock()
	m.mu.generation, m.mu.confirmed = gen.ID, true
	if !first {
		m.mu.rejoins++
	}
	troubled := m.mu.troubled
	m.mu.troubled = false
	m.mu.Unlock()
	if troubled {
		m.opts.Logger.Info("this node is a member of the group again and still owns the log", "group", gen.GroupID, "generation", gen.ID)
	}
	gen.Start(func(ctx context.Context) {
		<-ctx.Done()
		m.mu.Lock()
		if m.mu.generation == gen.ID {
			m.mu.confirmed = false
		}
		m.mu.Unlock()
	})
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
		m.opts.Logger.Warn("cannot enter the group of nodes, trying again; the node goes on meanwhile", "group", group, "err", err)
	}
	return nil
}
