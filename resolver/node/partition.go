package node

import (
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
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/node/internal/sharing"
	"github.com/musterhq/muster/resolver/node/live"
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
	// it. m is nil once the partition is closed, so it is not kept.
	mu struct {
		sync.RWMutex
		m *resolver.Machine
	}

	position  position      // how far the log is applied
	requests  *requests     // that wait until their record is applied
	published published     // what requests read without a lock
	pending   chan struct{} // the machine has tasks
	lease     lease         // whether this node owns the partition, and may act for it

	loaded struct {
		from checkpoint.Manifest // of the checkpoint that was loaded
		to   int64               // the end of the log when the partition began to load it
	}
	checkpoint *checkpointing   // when the state is written to disk
	sharing    *sharing.Sharing // of checkpoints with other nodes
	history    historyRepair    // rebuilds rows that history has lost
	// eraseFailed says that the newest attempt to take the erased out of all files failed:
	// a stop does not wait for another one.
	eraseFailed atomic.Bool

	life   lifetime  // ends the goroutines
	files  openFiles // they outlive the partition while a snapshot is read
	failed *fatal    // nothing is applied or acknowledged any more, and no checkpoint is written
}

func newPartition(n *Node, id int) *partition {
	dir := checkpoint.Partition(n.opts.FS, n.opts.Dir, id)
	p := &partition{
		node:       n,
		id:         id,
		log:        n.opts.Logger.With("partition", id),
		ckpt:       checkpoint.Dir{FS: n.opts.FS, Root: dir, Log: n.opts.LogName, Fatal: n.opts.End},
		position:   newPosition(),
		requests:   newRequests(),
		pending:    make(chan struct{}, 1),
		checkpoint: newCheckpointing(),
		failed:     newFatal(),
	}
	p.ckpt.Damaged, p.ckpt.Disk = p.failDamaged, state.NewDisk(p.log)
	p.published.reset()
	p.lease.clustered = n.Clustered()
	p.life.left = make(chan struct{})
	p.sharing = sharing.New(n.opts.Shared, id, &p.ckpt, p.log)
	p.feed = feed.New(n.opts.Feed, id, n.opts.History, p.logStart, n.opts.Trimming, n.opts.FS, p.ckpt.Path(checkpoint.DirSpool), p.log)
	return p
}

// apply applies records as they become durable.
func (p *partition) apply(ctx context.Context, r eventlog.Reader) {
	defer close(p.position.ended)
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
				if ctx.Err() == nil {
					p.failRecord(e.Offset, err)
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
			p.checkpoint.request()
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
		case <-p.failed.Done():
			return p.failed.Err()
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

// window is records that are applied in one go: the locks are taken, and waiting requests are
// woken, once for all of them. They are events that came with one commit and have no watchers.
type window struct {
	reader  eventlog.Window  // nil: windows are of one record
	out     resolver.Outcome // of records that no request waits for
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
	// Watchers get one record after the other. This is decided under the lock: a new watcher
	// of transitions gets all from then on.
	alone := w.reader == nil || env.Kind != eventlog.KindEvents || p.node.live.Watchers()+p.node.transitions.Watchers() > 0
	for {
		rows = p.feed.Rows(e.Offset)
		entries = len(rows.Transitions)
		waits := p.requests.take(env.ID)
		dst = &w.out
		if waits != nil {
			dst = waits.out
		}
		if err = p.step(env, e, rows, dst); err != nil {
			p.failRecord(e.Offset, err) // under the lock: the state may be half changed
			break                       // what waits for the record is woken by the failure
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
	p.published.setStats(p.mu.m.Stats())
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
		p.node.transitions.Send(p.mu.m, rows.Transitions[entries:])
		caused = p.node.live.Caused(p.mu.m, env.Account, rows.Transitions[entries:])
	}
	p.feed.End(done - 1)
	p.position.applyNs.Add(int64(time.Since(begun)))
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
	p.checkpoint.noteApplied(bytes, p.node.opts.CheckpointLogBytes)
	p.position.advance(done)
	if alone && env.Kind == eventlog.KindEvents {
		p.node.live.Send(env, e.Data, dst, caused)
	}
	if alone && erases(env, e.Data) {
		p.node.live.Forget(env.Account)
	}
	for _, waits := range w.waiters {
		waits.done <- struct{}{} // the outcome is the waiter's from here on
	}
	if signals.Pending {
		poke(p.pending)
	}
	return next, more, err
}
