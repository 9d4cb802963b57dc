package node

import (
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/resolver/internal/checkpoint"

	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/state"
)

// step applies one record and publishes what it changed. A panic is an error like any other: it stops the
// partition and names the record.
func (p *partition) step(env eventlog.Envelope, e eventlog.Entry, rows *query.Batch, out *resolver.Outcome) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panics.Wrap(r)
		}
	}()
	if p.node.skipped(p.id, e.Offset) {
		p.log.Warn("passing over a record, as told", "offset", e.Offset)
		out.Reset(e.Offset)
		out.Refusal = &resolver.Refusal{Code: "conflict", Message: "the record is passed over"}
		return p.mu.m.Skip(e.Offset)
	}
	if err := p.mu.m.Apply(e.Offset, e.Data, rows, out); err != nil {
		return err
	}
	p.mu.m.PublishRecord(&p.published, env)
	p.noteEpoch(p.mu.m, env.ID)
	return nil
}

// observe publishes the machine's numbers for metrics. The lock is held.
func (p *partition) observe(m *resolver.Machine) {
	s := m.Stats()
	p.stats.Store(&s)
}

var waiters = sync.Pool{New: func() any { return &waiter{done: make(chan struct{}, 1)} }}

// takeWaiter removes and returns the waiter of a record, nil if nobody waits
// here. From then on the waiter's outcome is written to.
func (p *partition) takeWaiter(id eventlog.RecordID) *waiter {
	p.waiting.Lock()
	defer p.waiting.Unlock()
	w := p.waiting.byID[id]
	if w != nil {
		delete(p.waiting.byID, id)
		p.checkIdle()
	}
	return w
}

// maxIdempotencyKeys bounds the keys held by a partition. The bound is judged
// before a record is stored, not by Apply: how many expired keys are still held
// depends on checkpoints, and Apply may not.
const maxIdempotencyKeys = 500_000_000

// submit appends the record and waits until it is applied.
func (p *partition) submit(ctx context.Context, env eventlog.Envelope, rec []byte, out *resolver.Outcome) error {
	select {
	case <-p.failed:
		return fmt.Errorf("%w: %w", resolver.ErrUnavailable, p.failure)
	default:
	}
	// Of its own records the node knows when they are applied, not when they are stored.
	if max(p.appended.Load()-p.applied.Load(), p.waits.Load()) > p.node.opts.MaxBacklog {
		return fmt.Errorf("%w: %d records are waiting to be applied", resolver.ErrOverloaded, p.node.opts.MaxBacklog)
	}
	stats := p.stats.Load()
	if env.Kind == eventlog.KindEvents && stats.IdempotencyKeys > maxIdempotencyKeys {
		return fmt.Errorf("%w: %d idempotency keys are held, the most there can be; shorten idempotency_hours", resolver.ErrOverloaded, maxIdempotencyKeys)
	}
	if (env.Kind == eventlog.KindEvents || env.Kind == eventlog.KindImport) && stats.FlowsWaiting > maxWaitingEvents {
		return fmt.Errorf("%w: %d events wait for their people to be enrolled in flows", resolver.ErrOverloaded, maxWaitingEvents)
	}
	w := waiters.Get().(*waiter)
	w.p, w.id, w.out, w.err = p, env.ID, out, nil
	p.waiting.Lock()
	if p.waiting.refused && env.Kind != eventlog.KindContinue { // those who wait may need what continues
		p.waiting.Unlock()
		waiters.Put(w)
		return p.Gone()
	}
	p.waiting.byID[env.ID] = w
	p.waiting.Unlock()

	p.waits.Add(1)
	defer p.waits.Add(-1)
	var offset int64
	var err error
	notifier, once := p.node.opts.Log.(eventlog.Notifier)
	if !once {
		offset, err = p.node.opts.Log.Append(ctx, p.id, rec)
	} else if err = ctx.Err(); err == nil {
		offset, err = notifier.AppendThen(p.id, rec, w)
	}
	stored := err == nil
	if stored {
		if !once {
			p.noteAppended(offset)
		}
		select {
		case <-w.done:
			if err = w.err; err != nil {
				waiters.Put(w)
				return err
			}
			waiters.Put(w)
			return p.waitEnrolled(ctx, env, out)
		case <-ctx.Done():
			err = fmt.Errorf("%w: the record is not applied yet, but may be stored: %w", resolver.ErrUnavailable, ctx.Err())
		case <-p.ended:
			err = p.stopped("the record is not applied yet, but may be stored")
		case <-p.failed:
			err = fmt.Errorf("%w: %w", resolver.ErrUnavailable, p.failure)
		}
	} else {
		err = classify(err)
	}
	if p.takeWaiter(env.ID) != nil {
		if !once || !stored {
			waiters.Put(w)
			return err
		}
		// The log may still tell w, so it is nobody else's.
		p.noteAppended(offset)
		return err
	}
	// The record is being applied right now and out is being written to, or the log is
	// telling of its failure.
	select {
	case <-w.done:
	case <-p.ended:
		select {
		case <-w.done:
		default:
			return err
		}
	}
	err = w.err
	waiters.Put(w)
	return err
}

// noteAppended notes that the log has got a record of this node's.
func (p *partition) noteAppended(offset int64) {
	for {
		have := p.appended.Load()
		if have > offset || p.appended.CompareAndSwap(have, offset+1) {
			return
		}
	}
}

// The bounds on enrolments that found no room in their record. They are the
// node's, no part of the rules.
const (
	// maxWaitingEvents is how many events of a partition may wait for those they
	// enrol, before further ones are refused.
	maxWaitingEvents = 100_000
	// enrolledWait is how long an answer waits for what its record enrols. After
	// that it is given, and the rest is enrolled as soon as it can be.
	enrolledWait = 30 * time.Second
)

// waitEnrolled waits until those are enrolled whom a record has put into the queue,
// so that an event is acknowledged after the ways it begins; not for longer than
// the caller waits, or enrolledWait.
func (p *partition) waitEnrolled(ctx context.Context, env eventlog.Envelope, out *resolver.Outcome) error {
	if !out.Enrols() || env.Kind == eventlog.KindTick || env.Kind == eventlog.KindContinue {
		return nil
	}
	p.waiting.Lock()
	p.waiting.enrolling++
	p.waiting.Unlock()
	defer func() {
		p.waiting.Lock()
		p.waiting.enrolling--
		p.checkIdle()
		p.waiting.Unlock()
	}()
	limit := time.NewTimer(enrolledWait)
	defer limit.Stop()
	for {
		changed := p.progress.Wait()
		p.mu.RLock()
		closed := p.mu.m == nil
		done := !closed && p.mu.m.Enrolled(env.Account, out)
		p.mu.RUnlock()
		if done {
			return nil
		}
		if closed {
			return p.stopped("the record is stored and its flows are not begun yet")
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		case <-limit.C:
			return nil
		case <-p.ended:
			return p.stopped("the record is stored and its flows are not begun yet")
		case <-p.failed:
			return fmt.Errorf("%w: %w", resolver.ErrUnavailable, p.failure)
		}
	}
}

// classify turns the log's errors into those of Submit.
func classify(err error) error {
	switch {
	case errors.Is(err, eventlog.ErrQueueFull), errors.Is(err, eventlog.ErrNoSpace):
		return fmt.Errorf("%w: %w", resolver.ErrOverloaded, err)
	case errors.Is(err, eventlog.ErrTooLarge):
		return err
	}
	return fmt.Errorf("%w: %w", resolver.ErrUnavailable, err)
}

// waitApplied waits until all records below the offset are applied.
func (p *partition) waitApplied(ctx context.Context, offset int64) error {
	for p.applied.Load() < offset {
		changed := p.progress.Wait()
		if p.applied.Load() >= offset {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.ended:
			if p.applied.Load() >= offset {
				return nil
			}
			select {
			case <-p.failed: // before it ended
				return fmt.Errorf("%w: %w", resolver.ErrUnavailable, p.failure)
			default:
			}
			return p.Gone()
		case <-p.failed:
			return fmt.Errorf("%w: %w", resolver.ErrUnavailable, p.failure)
		}
	}
	return nil
}

// requestCheckpoint asks for a checkpoint of at least what is applied now. It is not
// lost while another one is being written, which may have begun too early, or end
// without having written anything.
func (p *partition) requestCheckpoint() {
	select {
	case p.checkpoint.due <- struct{}{}:
	default:
	}
}

// checkpointLoop writes checkpoints when the generation is large or old, or much log
// came since the last one. What is due by the log alone waits for a pause after the
// checkpoint before.
func (p *partition) checkpointLoop(ctx context.Context) {
	defer p.done.Done()
	var rested time.Duration
	rests := checkpoint.Rests{Budget: p.node.opts.CheckpointInterval / 3, Sleep: func(d time.Duration) {
		begun := time.Now()
		p.throttleSleep(ctx, d)
		rested += time.Since(begun)
	}}
	t := time.NewTicker(p.node.opts.CheckpointInterval)
	defer t.Stop()
	between := time.NewTimer(leastBetween)
	defer between.Stop()
	var dueByLog <-chan struct{} // nil during the pause
	wait := time.Duration(0)     // after an attempt that found the disk full
	for {
		publish := true
		select {
		case <-p.checkpoint.due:
		case <-t.C:
		case <-between.C:
			dueByLog = p.checkpoint.dueByLog
			continue
		case <-dueByLog:
			if !p.behind.due(p.node.opts.CheckpointLogBytes) {
				continue // another one came in between
			}
			publish = false
		case <-ctx.Done():
			return
		case <-p.failed:
			return
		}
		begun := time.Now() // it is the processor's time that counts
		rested = 0
		err := p.writeCheckpointAt(&rests, publish)
		dueByLog = nil
		between.Reset(max(leastBetween, time.Since(begun)-rested))
		switch {
		case errors.Is(err, resolver.ErrLagging):
			// Continue records are on their way; the next one asks again.
		case state.IsFull(err):
			wait = min(max(2*wait, time.Second), p.node.opts.CheckpointInterval)
			p.pause(ctx, wait)
			p.requestCheckpoint()
			continue
		case err != nil:
			p.failCheckpoint(err)
			return
		}
		wait = 0
	}
}

// throttleSleep is a pause of the checkpoint that is being written.
func (p *partition) throttleSleep(ctx context.Context, d time.Duration) {
	if p.checkpoint.urgent.Load() > 0 || p.behind.late(p.node.opts.CheckpointLogBytes) {
		return
	}
	if size, _ := p.generationBytes(); size <= p.node.opts.GenerationBytes {
		p.pause(ctx, d)
	}
}

// writeCheckpoint writes a checkpoint of the present state, if there is
// anything new, as fast as it can.
func (p *partition) writeCheckpoint() error {
	p.checkpoint.urgent.Add(1)
	defer p.checkpoint.urgent.Add(-1)
	return p.writeCheckpointAt(nil, true)
}

// writeCheckpointAt is writeCheckpoint with rests. publish says whether other nodes
// get it; one that they do not get may be published later.
func (p *partition) writeCheckpointAt(rests *checkpoint.Rests, publish bool) error {
	p.checkpoint.Lock()
	defer p.checkpoint.Unlock()
	begun := time.Now() // for the metric only

	if f := p.checkpoint.held; f != nil && p.machine() != nil {
		p.feed.Hold()
		if err := p.finishCheckpoint(f, rests, begun, publish); err != nil {
			return err
		}
	}
	// Between two records: nobody applies while the lock is held, and the feed
	// has been given all rows below the offset.
	p.feed.Lock()
	p.mu.Lock()
	if p.mu.m == nil { // released meanwhile
		p.mu.Unlock()
		p.feed.Unlock()
		return nil
	}
	if p.mu.m.Next() == p.lastCheckpoint.Load() || p.mu.m.Lagging() {
		lagging := p.mu.m.Lagging()
		p.mu.Unlock()
		p.feed.Unlock()
		if lagging {
			return resolver.ErrLagging
		}
		if publish {
			p.sharing.publishNewest()
		}
		return nil
	}
	f := p.mu.m.Freeze()
	p.behind.freeze()
	f.Items = p.feed.Freeze()
	p.mu.Unlock()
	p.feed.Unlock()
	p.freezeMaxNs.Store(max(p.freezeMaxNs.Load(), int64(time.Since(begun))))
	return p.finishCheckpoint(f, rests, begun, publish)
}

// machine is the partition's, nil once it is closed.
func (p *partition) machine() *resolver.Machine {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.mu.m
}

// finishCheckpoint writes what was frozen. When that fails it is held, and written
// before anything else is frozen: what it has is nowhere else.
func (p *partition) finishCheckpoint(f *checkpoint.Frozen, rests *checkpoint.Rests, begun time.Time, publish bool) error {
	p.checkpoint.held = f
	w, err := p.mu.m.WriteCheckpoint(&p.ckpt, f, p.feed, rests)
	p.feed.Thaw()
	if err != nil {
		if state.IsFull(err) {
			p.ckpt.Disk.Note(&p.ckpt.Disk.Checkpoint, err)
		}
		return err
	}
	p.checkpoint.held = nil
	p.ckpt.Disk.Clear(&p.ckpt.Disk.Checkpoint)
	p.mu.Lock()
	p.mu.m.Thaw(w)
	p.mu.Unlock()
	p.lastCheckpoint.Store(f.Next)
	p.behind.wrote()
	p.checkpoints.Add(1)
	p.checkpointNs.Add(int64(time.Since(begun)))
	p.checkpoint.finished.Signal()
	if err := errors.Join(p.ckpt.DiscardRuns(f.KeyRuns, w.Runs), p.ckpt.DiscardSegments(f.Chain, w.Segments)); err != nil {
		return err
	}
	p.offerShared(f, publish)
	if log, is := p.node.opts.Log.(notingLog); is {
		if err := log.NoteEnds(); err != nil {
			p.log.Warn("how far the log goes could not be noted; the next checkpoint tries again", "err", err)
		}
	}
	p.checkpoint.pruning.Lock()
	oldest, err := p.ckpt.Prune(p.sharing.pinned())
	p.checkpoint.pruning.Unlock()
	if err != nil {
		return err
	}
	p.log.Debug("checkpoint", "offset", f.Next, "took", time.Since(begun))
	if !p.node.opts.TrimLog {
		return nil
	}
	return p.node.opts.Log.Trim(p.id, oldest)
}

// notingLog is a log that can note how far its records go. Once it has, a start notices
// when records before that are missing, even if no checkpoint is left that says so.
type notingLog interface{ NoteEnds() error }

// continueLoop appends continue records while the machine has tasks.
func (p *partition) continueLoop(ctx context.Context) {
	defer p.done.Done()
	for {
		select {
		case <-p.pending:
		case <-ctx.Done():
			return
		case <-p.failed:
			return
		}
		p.mu.RLock()
		pending := p.mu.m.Pending() > 0
		p.mu.RUnlock()
		if _, reigns := p.holdsLease(); !reigns || !pending {
			continue // its owner sees to it, or it was so at a time during the replay
		}
		env := eventlog.Envelope{Kind: eventlog.KindContinue}
		if err := p.node.stamp(&env); err != nil {
			p.fail(err)
			return
		}
		var out resolver.Outcome
		if err := p.submit(ctx, env, env.Append(nil), &out); err != nil {
			// Try again when the queue has moved, or the log is back. One too many
			// does no harm.
			p.pause(ctx, 50*time.Millisecond)
			select {
			case p.pending <- struct{}{}:
			default:
			}
		}
	}
}

// close stops applying, lets history catch up for a bounded time, writes a
// last checkpoint and releases everything. Of a partition that was released no
// checkpoint is begun after ctx has ended: its next owner replays instead.
func (p *partition) close(ctx context.Context) error {
	if p.stop == nil {
		return nil
	}
	p.closes.Do(func() { p.closeErr = p.closeOnce(ctx) })
	return p.closeErr
}

// erasuresPending is how many erasures are not out of all files.
func (p *partition) erasuresPending() (n int) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if p.mu.m == nil {
		return 0
	}
	return p.mu.m.ErasuresPending()
}

func (p *partition) closeOnce(ctx context.Context) error {
	p.stop()
	p.ckpt.Disk.Close()
	p.leaves.Do(func() { close(p.left) })
	p.done.Wait()
	var err error
	select {
	case <-p.failed:
		// The state may be half changed: the newest checkpoint stands.
	default:
		if p.discarded.Load() {
			break
		}
		if e := p.feed.WaitStored(ctx, p.applied.Load()); e != nil {
			p.log.Warn("history lags at shutdown; the rest is in the checkpoint", "error", e)
		}
		if p.released.Load() && ctx.Err() != nil {
			p.log.Info("no checkpoint at the release: the rest is replayed", "reason", ctx.Err())
			break
		}
		if err = p.writeCheckpoint(); errors.Is(err, resolver.ErrLagging) {
			p.log.Info("no checkpoint at shutdown: the rest is replayed", "reason", err)
			err = nil
		} else if state.IsFull(err) {
			p.log.Warn("no checkpoint at shutdown, the disk is full: the next start replays the rest, and needs space", "error", err)
			err = nil
		} else if err != nil {
			err = fmt.Errorf("no checkpoint could be written at the stop of partition %d; nothing is lost, the next start makes the state anew from the checkpoint before or from the log: %w", p.id, err)
		}
		if n := p.erasuresPending(); n > 0 {
			p.log.Warn("erasures are not out of all files yet; the next start goes on with them", "erasures", n)
		}
	}
	p.feed.Close()
	// Nobody who takes the lock from here on finds a machine, and snapshots keep
	// the files open that they read.
	p.checkpoint.Lock()
	p.mu.Lock()
	p.mu.m = nil
	p.mu.Unlock()
	p.checkpoint.Unlock()
	p.files.done()
	p.endSharing(ctx)
	select {
	case <-p.files.closed:
		return errors.Join(err, p.files.err)
	default:
	}
	select {
	case <-p.files.closed:
		return errors.Join(err, p.files.err)
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("snapshots are still being read; the last one closes the files: %w", ctx.Err()))
	}
}
