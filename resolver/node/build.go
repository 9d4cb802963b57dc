package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/view"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine"
)

const (
	// chunkBytes is how large a chunk record is, roughly: a few milliseconds of
	// Apply, so that events continue between two of them.
	chunkBytes = 256 << 10
	// buildRetryMax is the longest pause before a build that failed continues.
	buildRetryMax = 5 * time.Second
	buildRetryMin = 100 * time.Millisecond
)

// buildLoop does what segment engines need from outside: it reads the past from
// history and profiles from a snapshot, and appends it as chunk records. It
// works on one thing at a time; what fails is tried again later and holds up
// nothing else. After a crash it continues where the last chunk that was stored
// ends.
func (p *partition) buildLoop(ctx context.Context) {
	last := uint64(0) // the account served last
	failed := failures{}
	for ctx.Err() == nil {
		changed := p.position.progress.Wait()
		account, work, ok := p.nextWork(last, failed.backingOff)
		if !ok {
			var again <-chan time.Time
			var timer *time.Timer
			if len(failed) > 0 {
				timer = time.NewTimer(buildRetryMin)
				again = timer.C
			}
			select {
			case <-changed:
				// Commands that need work are rare: no need to look at once.
				p.pause(ctx, 5*time.Millisecond)
			case <-again:
			case <-ctx.Done():
			case <-p.failed.Done():
				return
			}
			if timer != nil {
				timer.Stop()
			}
			continue
		}
		last = account
		key := failureKey{account: account}
		var err error
		if work.State != nil {
			key.state = work.State.ID
			err = p.loadState(ctx, account, work.State)
		} else {
			err = p.scanProfiles(ctx, account, work.Scan)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil || errors.Is(err, errMoot): // moot: changed or deleted meanwhile
			delete(failed, key)
		default:
			wait := failed.note(key)
			p.log.Error("a segment cannot be built; trying again", "retry_in", wait, "error", err)
			if work.Scan != nil {
				p.pause(ctx, wait)
			}
		}
	}
}

// failures are the states that could not be loaded, and until when they are not tried again.
// The pace is no logic, so it reads the clock.
type failures map[failureKey]failure

type failureKey struct {
	account uint64
	state   uint32
}

type failure struct {
	until time.Time
	wait  time.Duration
}

func (f failures) note(key failureKey) time.Duration {
	wait := min(max(2*f[key].wait, buildRetryMin), buildRetryMax)
	f[key] = failure{time.Now().Add(wait), wait}
	return wait
}

func (f failures) backingOff(account uint64, state uint32) bool {
	x, ok := f[failureKey{account, state}]
	return ok && time.Now().Before(x.until)
}

// errMoot means that the work is not wanted any more.
var errMoot = errors.New("the work is not wanted any more")

// moot is errMoot for work of an account that there is no more.
func moot(err error) error {
	if errors.Is(err, resolver.ErrNoAccount) {
		return errMoot
	}
	return err
}

// nextWork finds an account whose engine needs something, the one served last
// after all others.
func (p *partition) nextWork(last uint64, backingOff func(account uint64, state uint32) bool) (account uint64, w engine.Work, ok bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if _, holdsLease := p.lease.held(); !holdsLease {
		return 0, w, false // its owner builds
	}
	return p.mu.m.BuildWork(last, backingOff)
}

// loadState reads the past events of a state and appends them.
func (p *partition) loadState(ctx context.Context, account uint64, w *engine.StateWork) error {
	cut := query.Cut{Partition: p.id, UpTo: w.UpTo}
	if err := p.feed.WaitStored(ctx, cut.UpTo); err != nil {
		return err
	}
	l := engine.NewLoader(w)
	q := query.ReplayQuery{Cut: cut, Account: account, EventType: w.Event, AfterMs: w.AfterMs, Where: w.Where, Properties: w.Properties, Number: w.Number}
	err := p.node.opts.History.Replay(ctx, q, func(b *query.ReplayBlock) error {
		if err := p.knowAll(account, b.Ordinal); err != nil {
			return err
		}
		for i, o := range b.Ordinal {
			switch {
			case w.Number != nil:
				l.AddNumber(o, b.TimeMs[i], b.Micros[i], b.Micros[i] != query.NoMicros)
			case w.Properties:
				l.Add(o, b.TimeMs[i], b.Properties.At(i))
			default:
				l.Add(o, b.TimeMs[i], nil)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the past of %s: %w", w.Event, err)
	}
	for last := false; !last; {
		var chunk []byte
		chunk, last = l.Chunk(chunkBytes)
		if err := p.appendChunk(ctx, account, chunk); err != nil {
			return err
		}
		if !last && !p.wants(account, w.ID) {
			return errMoot
		}
	}
	return nil
}

// knowAll checks ordinals from history: a chunk with one that the state does
// not have could not be applied, now or ever again.
func (p *partition) knowAll(account uint64, ordinals []uint32) error {
	return moot(p.look(account, func(v *resolver.View) error { return v.Profiles().KnowsAll(ordinals) }))
}

// scanProfiles judges all profiles for new leaves on their fields.
func (p *partition) scanProfiles(ctx context.Context, account uint64, w *engine.ScanWork) error {
	var snap *view.Snapshot
	err := p.look(account, func(v *resolver.View) error {
		snap = v.Snapshot()
		return nil
	})
	if err != nil {
		return moot(err)
	}
	defer snap.Close() // it only gives memory back
	s := engine.NewScanner(w)
	err = snap.Scan(ctx, func(o uint32, f *segment.Facts) error {
		s.Add(o, f)
		if s.Size() < chunkBytes {
			return nil
		}
		chunk, err := s.Chunk(false)
		if err != nil {
			return err
		}
		if err := p.appendChunk(ctx, account, chunk); err != nil {
			return err
		}
		if !p.wants(account, w.Leaves...) {
			return errMoot
		}
		return nil
	})
	if err != nil {
		return err
	}
	chunk, err := s.Chunk(true)
	if err != nil {
		return err
	}
	return p.appendChunk(ctx, account, chunk)
}

// wants reports whether one of the leaves or states is still being built.
func (p *partition) wants(account uint64, ids ...uint32) bool {
	wanted := false
	err := p.look(account, func(v *resolver.View) error {
		wanted = v.Segments().WantsBuilt(ids...)
		return nil
	})
	return err == nil && wanted
}

// appendChunk appends a chunk and waits until it is applied.
func (p *partition) appendChunk(ctx context.Context, account uint64, chunk []byte) error {
	for {
		env := eventlog.Envelope{Kind: eventlog.KindChunk, Account: account}
		if err := p.node.stamp(&env); err != nil {
			p.fail(err)
			return err
		}
		var out resolver.Outcome
		err := p.submit(ctx, env, append(env.Append(nil), chunk...), &out)
		if err == nil && out.Refusal != nil {
			return out.Refusal
		}
		if !errors.Is(err, resolver.ErrOverloaded) {
			return err
		}
		p.pause(ctx, 50*time.Millisecond)
	}
}
