package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
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
		p.log.Warn("passing over a record that the options name", "offset", e.Offset)
		out.Reset(e.Offset)
		out.Refusal = &resolver.Refusal{Code: "conflict", Message: "the record is passed over"}
		return p.mu.m.Skip(e.Offset, e.Data)
	}
	if err := p.mu.m.Apply(e.Offset, e.Data, rows, out); err != nil {
		return err
	}
	p.mu.m.PublishRecord(&p.published.segments, env)
	p.noteEpoch(p.mu.m, env.ID)
	return nil
}

// maxIdempotencyKeys bounds the keys held by a partition. The bound is judged
// before a record is stored, not by Apply: how many expired keys are still held
// depends on checkpoints, and Apply may not.
const maxIdempotencyKeys = 500_000_000

// submit appends the record and waits until it is applied.
func (p *partition) submit(ctx context.Context, env eventlog.Envelope, rec []byte, out *resolver.Outcome) error {
	if err := p.failed.unavailable(); err != nil {
		return err
	}
	if p.requests.backlog(p.position.applied.Load()) > p.node.opts.MaxBacklog {
		return fmt.Errorf("%w: %d records are waiting to be applied", resolver.ErrOverloaded, p.node.opts.MaxBacklog)
	}
	stats := p.published.stats.Load()
	if env.Kind == eventlog.KindEvents && stats.IdempotencyKeys > maxIdempotencyKeys {
		return fmt.Errorf("%w: %d idempotency keys are held, the most there can be; shorten idempotency_hours", resolver.ErrOverloaded, maxIdempotencyKeys)
	}
	if (env.Kind == eventlog.KindEvents || env.Kind == eventlog.KindImport) && stats.FlowsWaiting > maxWaitingEvents {
		return fmt.Errorf("%w: %d events wait for their people to be enrolled in flows", resolver.ErrOverloaded, maxWaitingEvents)
	}
	if (env.Kind == eventlog.KindEvents || env.Kind == eventlog.KindImport) && p.feed.Crowded() {
		return fmt.Errorf("%w: history is down or behind, and %d MiB of rows wait for it, all that may", resolver.ErrOverloaded, p.node.opts.Feed.SpoolBytes>>20)
	}
	w := p.requests.add(env, out)
	if w == nil {
		return p.StopErr()
	}
	p.requests.count.Add(1)
	defer p.requests.count.Add(-1)
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
			p.requests.noteAppended(offset)
		}
		select {
		case <-w.done:
			if err = w.err; err != nil {
				w.free()
				return err
			}
			w.free()
			return p.waitEnrolled(ctx, env, out)
		case <-ctx.Done():
			err = fmt.Errorf("%w: the record is not applied yet, but may be stored: %w", resolver.ErrUnavailable, ctx.Err())
		case <-p.position.ended:
			err = p.stopped("the record is not applied yet, but may be stored")
		case <-p.failed.Done():
			err = p.failed.unavailable()
		}
	} else {
		err = classify(err)
	}
	if p.requests.take(env.ID) != nil {
		if !once || !stored {
			w.free()
			return err
		}
		// The log may still signal w, so it may not be used again.
		p.requests.noteAppended(offset)
		return err
	}
	// The record is being applied right now and out is being written to, or the log is
	// signalling its failure.
	select {
	case <-w.done:
	case <-p.position.ended:
		select {
		case <-w.done:
		default:
			return err
		}
	}
	err = w.err
	w.free()
	return err
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
// so that an event is acknowledged after the enrolments it begins; not for longer
// than the caller waits, or enrolledWait.
func (p *partition) waitEnrolled(ctx context.Context, env eventlog.Envelope, out *resolver.Outcome) error {
	if !out.Enrols() || env.Kind == eventlog.KindTick || env.Kind == eventlog.KindContinue {
		return nil
	}
	p.requests.beginEnrolling()
	defer p.requests.endEnrolling()
	limit := time.NewTimer(enrolledWait)
	defer limit.Stop()
	for {
		changed := p.position.progress.Wait()
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
		case <-p.position.ended:
			return p.stopped("the record is stored and its flows are not begun yet")
		case <-p.failed.Done():
			return p.failed.unavailable()
		}
	}
}

// waitApplied waits until all records below the offset are applied.
func (p *partition) waitApplied(ctx context.Context, offset int64) error {
	err := p.position.reach(ctx, offset, p.failed)
	if errors.Is(err, errEnded) {
		return p.StopErr()
	}
	return err
}

// checkpointLoop writes checkpoints when the generation is large or old, or much log
// came since the last one. What is due by the log alone waits for a pause after the
// checkpoint before.
func (p *partition) checkpointLoop(ctx context.Context) {
	var slept time.Duration
	throttle := checkpoint.Throttle{Budget: p.node.opts.CheckpointInterval / 3, Sleep: func(d time.Duration) {
		begun := time.Now()
		if d := p.throttled(d); d > 0 {
			p.pause(ctx, d)
		}
		slept += time.Since(begun)
	}}
	t := time.NewTicker(p.node.opts.CheckpointInterval)
	defer t.Stop()
	between := time.NewTimer(leastBetween)
	defer between.Stop()
	var dueByLog <-chan struct{} // nil during the pause
	wait := time.Duration(0)     // after an attempt that found the disk full
	for {
		upload := true
		select {
		case <-p.checkpoint.due:
		case <-t.C:
		case <-between.C:
			dueByLog = p.checkpoint.dueByLog
			continue
		case <-dueByLog:
			if !p.checkpoint.behind.due(p.node.opts.CheckpointLogBytes) {
				continue // another one came in between
			}
			upload = false
		case <-ctx.Done():
			return
		case <-p.failed.Done():
			return
		}
		begun := time.Now() // it is the processor's time that counts
		slept = 0
		err := p.writeCheckpointAt(&throttle, upload)
		dueByLog = nil
		between.Reset(max(leastBetween, time.Since(begun)-slept))
		switch {
		case errors.Is(err, resolver.ErrLagging):
			// Continue records are on their way; the next one asks again.
		case state.IsFull(err):
			wait = min(max(2*wait, time.Second), p.node.opts.CheckpointInterval)
			p.pause(ctx, wait)
			p.checkpoint.request()
			continue
		case err != nil:
			p.failCheckpoint(err)
			return
		}
		wait = 0
	}
}

// throttled is what is left of a pause of the checkpoint that is being written.
func (p *partition) throttled(d time.Duration) time.Duration {
	if size, _ := p.generationBytes(); size > p.node.opts.GenerationBytes {
		return 0
	}
	return p.checkpoint.throttled(d, p.node.opts.CheckpointLogBytes)
}

// writeCheckpoint writes a checkpoint of the present state, if there is
// anything new, as fast as it can.
func (p *partition) writeCheckpoint() error {
	p.checkpoint.urgent.Add(1)
	defer p.checkpoint.urgent.Add(-1)
	defer p.ckpt.Disk.Urgent()()
	return p.writeCheckpointAt(nil, true)
}

// writeCheckpointAt is writeCheckpoint with a throttle, nil for none. upload says
// whether other nodes get it; one that they do not get may be uploaded later.
func (p *partition) writeCheckpointAt(throttle *checkpoint.Throttle, upload bool) error {
	p.checkpoint.Lock()
	defer p.checkpoint.Unlock()
	begun := time.Now() // for the metrics only

	if f := p.checkpoint.held; f != nil && p.machine() != nil {
		p.feed.Hold()
		if err := p.finishCheckpoint(f, throttle, begun, upload); err != nil {
			return err
		}
		begun = time.Now() // the held one is counted
	}
	// Between two records: nothing is applied while the lock is held, and the feed
	// has been given all rows below the offset.
	p.feed.Lock()
	p.mu.Lock()
	if err := p.failed.Err(); err != nil || p.mu.m == nil { // or released meanwhile
		p.mu.Unlock()
		p.feed.Unlock()
		return err
	}
	if p.mu.m.Next() == p.checkpoint.last.Load() || p.mu.m.Lagging() {
		lagging := p.mu.m.Lagging()
		p.mu.Unlock()
		p.feed.Unlock()
		if lagging {
			return resolver.ErrLagging
		}
		if upload {
			p.sharing.RequestUpload()
		}
		return nil
	}
	held := time.Now() // Apply waits from now on
	f := p.mu.m.Freeze()
	p.checkpoint.behind.freeze()
	f.Items = p.feed.Freeze(p.node.opts.Cluster.Shared != nil)
	p.mu.Unlock()
	p.feed.Unlock()
	p.checkpoint.noteFreeze(time.Since(held))
	return p.finishCheckpoint(f, throttle, begun, upload)
}

// machine is the partition's, nil once it is closed.
func (p *partition) machine() *resolver.Machine {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.mu.m
}

// finishCheckpoint writes what was frozen. When that fails it is held, and written
// before anything else is frozen: what it has is nowhere else.
func (p *partition) finishCheckpoint(f *checkpoint.Frozen, throttle *checkpoint.Throttle, begun time.Time, upload bool) error {
	p.checkpoint.held = f
	w, err := p.mu.m.WriteCheckpoint(&p.ckpt, f, p.feed, throttle)
	p.feed.Thaw()
	if err != nil {
		if state.IsFull(err) {
			p.ckpt.Disk.Note(&p.ckpt.Disk.Checkpoint, err)
		}
		return err
	}
	p.ckpt.Disk.Clear(&p.ckpt.Disk.Checkpoint)
	p.mu.Lock()
	p.mu.m.Thaw(w)
	p.mu.Unlock()
	if log, is := p.node.opts.Log.(notingLog); is {
		if err := log.NoteEnds(); err != nil {
			p.log.Warn("how far the log goes could not be noted; the next checkpoint tries again", "err", err)
		}
	}
	p.checkpoint.wrote(f.Next, time.Since(begun))
	if err := errors.Join(p.ckpt.DiscardRuns(f.KeyRuns, w.Runs), p.ckpt.DiscardSegments(f.Chain, w.Segments)); err != nil {
		return err
	}
	p.sharing.Offer(f, upload)
	p.checkpoint.pruning.Lock()
	oldest, err := p.ckpt.Prune(p.sharing.Pinned())
	p.checkpoint.pruning.Unlock()
	if err != nil {
		return err
	}
	p.log.Debug("checkpoint", "offset", f.Next, "took", time.Since(begun))
	if !p.node.opts.TrimLog {
		return nil
	}
	return p.feed.Trim(context.Background(), func() error { return p.node.opts.Log.Trim(p.id, oldest) })
}

// logStart is the offset of the oldest record that the log has of the partition.
func (p *partition) logStart(ctx context.Context) (int64, error) {
	start, _, err := p.node.opts.Log.Bounds(ctx, p.id)
	return start, err
}

// notingLog is a log that can note how far its records go. Once it has, a start notices
// when records before that are missing, even if no checkpoint is left that says so. It does
// before a checkpoint counts as made.
type notingLog interface{ NoteEnds() error }

// continueLoop appends continue records while the machine has tasks.
func (p *partition) continueLoop(ctx context.Context) {
	for {
		select {
		case <-p.pending:
		case <-ctx.Done():
			return
		case <-p.failed.Done():
			return
		}
		p.mu.RLock()
		pending := p.mu.m.Pending() > 0
		p.mu.RUnlock()
		if _, holdsLease := p.lease.held(); !holdsLease || !pending {
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
			poke(p.pending)
		}
	}
}

// close stops applying, lets history catch up for a bounded time, writes a
// last checkpoint and releases everything. Of a partition that was released no
// checkpoint is begun after ctx has ended: its next owner replays instead.
func (p *partition) close(ctx context.Context) error {
	if !p.life.begun() {
		return nil
	}
	p.life.closes.Do(func() { p.life.closeErr = p.closeOnce(ctx) })
	return p.life.closeErr
}

// erasuresPending is how many erasures are not out of all files.
func (p *partition) erasuresPending() (n int) {
	p.with(func(m *resolver.Machine) { n = m.ErasuresPending() })
	return n
}

func (p *partition) closeOnce(ctx context.Context) error {
	p.life.stop()
	p.ckpt.Disk.Close()
	p.life.end()
	var err error
	switch {
	case p.failed.Err() != nil:
		// The state may be half changed: the newest checkpoint stands.
	case !p.life.discarded.Load():
		err = p.finish(ctx)
	}
	p.feed.Close()
	// From here on there is no machine under the lock, and snapshots keep
	// the files open that they read.
	p.checkpoint.Lock()
	p.mu.Lock()
	p.mu.m = nil
	p.mu.Unlock()
	p.checkpoint.Unlock()
	p.files.done()
	p.sharing.End(ctx)
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

// finish lets history catch up and writes the last checkpoint.
func (p *partition) finish(ctx context.Context) error {
	if err := p.feed.WaitStored(ctx, p.position.applied.Load()); err != nil {
		p.log.Warn("history lags at shutdown; the rest is in the checkpoint", "error", err)
	}
	if p.life.released.Load() && ctx.Err() != nil {
		p.log.Info("no checkpoint at the release: the rest is replayed", "reason", ctx.Err())
		return nil
	}
	err := p.writeCheckpoint()
	switch {
	case errors.Is(err, resolver.ErrLagging):
		p.log.Info("no checkpoint at shutdown: the rest is replayed", "reason", err)
		err = nil
	case state.IsFull(err):
		p.log.Warn("no checkpoint at shutdown, the disk is full: the next start replays the rest, and needs space", "error", err)
		err = nil
	case err != nil:
		err = fmt.Errorf("no checkpoint could be written at the stop of partition %d; nothing is lost, the next start rebuilds the state from the checkpoint before or from the log: %w", p.id, err)
	}
	if n := p.erasuresPending(); n > 0 {
		p.log.Warn("erasures are not out of all files yet; the next start continues with them", "erasures", n)
	}
	return err
}
