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
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/internal/wake"
	"github.com/musterhq/muster/resolver/node/live"
	"github.com/musterhq/muster/resolver/sources"
	"github.com/musterhq/muster/resolver/view"
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
	waits     atomic.Int64 // requests that wait for their record
	appended  atomic.Int64 // offset behind the newest record this node appended
	progress  *wake.Broadcast
	pending   chan struct{} // the machine has tasks
	ended     chan struct{} // closed when nothing is applied any more
	currentMs atomic.Int64  // when the newest barrier began that was passed (Unix ms)

	// What requests read without waiting for the record that is being applied. published
	// and stats are written while mu is held.
	published view.Published
	apps      atomic.Pointer[map[uint64]resolver.App]
	writeKeys atomic.Pointer[map[[32]byte]sources.Access] // by the SHA-256 of their text
	stats     atomic.Pointer[resolver.MachineStats]       // after the newest record

	// waiting are the requests whose records are not applied yet. Whoever takes a waiter
	// out of it, the goroutine that applies, the log that failed or the request that gives up,
	// decides whose its outcome is.
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
	// loadedTo is the end of the log when the partition began to load it.
	loadedTo int64

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

// waiter is a request that waits for its record to be applied. It is woken by Apply, or
// by the log if the record does not become durable.
type waiter struct {
	p    *partition
	id   eventlog.RecordID
	out  *resolver.Outcome
	err  error // set before done is sent to, by the log alone
	done chan struct{}
}

// AppendFailed implements [eventlog.Failer].
func (w *waiter) AppendFailed(err error) {
	// One that has given up is not used again, so id is that of the record.
	w.p.waiting.Lock()
	waits := w.p.waiting.byID[w.id] == w
	if waits {
		delete(w.p.waiting.byID, w.id)
		w.p.checkIdle()
	}
	w.p.waiting.Unlock()
	if waits {
		w.err = classify(err)
		w.done <- struct{}{}
	}
}

func newPartition(n *Node, id int) *partition {
	dir := checkpoint.Partition(n.opts.FS, n.opts.Dir, id)
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
	p.writeKeys.Store(&map[[32]byte]sources.Access{})
	p.stats.Store(&resolver.MachineStats{})
	p.waiting.byID = map[eventlog.RecordID]*waiter{}
	p.sharing.due = make(chan struct{}, 1)
	p.checkpoint.due = make(chan struct{}, 1)
	p.checkpoint.dueByLog = make(chan struct{}, 1)
	p.checkpoint.finished = wake.NewBroadcast()
	p.feed = feed.New(n.opts.Feed, id, n.opts.History, n.opts.FS, p.ckpt.Path(checkpoint.DirSpool), p.log)
	return p
}

// apply applies records as they become durable.
func (p *partition) apply(ctx context.Context, r eventlog.Reader) {
	defer p.done.Done()
	defer close(p.ended)
	defer r.Close()
	var w window
	w.reader, _ = r.(eventlog.Window)
	for {
		e, err := r.Next(ctx)
		for more := err == nil; more; {
			if err = p.throttle(ctx); err != nil {
				return
			}
			if e, more, err = p.applyWindow(ctx, &w, e); err != nil {
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
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, eventlog.ErrClosed) {
				p.fail(fmt.Errorf("read the log: %w", err))
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

// The bounds of a window: readers of the state wait while one is applied.
const (
	windowRecords = 64
	windowBytes   = 16 << 10
)

// window is records that are applied in one go: the locks are taken, and everybody is told,
// once for all of them. They are events that came with one commit and that nobody watches.
type window struct {
	reader  eventlog.Window  // nil: windows are of one record
	out     resolver.Outcome // of records nobody waits for
	waiters []*waiter
}

// applyWindow applies a record, and those that follow it as far as they are at hand and belong
// to a window. next is a record behind it, if more, or the one that cannot be applied.
func (p *partition) applyWindow(ctx context.Context, w *window, e eventlog.Entry) (next eventlog.Entry, more bool, err error) {
	env, _, err := eventlog.DecodeEnvelope(e.Data)
	if err != nil && !p.node.skipped(p.id, e.Offset) {
		return e, false, err
	}
	begun := time.Now() // for the metric only
	if err := p.feed.Begin(ctx); err != nil {
		return e, false, err
	}
	clear(w.waiters)
	w.waiters = w.waiters[:0]
	first, bytes, done := e.Offset, 0, e.Offset
	var rows *query.Batch
	var entries int
	var dst *resolver.Outcome
	p.mu.Lock()
	// Who watches is told of one record after the other. With the lock, for who begins to
	// watch transitions gets all from then on.
	alone := w.reader == nil || env.Kind != eventlog.KindEvents || p.node.live.Watchers()+p.node.transitions.Watchers() > 0
	for {
		rows = p.feed.Rows(e.Offset)
		entries = len(rows.Transitions)
		waits := p.takeWaiter(env.ID)
		dst = &w.out
		if waits != nil {
			dst = waits.out
		}
		if err = p.step(env, e, rows, dst); err != nil {
			break // whoever waits for the record is woken by the failure
		}
		if waits != nil {
			w.waiters = append(w.waiters, waits)
		}
		bytes += len(e.Data)
		done = e.Offset + 1
		if alone || done-first >= windowRecords || bytes >= windowBytes {
			break
		}
		following, ok := w.reader.NextAtHand()
		if !ok {
			break
		}
		later, _, fault := eventlog.DecodeEnvelope(following.Data)
		if fault != nil || later.Kind != eventlog.KindEvents {
			next, more = following, true
			break
		}
		e, env = following, later
	}
	p.observe(p.mu.m)
	signals := p.mu.m.TakeSignals()
	p.mu.Unlock()
	if err != nil {
		next, more = e, false
	}
	if done == first {
		p.feed.Abort()
		return next, more, err
	}
	var caused map[resolver.ProfileID][]live.Caused
	if alone {
		p.node.transitions.Publish(p.mu.m, rows.Transitions[entries:])
		caused = p.node.live.Caused(p.mu.m, env.Account, rows.Transitions[entries:])
	}
	p.feed.End(done - 1)
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
	if signals.InApp {
		p.node.inboxes.Signal()
	}
	p.noteApplied(bytes)
	p.applied.Store(done)
	p.progress.Signal()
	if alone && env.Kind == eventlog.KindEvents {
		p.node.live.Publish(env, e.Data, dst, caused)
	}
	if alone && erases(env, e.Data) {
		p.node.live.Forget(env.Account)
	}
	for _, waits := range w.waiters {
		waits.done <- struct{}{} // the outcome is the waiter's from here on
	}
	if signals.Pending {
		select {
		case p.pending <- struct{}{}:
		default:
		}
	}
	return next, more, err
}
