package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/proxy"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/internal/pause"
)

// Node is one server of a [Cluster].
type Node struct {
	// Number counts the nodes from 0.
	Number int
	// Front is what others reach it through, Kafka what it reaches each broker
	// through, ClickHouse the same; nil where there is no proxy.
	Front      *proxy.Proxy
	Kafka      []*proxy.Proxy
	ClickHouse *proxy.Proxy
	// Life is held while the node is killed, frozen or started, where others may do
	// so too.
	Life sync.Mutex

	installation *server.Installation
	timeout      time.Duration // of a start and of a stop

	mu struct {
		sync.Mutex
		process *child.Process // nil while it does not run
		mayEnd  bool           // because another node may have taken over
	}
}

func (n *Node) String() string { return fmt.Sprintf("node %d", n.Number) }

// Address returns where the node itself listens, HOST:PORT.
func (n *Node) Address() string { return n.installation.Address() }

// advertised returns where others reach the node, HOST:PORT.
func (n *Node) advertised() string {
	if n.Front != nil {
		return n.Front.Addr()
	}
	return n.Address()
}

// Origin returns where others reach the node, http://HOST:PORT.
func (n *Node) Origin() string { return "http://" + n.advertised() }

// Credentials returns those of the first company, if this node made it.
func (n *Node) Credentials() (server.Credentials, error) {
	c, err := server.ReadCredentials(n.installation.CredentialsFile())
	return c.At(n.Origin()), err
}

// Start starts the node, with further arguments, and waits until it serves.
func (n *Node) Start(ctx context.Context, args ...string) error {
	i := *n.installation
	i.Args = append(slices.Clip(i.Args), args...)
	p, err := i.StartProcess(ctx, n.timeout)
	if err != nil {
		return fmt.Errorf("%v: %w", n, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.process, n.mu.mayEnd = p, false
	return nil
}

const supervisorPause = 300 * time.Millisecond

// StartAgain starts the node as a supervisor does: a start fails while Kafka or
// ClickHouse is away, and is repeated.
func (n *Node) StartAgain(ctx context.Context, args ...string) error {
	for deadline := time.Now().Add(n.timeout); ; pause.For(ctx, supervisorPause) {
		if err := n.Start(ctx, args...); err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

// take returns the process, nil if there is none; the node has none from now on.
func (n *Node) take() *child.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.mu.process
	n.mu.process = nil
	return p
}

// Kill kills the node with SIGKILL. It must not have ended by itself, unless it may.
func (n *Node) Kill() error {
	if _, err := n.ended(); err != nil {
		return err
	}
	if p := n.take(); p != nil {
		return p.Kill()
	}
	return nil
}

// Stop stops the node as an operator does.
func (n *Node) Stop() error {
	if p := n.take(); p != nil {
		if err := p.Stop(n.timeout); err != nil {
			return fmt.Errorf("%v: %w", n, err)
		}
	}
	return nil
}

// Freeze stops the node's time; it may end when it wakes.
func (n *Node) Freeze() error {
	n.MayEnd()
	return n.running().Freeze()
}

// Thaw ends Freeze.
func (n *Node) Thaw() error { return n.running().Thaw() }

// MayEnd notes that the node may end by itself, because it cannot reach Kafka.
func (n *Node) MayEnd() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.mayEnd = true
}

func (n *Node) running() *child.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.process
}

// takenOver is what a node says that ends because another has taken over.
const takenOver = "another has taken over"

// ended reports whether the node has ended by itself. The error says that it must
// not have.
func (n *Node) ended() (bool, error) {
	n.mu.Lock()
	p, mayEnd := n.mu.process, n.mu.mayEnd
	n.mu.Unlock()
	if p == nil { // it was killed, or it could not be started, which Start has said
		return false, nil
	}
	select {
	case <-p.Done():
	default:
		return false, nil
	}
	if tail := p.Tail(); !mayEnd || !strings.Contains(tail, takenOver) {
		return true, fmt.Errorf("%v: %w; its last output:\n%s", n, child.ErrExited, tail)
	}
	return true, nil
}

// Revive starts the node again if it has ended by right; any other end is an error.
// It leaves the node alone while it is being killed, frozen or started.
func (n *Node) Revive(ctx context.Context) (ended bool, err error) {
	if !n.Life.TryLock() {
		return false, nil
	}
	defer n.Life.Unlock()
	if ended, err = n.ended(); !ended || err != nil {
		return ended, err
	}
	return true, n.StartAgain(ctx)
}

// close kills the node and closes its proxies.
func (n *Node) close() (err error) {
	if p := n.take(); p != nil {
		err = p.Kill()
	}
	for _, p := range append(slices.Clone(n.Kafka), n.Front, n.ClickHouse) {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	return err
}

// Bounds of a question for metrics.
const (
	askTimeout = 10 * time.Second
	maxMetrics = 32 << 20
)

// Metric returns the values of a metric at the node, by partition.
func (n *Node) Metric(ctx context.Context, name string) (map[int]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	text, err := server.Get(ctx, n.Address(), "/metrics", maxMetrics)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", n, err)
	}
	byLabels, err := server.Metric(text, name)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", n, err)
	}
	out := map[int]float64{}
	for labels, value := range byLabels {
		p, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(labels, `partition="`), `"`))
		if err != nil {
			return nil, fmt.Errorf("%v: metric %s{%s}: %w", n, name, labels, err)
		}
		out[p] = value
	}
	return out, nil
}
