package node

import (
	"github.com/musterhq/muster/resolver/internal/checkpoint"

	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/internal/wake"
)

// partition runs one machine, from the first file opened to the last one closed.
type partition struct {
	// These do not change.
	node *Node
	id   int
	log  *slog.Logger
	ckpt checkpoint.Dir
	feed *feed.Feed

	// mu is the machine's. Apply, freezing and thawing lock it, views and the loops share
	// it. m is nil once the partition is closed, so nobody keeps it.
	mu struct {
		sync.RWMutex
		m *resolver.Machine
	}

	// How far it is. progress is signalled after each record, so whoever waits for
	// something takes the channel first and looks then.
	applied   atomic.Int64 // offset of the next record to apply
	appended  atomic.Int64 // offset behind the newest record this node appended
	progress  *wake.Broadcast
	pending   chan struct{} // the machine has tasks
	ended     chan struct{} // closed when nothing is applied any more
	currentMs atomic.Int64  // when the newest barrier began that was passed (Unix ms)

	// What requests read without waiting for the record that is being applied. published
	// and stats are written while mu is held.
	published resolver.Published
	apps      atomic.Pointer[map[uint64]resolver.App]
	writeKeys atomic.Pointer[map[[32]byte]resolver.SourceAccess] // by the SHA-256 of their text
	stats     atomic.Pointer[resolver.MachineStats]              // after the newest record

	// waiting are the requests whose records are not applied yet. Whoever takes a waiter
	// out of it, the goroutine that applies or the request that gives up, decides whose
	// its outcome is.
	waiting struct {
		sync.Mutex
		byID map[eventlog.RecordID]*waiter
		// enrolling is how many were answered but for the flows they begin.
		enrolling int
		refused   bool          // nobody may begin to wait
		idle      chan struct{} // closed when nobody waits any more; nil unless asked for
	}

	// lease is the right to act, which the log gives.
	lease lease

	// Checkpoints. The mutex is held from the freeze of one to its end.
	checkpoint struct {
		sync.Mutex
		due      chan struct{} // as soon as can be
		dueByLog chan struct{} // heeded after a pause
		finished *wake.Broadcast
		// held is what was frozen and could not be written: it is nowhere else, so it is
		// written before anything else is frozen.
		held *checkpoint.Frozen
		// urgent is how many wait for one, or need one: it is written without rests.
		urgent atomic.Int32
		// pruning is held while checkpoints are removed or linked.
		pruning sync.Mutex
	}
	behind         behind // how much log a start would replay
	lastCheckpoint atomic.Int64
	sharing        sharing
	// from is the manifest of the checkpoint that was loaded.
	from checkpoint.Manifest

	// Rows of history, and erasures, that are still to be seen to.
	rowsAgain   bool        // history may take rows of erased profiles again; set before the partition acts
	rebuilding  atomic.Bool // rows are being made anew
	eraseFailed atomic.Bool // the newest attempt to take the erased out of all files failed; a stop asks

	// The end. A release first stops acting, what the node does by itself, and leaves run
	// to those who still wait; stop ends run and with it everything. files outlives both
	// while a snapshot is read.
	run, acting      context.Context
	stop, stopActing context.CancelFunc
	done             sync.WaitGroup // the partition's goroutines
	released         atomic.Bool    // this node gave the partition up; set before left is closed
	discarded        atomic.Bool    // the end leaves nothing behind
	left             chan struct{}  // closed when the partition begins to end
	leaves           sync.Once
	files            openFiles
	closes           sync.Once
	closeErr         error

	// A failure: nothing is applied or acknowledged any more, and no checkpoint is
	// written. failure is set before failed is closed.
	failed   chan struct{}
	failure  error
	failOnce sync.Once

	// For metrics.
	applyNs      atomic.Int64
	checkpoints  atomic.Int64
	checkpointNs atomic.Int64
	freezeMaxNs  atomic.Int64
	repairs      atomic.Int64 // damaged checkpoints passed over, and rebuildings of history
}

// waiter is a request that waits for its record to be applied.
type waiter struct {
	out  *resolver.Outcome
	done chan struct{}
}

func newPartition(n *Node, id int) *partition {
	dir := n.opts.FS.PathJoin(n.opts.Dir, fmt.Sprintf("p%d", id))
	p := &partition{
		node:     n,
		id:       id,
		log:      n.opts.Logger.With("partition", id),
		ckpt:     checkpoint.Dir{FS: n.opts.FS, Root: dir, Log: n.opts.LogName, Fatal: n.opts.End},
		progress: wake.NewBroadcast(),
		failed:   make(chan struct{}),
		pending:  make(chan struct{}, 1),
		ended:    make(chan struct{}),
		left:     make(chan struct{}),
	}
	p.ckpt.Damaged, p.ckpt.Disk = p.failDamaged, state.NewDisk(p.log)
	p.apps.Store(&map[uint64]resolver.App{})
	p.writeKeys.Store(&map[[32]byte]resolver.SourceAccess{})
	p.stats.Store(&resolver.MachineStats{})
	p.waiting.byID = map[eventlog.RecordID]*waiter{}
	p.sharing.due = make(chan struct{}, 1)
	p.checkpoint.due = make(chan struct{}, 1)
	p.checkpoint.dueByLog = make(chan struct{}, 1)
	p.checkpoint.finished = wake.NewBroadcast()
	p.feed = feed.New(n.opts.Feed, id, n.opts.History, n.opts.FS, p.ckpt.Path(checkpoint.DirSpool), p.log)
	return p
}

// begin makes a loaded partition act: its state is brought to the end of the log,
// and the epoch begun.
func (p *partition) begin(ctx context.Context) error {
	_, end, err := p.node.opts.Log.Bounds(ctx, p.id)
	if err != nil {
		return err
	}
	if err := p.replay(ctx, end); err != nil {
		return err
	}
	if err := p.appendEpoch(ctx); err != nil {
		return err
	}
	p.startSharing(p.run, p.from)
	// These add records of their own, so they wait until the state is that of
	// the end of the log.
	p.done.Add(5)
	go p.rebuildLoop(p.acting)
	go p.continueLoop(p.run)
	go p.tickLoop(p.acting)
	go p.eraseLoop(p.acting)
	go p.buildLoop(p.acting)
	if p.node.emails != nil {
		p.done.Add(1)
		go p.releaseLoop(p.acting)
		if p.id == 0 {
			p.done.Add(1)
			go p.reconcileLoop(p.acting)
		}
	}
	if p.from.Next < end {
		// The next start need not replay all that again.
		p.requestCheckpoint()
	}
	return nil
}

// fail stops the partition for good: nothing is applied or acknowledged any
// more, and no checkpoint is written.
func (p *partition) fail(err error) {
	p.failOnce.Do(func() {
		p.failure = err
		close(p.failed)
		p.log.Error("stopped", "error", err)
		p.node.fail(err)
	})
}

// apply applies records as they become durable.
func (p *partition) apply(ctx context.Context, r eventlog.Reader) {
	defer p.done.Done()
	defer close(p.ended)
	defer r.Close()
	var out resolver.Outcome
	for {
		e, err := r.Next(ctx)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, eventlog.ErrClosed) {
				p.fail(fmt.Errorf("read the log: %w", err))
			}
			return
		}
		if err := p.throttle(ctx); err != nil {
			return
		}
		if err := p.applyOne(ctx, e, &out); err != nil {
			switch {
			case ctx.Err() != nil:
			case damage(err):
				p.failDamaged(err)
			default:
				p.fail(fmt.Errorf("record %d of partition %d cannot be applied: %w. %s", e.Offset, p.id, err, remedy(err)))
			}
			return
		}
	}
}

// throttle waits while the generation outgrows its bound because a checkpoint
// is still being written.
func (p *partition) throttle(ctx context.Context) error {
	for {
		finished := p.checkpoint.finished.Wait()
		size, lagging := p.generationBytes()
		if size > p.node.opts.GenerationBytes {
			p.requestCheckpoint()
		}
		// Records must be applied for the engine to catch up, and then a
		// checkpoint can be written.
		if size < 2*p.node.opts.GenerationBytes || lagging {
			return nil
		}
		select {
		case <-finished:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.failed:
			return p.failure
		}
	}
}

// generationBytes estimates the memory of what changed since the last
// checkpoint.
func (p *partition) generationBytes() (bytes int64, lagging bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.mu.m.GenerationBytes(), p.mu.m.Lagging()
}

func (p *partition) applyOne(ctx context.Context, e eventlog.Entry, out *resolver.Outcome) (err error) {
	env, _, err := eventlog.DecodeEnvelope(e.Data)
	if err != nil && !p.node.skipped(p.id, e.Offset) {
		return err
	}
	w := p.takeWaiter(env.ID)
	dst := out
	if w != nil {
		dst = w.out
	}
	begun := time.Now() // for the metric only
	rows, err := p.feed.Begin(ctx, e.Offset)
	if err != nil {
		return err
	}
	entries := len(rows.Transitions)
	p.mu.Lock()
	err = p.step(env, e, rows, dst)
	p.observe(p.mu.m)
	signals := p.mu.m.TakeSignals()
	p.mu.Unlock()
	if err != nil {
		// Whoever waits for the record is woken by the failure.
		p.feed.Abort()
		return err
	}
	p.node.transitions.publish(p.mu.m, rows.Transitions[entries:])
	caused := p.node.live.caused(p.mu.m, env.Account, rows.Transitions[entries:])
	p.feed.End(e.Offset)
	p.applyNs.Add(int64(time.Since(begun)))
	if signals.Accounts {
		p.publishApps()
	}
	if signals.Outbox {
		p.node.queued.Signal()
	}
	if signals.Campaigns {
		p.node.campaigns.Signal()
	}
	p.noteApplied(len(e.Data))
	p.applied.Store(e.Offset + 1)
	p.progress.Signal()
	if env.Kind == eventlog.KindEvents {
		p.node.live.publish(env, e.Data, dst, caused)
	}
	if erases(env, e.Data) {
		p.node.refused.forget(env.Account)
	}
	if w != nil {
		w.done <- struct{}{} // dst is the waiter's from here on
	}
	if signals.Pending {
		select {
		case p.pending <- struct{}{}:
		default:
		}
	}
	return nil
}
