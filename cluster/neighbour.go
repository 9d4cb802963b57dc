package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"syscall"
	"time"

	kgo "github.com/segmentio/kafka-go"
)

// Kafka waits for a session to end before it takes a silent node for dead, since
// silence may be anything. A refused connection is not: the machine is there and
// says that no process listens. So each node looks at the next one, and removes
// from the group one that was killed.
//
//   - D1: removed is who refuses connections several times in a row and took them
//     before, and no process more than once: an address that refuses though its
//     node lives does harm once at most, and that node enters again.
//   - D2: who does not answer at all, being frozen or cut off, is left to Kafka.
//
// Whether it was right decides nothing but who owns what: see the package's doc.
const (
	knockEvery   = 500 * time.Millisecond
	knockTimeout = time.Second
	// A connection must be refused so often, with these pauses.
	refusals     = 3
	refusedPause = 150 * time.Millisecond
)

// process is a life of a node.
type process struct {
	id      string
	sinceMs int64
}

// neighbour is the next of the nodes that share partitions, in order of ids.
func neighbour(all []candidate, own *claim) (next candidate, ok bool) {
	all = slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return c.to(own) != sharingClaim })
	slices.SortFunc(all, func(x, y candidate) int {
		switch after := x.ID > own.ID; {
		case after == (y.ID > own.ID):
			return byID(x, y)
		case after:
			return -1
		}
		return 1
	})
	if len(all) == 0 {
		return next, false
	}
	return all[0], true
}

// watch looks at the neighbour until ctx ends.
func (m *Member) watch(ctx context.Context) {
	var reached, removed process // the last ones
	for sleep(ctx, knockEvery) == nil {
		m.mu.Lock()
		all := m.mu.members
		m.mu.Unlock()
		m.balancer.mu.Lock()
		own := m.balancer.mu.claim
		m.balancer.mu.Unlock()
		next, ok := neighbour(all, &own)
		if !ok {
			continue
		}
		p := process{next.ID, next.SinceMs}
		if p == removed {
			continue
		}
		refused := 0
		for refused < refusals {
			err := m.opts.knock(ctx, next.Address)
			if err == nil {
				reached = p
			}
			if !errors.Is(err, syscall.ECONNREFUSED) {
				break
			}
			if refused++; sleep(ctx, refusedPause) != nil {
				return
			}
		}
		if refused < refusals || reached != p {
			continue
		}
		removed = p
		m.remove(ctx, next)
	}
}

// remove takes a node out of the group whose process is not there any more.
func (m *Member) remove(ctx context.Context, c candidate) {
	bounded, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := m.client.LeaveGroup(bounded, &kgo.LeaveGroupRequest{GroupID: Group(m.opts.Topic), Members: []kgo.LeaveGroupRequestMember{{ID: c.member}}})
	if ctx.Err() != nil {
		return
	}
	m.opts.Logger.Warn("a node refuses connections: its process has ended, and others take over", "node", c.Node.ID, "address", c.Address, "err", err)
	m.balancer.again()
	m.tell()
}

// knock tells whether somebody listens at an address.
func knock(ctx context.Context, address string) error {
	c, err := (&net.Dialer{Timeout: knockTimeout}).DialContext(ctx, "tcp", address)
	if err == nil {
		err = c.Close()
	}
	return err
}
