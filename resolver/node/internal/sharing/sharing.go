// Package sharing has the checkpoints of a partition that nodes leave for each other:
// a node uploads its own in storage that all nodes reach, and fetches those of others.
package sharing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// Storage is where nodes leave checkpoints for each other, so that one
// that takes a partition need not replay its log from the beginning. Package
// cluster/checkpoint is it.
type Storage interface {
	// Newest makes dir, which is not there, the newest whole checkpoint of the
	// partition whose offset is greater than have, and returns that offset; -1 if
	// there is none. It returns once dir is durable, but for its own entry. After
	// an error dir may hold a part. The error wraps [ErrForeign] when
	// what is there belongs to another log.
	Newest(ctx context.Context, partition int, dir string, have int64) (offset int64, err error)
	// NewestPart is Newest for the named files alone of the checkpoint; the others may
	// be damaged.
	NewestPart(ctx context.Context, partition int, dir string, have int64, files []string) (offset int64, err error)
	// Upload stores the checkpoint in dir, which must not change meanwhile. The
	// checkpoint has the state before offset, under the epoch of that number. A
	// partition is uploaded by one call at a time.
	Upload(ctx context.Context, partition int, dir string, offset int64, epoch uint64) error
	// Place names the storage for people.
	Place() string
}

// ErrForeign means that shared checkpoints are those of another log.
var ErrForeign = errors.New("the shared checkpoints belong to another log")

// tmp is the directory that a shared checkpoint is fetched to.
const tmp = checkpoint.TmpPrefix + "shared"

// The pause before a checkpoint that could not be uploaded is tried again,
// from the first time on.
const (
	uploadPause    = time.Second
	uploadPauseMax = time.Minute
)

// Sharing uploads a partition's checkpoints, one at a time, the newest first. Without a
// storage it does nothing.
type Sharing struct {
	store     Storage // nil for none
	partition int
	dir       *checkpoint.Dir
	log       *slog.Logger

	mu struct {
		sync.Mutex
		// newest is the newest checkpoint, nil before there is one. It is never pruned.
		newest *noted
		// offered says that newest is to be uploaded.
		offered bool
		// pinned is the one being uploaded: its files must stay.
		pinned *noted
	}
	due   chan struct{} // something is offered
	ended chan struct{} // closed when the loop has ended; nil before it began
	// foreign says that what is stored is of other records than the log: nothing is
	// uploaded beside it. Set before Start.
	foreign bool

	offset   atomic.Int64 // of the newest one known to be stored, -1 for none
	failures atomic.Int64
	failing  atomic.Bool
}

// New returns the sharing of the partition whose own checkpoints are in dir.
func New(store Storage, partition int, dir *checkpoint.Dir, log *slog.Logger) *Sharing {
	return &Sharing{store: store, partition: partition, dir: dir, log: log, due: make(chan struct{}, 1)}
}

// Stats say how far a partition's checkpoints are uploaded.
type Stats struct {
	// Shared reports whether checkpoints are uploaded; SharedOffset is the offset of
	// the newest one known to be (-1 for none), SharedFailures how often that
	// failed, SharedFailing whether it did the last time.
	Shared                       bool
	SharedOffset, SharedFailures int64
	SharedFailing                bool
}

// Stats returns the numbers for metrics.
func (s *Sharing) Stats() Stats {
	return Stats{Shared: s.store != nil, SharedOffset: s.offset.Load(), SharedFailures: s.failures.Load(), SharedFailing: s.failing.Load()}
}

// Stored is the offset of the newest checkpoint known to be in the storage, -1 for none.
func (s *Sharing) Stored() int64 { return s.offset.Load() }

// noted is a checkpoint of this node.
type noted struct {
	offset int64
	epoch  uint64
}

// note says that there is a checkpoint. Call it before checkpoints are pruned: what
// is uploaded is then the newest, or pinned.
func (s *Sharing) note(c noted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.newest == nil || s.mu.newest.offset < c.offset {
		s.mu.newest = &c
	}
}

// RequestUpload has the newest checkpoint uploaded unless it is already, or there is
// none.
func (s *Sharing) RequestUpload() {
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

// take returns what is to be uploaded and pins it, nil for nothing.
func (s *Sharing) take() *noted {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.pinned = nil
	if s.mu.offered {
		s.mu.pinned, s.mu.offered = s.mu.newest, false
	}
	return s.mu.pinned
}

func (s *Sharing) unpin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.pinned = nil
}

// Pinned is the offset of the checkpoint being uploaded, -1 for none.
func (s *Sharing) Pinned() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.pinned == nil {
		return -1
	}
	return s.mu.pinned.offset
}

// Fetched is what was found in shared storage.
type Fetched struct {
	offset int64 // -1 for nothing newer than what is here
	Err    error // why shared storage did not answer
}

// Fetch fetches the newest shared checkpoint if it is newer than those
// here. Without an answer the partition continues with its own, if it has any.
func (s *Sharing) Fetch(ctx context.Context) (Fetched, error) {
	s.offset.Store(-1)
	if s.store == nil {
		return Fetched{offset: -1}, nil
	}
	have, err := s.dir.NewestReadable()
	if err != nil {
		return Fetched{}, err
	}
	begun := time.Now() // for the log line only
	offset, err := s.store.Newest(ctx, s.partition, s.dir.Path(checkpoint.DirCheckpoints, tmp), have)
	switch {
	case err == nil:
		if offset >= 0 {
			s.log.Info("fetched a shared checkpoint", "offset", offset, "own", have, "took", time.Since(begun))
		}
		return Fetched{offset: offset}, nil
	case errors.Is(err, ErrForeign):
		return Fetched{}, err
	case have < 0 || ctx.Err() != nil:
		return Fetched{}, fmt.Errorf("this node has no checkpoint of the partition, and the shared ones cannot be read: %w", err)
	}
	s.log.Error("the shared checkpoints cannot be read; continuing with this node's own", "checkpoint", have, "error", err)
	return Fetched{offset: -1, Err: fmt.Errorf("the shared checkpoints cannot be read: %w", err)}, nil
}

// Adopt makes what was fetched one of the node's checkpoints. The log ends
// at end, as told after the checkpoint was found. check compares a checkpoint with the log:
// one of other records never comes to those of the node, which may be right. It is why
// f.Err is set where the node continues without it.
func (s *Sharing) Adopt(f *Fetched, end int64, check func(checkpoint.Candidate) error) error {
	if f.offset < 0 {
		return s.dir.FS.RemoveAll(s.dir.Path(checkpoint.DirCheckpoints, tmp))
	}
	if f.offset > end {
		return errors.Join(
			fmt.Errorf("the log ends at %d, before the shared checkpoint at %d in %s: records are missing, or the shared checkpoints are of a later time than the log. Put the log back that belongs to them, or start with another place for --checkpoints", end, f.offset, s.store.Place()),
			s.dir.FS.RemoveAll(s.dir.Path(checkpoint.DirCheckpoints, tmp)))
	}
	if err := s.judge(f, check); err != nil || f.Err != nil {
		return errors.Join(err, s.dir.FS.RemoveAll(s.dir.Path(checkpoint.DirCheckpoints, tmp)))
	}
	final := s.dir.Path(checkpoint.DirCheckpoints, checkpoint.Name(f.offset))
	if err := s.dir.FS.RemoveAll(final); err != nil { // one that cannot be read
		return err
	}
	if err := s.dir.FS.Rename(s.dir.Path(checkpoint.DirCheckpoints, tmp), final); err != nil {
		return err
	}
	s.offset.Store(f.offset)
	return statefiles.SyncDir(s.dir.FS, s.dir.Path(checkpoint.DirCheckpoints))
}

// Start begins to upload, with the checkpoint that the partition was
// opened from: shared storage may lack it.
func (s *Sharing) Start(ctx context.Context, f checkpoint.Manifest) {
	if s.store == nil || s.foreign {
		return
	}
	if f.Version != 0 {
		s.note(noted{f.Next, f.EpochNumber()})
	}
	s.RequestUpload()
	s.ended = make(chan struct{})
	go s.loop(ctx)
}

// Offer notes the checkpoint, and has it uploaded if it is to be.
func (s *Sharing) Offer(f *checkpoint.Frozen, upload bool) {
	if s.store == nil {
		return
	}
	s.note(noted{f.Next, f.EpochNumber()})
	if upload {
		s.RequestUpload()
	}
}

// loop uploads what is offered until ctx ends.
func (s *Sharing) loop(ctx context.Context) {
	defer close(s.ended)
	for {
		select {
		case <-s.due:
		case <-ctx.Done():
			return
		}
		for wait := uploadPause; s.uploadNewest(ctx) != nil; wait = min(2*wait, uploadPauseMax) {
			if pause.For(ctx, wait) != nil {
				return
			}
		}
	}
}

// uploadNewest uploads the newest checkpoint that was offered. One that
// could not be uploaded is offered again.
func (s *Sharing) uploadNewest(ctx context.Context) error {
	c := s.take()
	if c == nil {
		return nil
	}
	begun := time.Now() // for the log line only
	err := s.store.Upload(ctx, s.partition, s.dir.Path(checkpoint.DirCheckpoints, checkpoint.Name(c.offset)), c.offset, c.epoch)
	if err != nil {
		s.RequestUpload()
	}
	s.unpin()
	switch {
	case err == nil:
		s.failing.Store(false)
		s.offset.Store(c.offset)
		s.log.Debug("uploaded a checkpoint", "offset", c.offset, "took", time.Since(begun))
	case ctx.Err() == nil:
		s.failures.Add(1)
		s.failing.Store(true)
		s.log.Error("a checkpoint could not be uploaded; trying again with the newest one", "offset", c.offset, "error", err)
	}
	return err
}

// End uploads the last checkpoint as far as ctx allows. The loop's
// context has ended. Storage that hangs is not waited for: the node that takes the
// partition replays instead.
func (s *Sharing) End(ctx context.Context) {
	if s.ended == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-s.ended
		if ctx.Err() == nil {
			s.RequestUpload()
			_ = s.uploadNewest(ctx) // told by its log line
		}
	}()
	select {
	case <-done:
	case <-ctx.Done():
		// What heeds its context ends now.
		t := time.NewTimer(uploadPause)
		defer t.Stop()
		select {
		case <-done:
		case <-t.C:
			s.log.Warn("shared storage hangs; the last checkpoint is not there", "uploaded", s.offset.Load())
		}
	}
}
