package node

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/feed"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// load loads the newest checkpoint that is whole, starts applying behind it and
// returns at the end of the log. The partition then follows the log, and neither
// answers nor appends until begin.
func (p *partition) load(ctx context.Context) error {
	defer p.reportProgress()()
	p.ckpt.Took = checkpoint.NewPhases()
	defer func() { p.ckpt.Took = nil }()
	aside, err := p.ckpt.SetMisplacedAside()
	for _, path := range aside {
		p.history.repairs.Add(1)
		p.log.Error("a file is where a directory of the state must be; it is set aside, and the directory is rebuilt", "file", path, "now", path+checkpoint.MisplacedSuffix)
	}
	if err != nil {
		return err
	}
	// In this order: other nodes may append and store meanwhile, and neither a
	// checkpoint nor history is ahead of the log.
	shared, err := p.sharing.Fetch(ctx)
	if err != nil {
		return err
	}
	p.ckpt.Took.End("fetch")
	start, end, err := p.node.opts.Log.Bounds(ctx, p.id)
	if err != nil {
		return err
	}
	if err := p.sharing.Adopt(&shared, end, func(c checkpoint.Candidate) error { return p.node.checkLog(ctx, p.id, c, start) }); err != nil {
		return err
	}
	p.ckpt.Took.End("ask")
	// History may still be opening: it is waited for beside the loading.
	askHistory := p.askHistory(ctx)
	f, m, err := p.loadNewest(ctx, start, end)
	stored, unknown := askHistory()
	if err != nil {
		return errors.Join(err, shared.Err)
	}
	if unknown == nil {
		start, end, unknown = p.node.opts.Log.Bounds(ctx, p.id) // after history, as said above
	}
	if unknown != nil {
		return errors.Join(unknown, m.Close())
	}
	p.ckpt.Took.End("history")
	marked, err := p.markRebuild(stored < end)
	if err != nil {
		return errors.Join(err, m.Close())
	}
	p.mu.m = m
	p.lease.newest.Store(m.LastEpoch().Number)
	m.PublishAll(&p.published.segments)
	p.published.setStats(m.Stats())
	var items []*feed.Item
	for _, sp := range f.Spool {
		it := &feed.Item{From: sp.From, To: sp.To, File: sp.File}
		if info, err := p.ckpt.FS.Stat(p.ckpt.Path(checkpoint.DirSpool, sp.File)); err == nil {
			it.FileSize = info.Size()
		}
		items = append(items, it)
	}
	if err := p.feed.Start(stored, f.Next, start, end, items); err != nil {
		return errors.Join(err, m.Close())
	}
	p.checkpoint.last.Store(f.Next)
	p.position.applied.Store(f.Next)
	p.requests.appended.Store(end)
	r, err := p.node.opts.Log.Read(p.id, f.Next)
	if err != nil {
		p.feed.Close()
		return errors.Join(err, m.Close())
	}
	p.files.open(m.Close)
	p.publishApps()
	p.loaded.from, p.loaded.to = f, end
	p.life.begin()
	p.life.follow(func(ctx context.Context) { p.apply(ctx, r) })
	p.life.follow(p.checkpointLoop)
	p.ckpt.Took.End("begin")
	if err := p.replay(ctx, end); err != nil {
		return err
	}
	if err := p.judgeRebuild(marked, stored); err != nil {
		return err
	}
	p.ckpt.Took.End("replay")
	p.log.Info("loaded", "checkpoint", f.Next, "end", p.position.applied.Load(), p.ckpt.Took.Attr())
	return nil
}

// askHistory begins to ask history how far it is, and returns what waits for the answer.
func (p *partition) askHistory(ctx context.Context) (answer func() (stored int64, err error)) {
	done := make(chan struct{})
	var stored int64
	var err error
	go func() {
		defer close(done)
		if stored, err = p.node.opts.History.Position(ctx, p.id); err != nil {
			err = fmt.Errorf("history: %w", err)
		}
	}()
	return func() (int64, error) {
		<-done
		return stored, err
	}
}

// loadNewest loads the newest checkpoint of which every file is what was written.
// Damaged ones are set aside; without a whole one the log is replayed from its
// beginning, if it still has that. Nothing is changed before it is certain that
// there is something to load.
func (p *partition) loadNewest(ctx context.Context, start, end int64) (checkpoint.Manifest, *resolver.Machine, error) {
	offsets, err := p.ckpt.List()
	if err != nil {
		return checkpoint.Manifest{}, nil, err
	}
	var faults []error
	for i := len(offsets) - 1; i >= 0; i-- {
		c, err := p.ckpt.Whole(offsets[i], start, end)
		if err == nil {
			err = p.ckpt.Advise(p.node.checkLog(ctx, p.id, c, start), start)
		}
		if err == nil {
			var m *resolver.Machine
			if m, err = p.loadCandidate(c); err == nil {
				return c.Manifest, m, p.ckpt.SetAside(offsets[i+1:])
			}
		}
		if !errors.Is(err, statefiles.ErrDamaged) {
			return checkpoint.Manifest{}, nil, err
		}
		p.history.repairs.Add(1)
		p.log.Error("a checkpoint is damaged and is not used", "checkpoint", offsets[i], "reason", err)
		faults = append(faults, err)
	}
	if start > 0 {
		return checkpoint.Manifest{}, nil, checkpoint.NoneWhole(start, faults...)
	}
	if faults != nil {
		p.log.Warn("rebuilding the state from the beginning of the log; requests are answered when it is done", "records", end)
	}
	m, err := p.loadCandidate(checkpoint.Candidate{})
	if err != nil {
		return checkpoint.Manifest{}, nil, err
	}
	return checkpoint.Manifest{}, m, p.ckpt.SetAside(offsets)
}

// checkLog refuses a state that is not of this log. Where the log lacks the record before the
// checkpoint, or it is damaged, nothing can be compared.
func (n *Node) checkLog(ctx context.Context, partition int, c checkpoint.Candidate, start int64) error {
	last := c.Next - 1
	if last < start || n.skipped(partition, last) {
		return nil
	}
	var damage *eventlog.CorruptError
	r, err := n.opts.Log.Read(partition, last)
	if errors.As(err, &damage) {
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	e, err := r.Next(ctx)
	if errors.As(err, &damage) || errors.Is(err, eventlog.ErrTrimmed) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.CheckLog(e.Data)
}

// loadCandidate loads a state. A panic is damage like any other: what is read was
// written by this program.
func (p *partition) loadCandidate(c checkpoint.Candidate) (m *resolver.Machine, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: load checkpoint %d: panic: %v\n%s", statefiles.ErrDamaged, c.Next, r, debug.Stack())
		}
	}()
	if err := p.ckpt.Prepare(); err != nil {
		return nil, err
	}
	p.ckpt.Took.End("check")
	m, err = resolver.LoadCheckpoint(&p.ckpt, c.Manifest, c.IDs, p.node.opts.CacheBytes, p.log)
	if err != nil && c.Version != 0 && !statefiles.IsEnvironment(err) && !errors.Is(err, resolver.ErrNewer) {
		err = fmt.Errorf("%w: load checkpoint %d: %w", statefiles.ErrDamaged, c.Next, err)
	}
	return m, err
}
