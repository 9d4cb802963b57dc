package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/musterhq/muster/bench/internal/child"
	"github.com/musterhq/muster/bench/internal/proxy"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/victim"
	"github.com/musterhq/muster/internal/pause"
)

// node is one muster serve, with the proxies that its connections go through.
type node struct {
	number  int
	binary  string
	dir     string
	address string   // it listens here
	args    []string // but those that change from start to start
	timeout time.Duration

	front  *proxy.Proxy // what others reach it through
	kafka  []*proxy.Proxy
	clicks *proxy.Proxy

	// life is held by who kills it or starts it again.
	life sync.Mutex
	mu   struct {
		sync.Mutex
		process *child.Process // nil while it is killed
		woken   bool           // it may end because another has taken over
	}
}

func (n *node) String() string { return fmt.Sprintf("node %d", n.number) }

// origin is where others reach it.
func (n *node) origin() string { return "http://" + n.front.Addr() }

func (n *node) credentials() string { return filepath.Join(n.dir, "credentials.json") }

func (n *node) spec(rng *rand.Rand) child.Spec {
	args := slices.Clone(n.args)
	if rng != nil {
		variants := victim.UsualVariants()
		args = append(args, variants[rng.IntN(len(variants))]...)
	}
	return child.Spec{
		Path: n.binary, Args: args, LogFile: filepath.Join(n.dir, "server.log"), ReadyTimeout: n.timeout,
		Ready: func(line string) bool { return strings.Contains(line, "ready") && strings.Contains(line, n.address) },
	}
}

// start starts it and waits until it serves.
func (n *node) start(ctx context.Context, rng *rand.Rand) error {
	p, _, err := child.Start(ctx, n.spec(rng))
	if err != nil {
		return fmt.Errorf("%v: %w", n, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.process, n.mu.woken = p, false
	return nil
}

// startAgain starts it as a supervisor does: a start fails while Kafka or
// ClickHouse is away, and is repeated.
func (n *node) startAgain(ctx context.Context, rng *rand.Rand) error {
	for deadline := time.Now().Add(n.timeout); ; pause.For(ctx, supervisorPause) {
		if err := n.start(ctx, rng); err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
	}
}

const supervisorPause = 300 * time.Millisecond

func (n *node) kill() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.process == nil {
		return nil
	}
	err := n.mu.process.Kill()
	n.mu.process = nil
	return err
}

func (n *node) freeze() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.woken = true
	return n.mu.process.Freeze()
}

func (n *node) thaw() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.process.Thaw()
}

// mayEnd notes that it may end by itself, because it cannot reach Kafka.
func (n *node) mayEnd() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.woken = true
}

// errTakenOver is what a node says that ends because another has taken over.
const errTakenOver = "another has taken over"

// revive starts it again if it has ended by right; any other end is an error. It
// leaves it alone while it is being killed, frozen or started.
func (n *node) revive(ctx context.Context) (ended bool, err error) {
	if !n.life.TryLock() {
		return false, nil
	}
	defer n.life.Unlock()
	n.mu.Lock()
	p, woken := n.mu.process, n.mu.woken
	n.mu.Unlock()
	if p == nil { // it could not be started, which is said elsewhere
		return false, nil
	}
	select {
	case <-p.Done():
	default:
		return false, nil
	}
	if tail := p.Tail(); !woken || !strings.Contains(tail, errTakenOver) {
		return true, fmt.Errorf("%v ended by itself; its last output:\n%s", n, tail)
	}
	return true, n.startAgain(ctx, nil)
}

// stop ends it as an operator would.
func (n *node) stop(grace time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.process == nil {
		return nil
	}
	p := n.mu.process
	n.mu.process = nil
	return p.Stop(grace)
}

func (n *node) proxies() []*proxy.Proxy { return append(slices.Clone(n.kafka), n.front, n.clicks) }

// close kills it and closes its proxies.
func (n *node) close() error {
	err := n.kill()
	for _, p := range n.proxies() {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	return err
}

func (n *node) readCredentials() (server.Credentials, error) {
	c, err := server.ReadCredentials(n.credentials())
	return c.At(n.origin()), err
}
