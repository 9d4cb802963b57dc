package cluster

import (
	"context"
	"errors"
	"net"
	"slices"
	"syscall"
	"time"

	kgo "github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/internal/pause"
)

// Kafka waits for a session to end before it takes a silent node for dead, since
// silence may be anything. A refused connection is not: the machine is there and
// says that no process listens. So each node looks at the next ones, and removes
// from the group those that were killed.
//
//   - D1: removed is who refuses connections several times in a row and took them
//     before, and no process more than once: an address that refuses though its
//     node runs does harm once at most, and that node enters again.
//   - D2: a node that does not answer at all, being frozen or cut off, is left to
//     Kafka.
//
// Whether it was right decides nothing but who owns what: see the package's doc.
const (
	knockEvery   = 500 * time.Millisecond
	knockTimeout = time.Second
	// A connection must be refused so often, with these pauses.
	refusals     = 3
	refusedPause = 150 * time.Millisecond
	// neighbours are how many a node looks at: so many, and no more, may be killed at
	// once without any of them being left to its session.
	neighbours = 2
)

// process is a life of a node.
type process struct {
	id      string
	sinceMs int64
}

// next are the nodes to look at, of those that share partitions: the next in order
// of ids.
func next(all []candidate, own *claim) []candidate {
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
	all = slices.CompactFunc(all, func(x, y candidate) bool { return x.ID == y.ID }) // processes of one node
	return all[:min(neighbours, len(all))]
}

// processes are the newest of some, maxProcesses at most.
type processes []process

const maxProcesses = 256

func (l *processes) add(p process) {
	if slices.Contains(*l, p) {
		return
	}
	if len(*l) == maxProcesses {
		*l = slices.Delete(*l, 0, 1)
	}
	*l = append(*l, p)
}

// watch looks at the neighbours until ctx ends.
func (m *Member) watch(ctx context.Context) {
	w := watcher{m: m}
	for pause.For(ctx, knockEvery) == nil {
		m.mu.Lock()
		all := m.mu.members
		m.mu.Unlock()
		m.balancer.mu.Lock()
		own := m.balancer.mu.claim
		m.balancer.mu.Unlock()
		for _, c := range next(all, &own) {
			if w.look(ctx, c); ctx.Err() != nil {
				return
			}
		}
	}
}

// watcher remembers which processes took a connection, and which it removed.
type watcher struct {
	m                *Member
	reached, removed processes
}

// look removes a node if its process is not there any more.
func (w *watcher) look(ctx context.Context, c candidate) {
	p := process{c.ID, c.SinceMs}
	if slices.Contains(w.removed, p) {
		return
	}
	for range refusals {
		err := w.m.opts.knock(ctx, c.Address)
		if err == nil {
			w.reached.add(p)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) || !slices.Contains(w.reached, p) || pause.For(ctx, refusedPause) != nil {
			return
		}
	}
	w.removed.add(p)
	w.m.remove(ctx, c)
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
	m.requestRejoin()
}

// knock reports whether an address has a listener.
func knock(ctx context.Context, address string) error {
	c, err := (&net.Dialer{Timeout: knockTimeout}).DialContext(ctx, "tcp", address)
	if err == nil {
		err = c.Close()
	}
	return err
}
