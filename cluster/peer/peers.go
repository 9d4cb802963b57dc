package peer

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/internal/histogram"
	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/resolver"
)

// Peers makes calls to the other nodes. It is safe for concurrent use.
type Peers struct {
	opts  Options
	conns conns                   // to the other nodes, kept for the next call
	node  atomic.Pointer[nodeBox] // this node's state; nil before Start
	// session is this process, calls counts the calls that it makes.
	session string
	calls   atomic.Uint64

	said atomic.Int64 // when a fault of the configuration was logged last, in Unix seconds

	// stop ends ctx, which Close does; done waits for the goroutines.
	stop context.CancelFunc
	ctx  context.Context
	done sync.WaitGroup

	// The calls made, by kind.
	forwarded, commands, asked *metrics.Counter
	// The calls that failed: no owner was there in time, or the node that was called
	// was not the owner.
	unreached, misdirected *metrics.Counter
	// waited is how long the calls waited that another node answered after a wait.
	waited *histogram.Histogram
}

type nodeBox struct{ Node }

// New returns the calls of a node; [Peers.Start] has to follow before the first.
func New(opts Options) (*Peers, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	var id [16]byte
	if _, err := io.ReadFull(o.Rand, id[:]); err != nil {
		return nil, fmt.Errorf("peer: source of randomness: %w", err)
	}
	p := &Peers{opts: o, conns: conns{max: o.Connections, tls: o.TLS}, session: hex.EncodeToString(id[:])}
	p.ctx, p.stop = context.WithCancel(context.Background())
	counter := func(result string) *metrics.Counter {
		return o.Metrics.NewCounter(fmt.Sprintf("muster_cluster_calls_total{call=%q}", result))
	}
	p.forwarded, p.commands, p.asked = counter("forward"), counter("command"), counter("ask")
	p.unreached = o.Metrics.NewCounter(`muster_cluster_calls_turned_away_total{reason="unreached"}`)
	p.misdirected = o.Metrics.NewCounter(`muster_cluster_calls_turned_away_total{reason="misdirected"}`)
	p.waited = histogram.New(o.Metrics, "muster_cluster_wait_seconds", "",
		50*time.Millisecond, 200*time.Millisecond, 500*time.Millisecond, time.Second, 2*time.Second, 5*time.Second, 10*time.Second)
	p.done.Go(p.forget)
	return p, nil
}

// Start says what this node owns.
func (p *Peers) Start(node Node) { p.node.Store(&nodeBox{node}) }

// Close cuts all connections; calls under way fail.
func (p *Peers) Close() {
	p.stop()
	p.conns.close()
	p.done.Wait()
}

// forget cuts the connections to nodes that have left: one that is frozen answers
// no request. One that has left in order may answer those it has for Options.Grace.
func (p *Peers) forget() {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		changed := p.opts.Table.Changed()
		live := map[string]bool{}
		for _, n := range p.opts.Table.Nodes() {
			live[n.Address] = true
		}
		if len(live) > 0 && p.conns.keep(live, p.opts.Now(), p.opts.Grace) { // nodes are not known at first
			again.Reset(p.opts.Grace/4 + time.Millisecond)
		}
		select {
		case <-changed:
		case <-again.C:
		case <-p.ctx.Done():
			return
		}
	}
}

// ErrNoOwner means that no node answered for a partition in time, and that
// nothing was done. It is a [resolver.ErrNotOwner].
var ErrNoOwner = fmt.Errorf("%w, and no other node does at present", resolver.ErrNotOwner)

// The pauses between two tries to reach an owner, growing.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 400 * time.Millisecond
)

// attempt is how a try to have an owner do something ended.
type attempt int

const (
	// over means it is done, or it is not known whether it was.
	over attempt = iota
	// again means that nothing was done and another node is to be tried, or the
	// same one later.
	again
)

// atOwner has the owner of a partition do something, as soon as there is one, and
// for as long as Options.Wait. The error is ErrNoOwner, or ctx's.
func (p *Peers) atOwner(ctx context.Context, partition int, here func() attempt, there func(addr string) attempt) error {
	node := p.node.Load()
	if node == nil {
		return ErrNoOwner
	}
	begun, monotonic := p.opts.Now(), time.Now() // the second for the limit: a clock may be set
	var limit <-chan time.Time                   // nil until the first try has failed: most calls need no timer
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		table, state := p.opts.Table.Changed(), node.Changed()
		if node.Owns(partition) {
			if here() == over {
				return nil
			}
		} else if owner, ok := p.opts.Table.Owner(partition); !ok {
			p.opts.Table.Refresh()
		} else if owner.ID != p.opts.Self {
			if there(owner.Address) == over {
				if limit != nil {
					p.waited.Observe(p.opts.Now().Sub(begun))
				}
				return nil
			}
			p.opts.Table.Refresh()
		}
		if limit == nil {
			limit = time.After(p.opts.Wait - time.Since(monotonic))
		}
		select {
		case <-table:
		case <-state:
		case <-time.After(wait):
		case <-limit:
			return fmt.Errorf("partition %d: %w", partition, ErrNoOwner)
		case <-ctx.Done():
			return fmt.Errorf("partition %d: %w: %w", partition, ErrNoOwner, ctx.Err())
		case <-p.ctx.Done():
			return fmt.Errorf("partition %d: %w: the service stops", partition, ErrNoOwner)
		}
		// A table that changes all the time must not be asked all the time.
		if pause.For(ctx, firstPause) != nil {
			return fmt.Errorf("partition %d: %w: %w", partition, ErrNoOwner, ctx.Err())
		}
	}
}

// turnedAway reports whether an answer, or its failing to come, means that nothing
// was done.
func (p *Peers) turnedAway(resp *fasthttp.Response, err error) bool {
	switch {
	case errors.Is(err, errNotReached):
		p.unreached.Inc()
		if errors.Is(err, errHandshake) && p.mayReport() {
			p.opts.Logger.Error("a node cannot be called over TLS: give all nodes of a cluster --tls-cert and --tls-key or none, and the same certificate or ones that the system trusts", "err", err)
		}
		return true
	case err == nil && resp.StatusCode() == http.StatusMisdirectedRequest && len(resp.Header.Peek(headerTurnedAway)) > 0:
		p.misdirected.Inc()
		return true
	}
	return false
}

// reportRefused reports that a node answered what it should not, once a minute.
func (p *Peers) reportRefused(addr string, status int) {
	if status != http.StatusNotFound {
		return // it is starting, or stops
	}
	if p.mayReport() {
		p.opts.Logger.Error("a node does not take this one for one of its cluster: give both the same secret, and set their clocks right", "node", addr)
	}
}

// mayReport reports whether a fault of the configuration may be logged now: once a
// minute.
func (p *Peers) mayReport() bool {
	now := p.opts.Now().Unix()
	last := p.said.Load()
	return now-last >= 60 && p.said.CompareAndSwap(last, now)
}
