package node

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// SharedCheckpoints is where nodes leave checkpoints for each other, so that one
// that takes a partition need not replay its log from the beginning. Package
// cluster/checkpoint is it.
type SharedCheckpoints interface {
	// Newest makes dir, which is not there, the newest whole checkpoint of the
	// partition whose offset is greater than have, and returns that offset; -1 if
	// there is none. It returns once dir is durable, but for its own entry. After
	// an error dir may hold a part. The error wraps [ErrForeignCheckpoints] when
	// what is there belongs to another log.
	Newest(ctx context.Context, partition int, dir string, have int64) (offset int64, err error)
	// Publish stores the checkpoint in dir, which must not change meanwhile. The
	// checkpoint has the state before offset, under the epoch of that number. A
	// partition is published by one call at a time.
	Publish(ctx context.Context, partition int, dir string, offset int64, epoch uint64) error
}

// ErrForeignCheckpoints means that shared checkpoints are those of another log.
var ErrForeignCheckpoints = errors.New("the shared checkpoints belong to another log")

// sharedTmp is the directory that a shared checkpoint is fetched to.
const sharedTmp = checkpoint.TmpPrefix + "shared"

// The pause before a checkpoint that could not be published is tried again,
// from the first time on.
const (
	publishPause    = time.Second
	publishPauseMax = time.Minute
)

// sharing publishes a partition's checkpoints, one at a time, the newest first.
type sharing struct {
	mu struct {
		sync.Mutex
		// newest is the newest checkpoint, nil before there is one. It is never pruned.
		newest *sharedCheckpoint
		// offered says that newest is to be published.
		offered bool
		// pinned is the one being published: its files must stay.
		pinned *sharedCheckpoint
	}
	due   chan struct{} // something is offered
	ended chan struct{} // closed when the loop has ended; nil before it began

	offset   atomic.Int64 // of the newest one known to be stored, -1 for none
	failures atomic.Int64
	failing  atomic.Bool
}

type sharedCheckpoint struct {
	offset int64
	epoch  uint64
}

// note says that there is a checkpoint. Call it before checkpoints are pruned: what
// is published is then the newest, or pinned.
func (s *sharing) note(c sharedCheckpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.newest == nil || s.mu.newest.offset < c.offset {
		s.mu.newest = &c
	}
}

// publishNewest has the newest checkpoint published unless it is already, or there is
// none.
func (s *sharing) publishNewest() {
	s.mu.Lock()
	offered := s.mu.newest != nil && s.mu.newest.offset > s.offset.Load()
	s.mu.offered = s.mu.offered || offered
	s.mu.Unlock()
	if !offered {
		return
	}
	select {
	case s.due <- struct{}{}:
	default:
	}
}

// take returns what is to be published and pins it, nil for nothing.
func (s *sharing) take() *sharedCheckpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.pinned = nil
	if s.mu.offered {
		s.mu.pinned, s.mu.offered = s.mu.newest, false
	}
	return s.mu.pinned
}

func (s *sharing) unpin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.pinned = nil
}

// pinned is the offset of the checkpoint being published, -1 for none.
func (s *sharing) pinned() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.pinned == nil {
		return -1
	}
	return s.mu.pinned.offset
}

// fetched is what was found in shared storage.
type fetched struct {
	offset int64 // -1 for nothing newer than what is here
	err    error // why shared storage did not answer
}

// fetchShared fetches the newest shared checkpoint if it is newer than those
// here. Without an answer the partition goes on with its own, if it has any.
func (p *partition) fetchShared(ctx context.Context) (fetched, error) {
	p.sharing.offset.Store(-1)
	if p.node.opts.Shared == nil {
		return fetched{offset: -1}, nil
	}
	have, err := p.ckpt.NewestReadable()
	if err != nil {
		return fetched{}, err
	}
	begun := time.Now() // for the log line only
	offset, err := p.node.opts.Shared.Newest(ctx, p.id, p.ckpt.Path(checkpoint.DirCheckpoints, sharedTmp), have)
	switch {
	case err == nil:
		if offset >= 0 {
			p.log.Info("fetched a shared checkpoint", "offset", offset, "own", have, "took", time.Since(begun))
		}
		return fetched{offset: offset}, nil
	case errors.Is(err, ErrForeignCheckpoints):
		return fetched{}, err
	case have < 0 || ctx.Err() != nil:
		return fetched{}, fmt.Errorf("this node has no checkpoint of the partition, and the shared ones cannot be read: %w", err)
	}
	p.log.Error("the shared checkpoints cannot be read; going on with this node's own", "checkpoint", have, "error", err)
	return fetched{offset: -1, err: fmt.Errorf("the shared checkpoints cannot be read: %w", err)}, nil
}

// adoptShared makes what was fetched one of the node's checkpoints. The log ends
// at end, as told after the checkpoint was found.
func (p *partition) adoptShared(f fetched, end int64) error {
	if f.offset < 0 {
		return p.ckpt.FS.RemoveAll(p.ckpt.Path(checkpoint.DirCheckpoints, sharedTmp))
	}
	if f.offset > end {
		return errors.Join(
			fmt.Errorf("the log ends at %d, before the shared checkpoint at %d: records are missing, or the shared checkpoints are of a later time than the log. Put the log back that belongs to them, or start with another place for --checkpoints", end, f.offset),
			p.ckpt.FS.RemoveAll(p.ckpt.Path(checkpoint.DirCheckpoints, sharedTmp)))
	}
	final := p.ckpt.Path(checkpoint.DirCheckpoints, checkpoint.Name(f.offset))
	if err := p.ckpt.FS.RemoveAll(final); err != nil { // one that cannot be read
		return err
	}
	if err := p.ckpt.FS.Rename(p.ckpt.Path(checkpoint.DirCheckpoints, sharedTmp), final); err != nil {
		return err
	}
	p.sharing.offset.Store(f.offset)
	return statefiles.SyncDir(p.ckpt.FS, p.ckpt.Path(checkpoint.DirCheckpoints))
}

// startSharing begins to publish, with the checkpoint that the partition was
// opened from: shared storage may lack it.
func (p *partition) startSharing(ctx context.Context, f checkpoint.Manifest) {
	if p.node.opts.Shared == nil {
		return
	}
	if f.Version != 0 {
		p.sharing.note(sharedCheckpoint{f.Next, f.EpochNumber()})
	}
	p.sharing.publishNewest()
	p.sharing.ended = make(chan struct{})
	go p.shareLoop(ctx)
}

// offerShared notes the checkpoint, and has it published if it is to be.
func (p *partition) offerShared(f *checkpoint.Frozen, publish bool) {
	if p.node.opts.Shared == nil {
		return
	}
	p.sharing.note(sharedCheckpoint{f.Next, f.EpochNumber()})
	if publish {
		p.sharing.publishNewest()
	}
}

// shareLoop publishes what is offered until ctx ends.
func (p *partition) shareLoop(ctx context.Context) {
	defer close(p.sharing.ended)
	for {
		select {
		case <-p.sharing.due:
		case <-ctx.Done():
			return
		}
		for wait := publishPause; p.publishShared(ctx) != nil; wait = min(2*wait, publishPauseMax) {
			if pause.For(ctx, wait) != nil {
				return
			}
		}
	}
}

// publishShared publishes the newest checkpoint that was offered. One that
// could not be published is offered again.
func (p *partition) publishShared(ctx context.Context) error {
	c := p.sharing.take()
	if c == nil {
		return nil
	}
	begun := time.Now() // for the log line only
	err := p.node.opts.Shared.Publish(ctx, p.id, p.ckpt.Path(checkpoint.DirCheckpoints, checkpoint.Name(c.offset)), c.offset, c.epoch)
	if err != nil {
		p.sharing.publishNewest()
	}
	p.sharing.unpin()
	switch {
	case err == nil:
		p.sharing.failing.Store(false)
		p.sharing.offset.Store(c.offset)
		p.log.Debug("published a checkpoint", "offset", c.offset, "took", time.Since(begun))
	case ctx.Err() == nil:
		p.sharing.failures.Add(1)
		p.sharing.failing.Store(true)
		p.log.Error("a checkpoint could not be published; trying again with the newest one", "offset", c.offset, "error", err)
	}
	return err
}

// endSharing publishes the last checkpoint as far as ctx allows. The loop's
// context has ended. Storage that hangs is not waited for: the node that takes the
// partition replays instead.
func (p *partition) endSharing(ctx context.Context) {
	if p.sharing.ended == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-p.sharing.ended
		if ctx.Err() == nil {
			p.sharing.publishNewest()
			_ = p.publishShared(ctx) // told by its log line
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
		// What heeds its context ends now.
		t := time.NewTimer(publishPause)
		defer t.Stop()
		select {
		case <-done:
		case <-t.C:
			p.log.Warn("shared storage hangs; the last checkpoint is not there", "published", p.sharing.offset.Load())
		}
	}
}

// forget removes a released partition's files from this node once shared storage
// has its last checkpoint: what is erased under another owner must not live on
// here until the partition comes back.
func (p *partition) forget() error {
	if p.node.opts.Shared == nil || p.sharing.offset.Load() < p.checkpoint.last.Load() {
		return nil
	}
	return p.ckpt.FS.RemoveAll(p.ckpt.Root)
}
