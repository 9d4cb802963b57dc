package cluster

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	kgo "github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/internal/pause"
)

const (
	// askEvery is between questions about owners while they are not known for
	// long, askAgain between those that a caller has asked for.
	askEvery = time.Second
	askAgain = 100 * time.Millisecond
)

// owners are the nodes of the group and what they own, as Kafka reported last. While
// partitions are being distributed it does not answer, and the former owners continue
// answering: so the last answer stays until the next.
type owners struct {
	nodes []Node
	of    map[int]Node
	// confirmed is false from a new generation on, until Kafka has answered with it.
	confirmed bool
	// heirs reports whether other nodes may own this one's partitions and are not
	// about to go.
	heirs bool
}

func (o *owners) known(partitions int) bool { return o.confirmed && len(o.of) == partitions }

// Owner is the node that owns a partition, as far as this one knows.
func (m *Member) Owner(partition int) (Node, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.mu.owners.of[partition]
	return n, ok
}

// Nodes are all nodes of the group, this one among them, as far as it knows.
func (m *Member) Nodes() []Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.owners.nodes
}

// Refresh has Kafka asked again for the owners: a node turned out not to be the
// owner.
func (m *Member) Refresh() {
	select {
	case m.ask <- struct{}{}:
	default:
	}
}

// follow asks who owns what: at each generation, when asked to, and once a second
// while it is not known.
func (m *Member) follow(ctx context.Context) {
	timer := time.NewTimer(askEvery)
	defer timer.Stop()
	for {
		select {
		case <-m.ask:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		known := m.learn(ctx)
		// Kafka answers with the new owners shortly after a generation begins.
		for range askEvery / pollEvery {
			if known || pause.For(ctx, pollEvery) != nil {
				break
			}
			known = m.learn(ctx)
		}
		if !known {
			timer.Reset(askEvery)
		}
		if pause.For(ctx, askAgain) != nil {
			return
		}
	}
}

// learn asks once and notes the answer; it reports whether all partitions have
// an owner, and no other member has this node's id.
func (m *Member) learn(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	g, err := m.describe(ctx)
	if err != nil || g.GroupState != groupStable {
		return false
	}
	next := owners{of: map[int]Node{}, confirmed: true}
	var foreign, replaced error
	twin := false
	var all []candidate
	m.balancer.mu.Lock()
	own := m.balancer.mu.claim
	m.balancer.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, x := range g.Members {
		c := decodeClaim(x.MemberMetadata.UserData)
		if c.ID == "" {
			continue
		}
		next.nodes = append(next.nodes, c.Node)
		all = append(all, candidate{c, x.MemberID})
		next.heirs = next.heirs || c.to(&own) == sharingClaim && !c.Leaving
		kin := c.to(&own)
		if kin == twinClaim {
			twin = true
			// One of both has to go: the older one, whose place the other took.
			if m.hadTwin() && own.SinceMs < c.SinceMs {
				replaced = &TwinError{c.Node}
			}
		}
		for _, p := range partitionsOf(x, m.opts.Topic) {
			next.of[p] = c.Node
			if kin == foreignClaim {
				foreign = m.foreign(c.Node, x)
			}
		}
	}
	if !twin {
		m.mu.twinSince = time.Time{}
	}
	if len(m.mu.assigned) > 0 {
		foreign = nil // it is this node's until the group says otherwise
	}
	if lost := cmp.Or(replaced, foreign); lost != nil && m.mu.lost == nil {
		m.mu.lost, m.mu.confirmed = lost, false
		close(m.lost)
	}
	m.mu.owners = next
	m.mu.members, m.mu.planned = all, m.plan(all)
	m.announce()
	return next.known(m.opts.Partitions) && !twin
}

// foreign is the error of a node that owns partitions which it does not share with this one.
// It may have this node's id: without a cluster secret a copy of this directory is foreign, too.
func (m *Member) foreign(owner Node, x kgo.DescribeGroupsResponseMember) error {
	if owner.ID == m.opts.Node.ID {
		return &TwinError{owner}
	}
	return &ForeignOwnerError{Topic: m.opts.Topic, Session: m.opts.SessionTimeout, Owner: owner, From: strings.TrimPrefix(x.ClientHost, "/")}
}

// plan is what is to be this member's, as the distributing member has planned it:
// from the same claims. The lock is held.
func (m *Member) plan(all []candidate) (out []int) {
	var partitions []kgo.Partition
	for p := range m.opts.Partitions {
		partitions = append(partitions, kgo.Partition{Topic: m.opts.Topic, ID: p})
	}
	for _, p := range distribute(all, partitions).planned[m.mu.id] {
		out = append(out, p.ID)
	}
	slices.Sort(out)
	return out
}

// hadTwin notes that a member is under this node's id, and reports whether that has
// been so for longer than the session of a process lasts that died. The lock is
// held.
func (m *Member) hadTwin() bool {
	now := m.opts.Now()
	if m.mu.twinSince.IsZero() {
		m.mu.twinSince = now
	}
	return now.Sub(m.mu.twinSince) > 2*m.opts.SessionTimeout
}

func partitionsOf(x kgo.DescribeGroupsResponseMember, topic string) (out []int) {
	for _, t := range x.MemberAssignments.Topics {
		if t.Topic == topic {
			out = append(out, t.Partitions...)
		}
	}
	return out
}
