package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/panics"
	"github.com/musterhq/muster/internal/pause"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// Rebuilding history. What history stores is what Apply makes of the log, so a
// history that was lost is made again by applying the log from its beginning: by a
// second machine with files of its own, in dirRebuild, while the partition serves.
// How it meets the feed is described at the type lack.
//
// The second machine leaves checkpoints for itself, each once history has all rows
// below it, so that a crash costs little.
//
// The log implies the rows of erased profiles, too: their events come before the
// erasure. So whenever history may take rows again that it had, they are erased
// again in the end. That dirRebuild is there says that this is still to be done. Where
// other nodes may have begun it, whose directory that is, it is always done.
const dirRebuild = "rebuild"

const (
	// rebuildRows and rebuildBytes are how much is stored in history at once.
	rebuildRows  = 122_880
	rebuildBytes = 64 << 20
	// joinWithin is how few records behind Apply the second machine must be for the
	// rows from there on to be kept.
	joinWithin = 1000
	// maxRebuildPasses bounds how often it runs after an end of the log that moves
	// on. Then rows are kept all the same: they wait in the spool, which is bounded.
	maxRebuildPasses = 8
	rebuildNote      = 10 * time.Second // between two log lines
)

// historyRepair is what is to be done about history, and what was.
type historyRepair struct {
	rowsAgain  bool         // history may take rows of erased profiles again; set before the partition takes its lease
	rebuilding atomic.Bool  // rows are being rebuilt
	repairs    atomic.Int64 // damaged checkpoints passed over, and rebuildings of history
}

// rebuildLoop rebuilds rows whenever history lacks some, until ctx ends.
func (p *partition) rebuildLoop(ctx context.Context) {
	if lacks, _ := p.feed.Lacks(); !lacks && (p.history.rowsAgain || p.node.opts.RemoteLog && len(p.erasedProfiles()) > 0) {
		p.untilDone(ctx, "rows of erased profiles may be in history; trying again", func() error { return p.finishRebuild(ctx) })
		p.history.rebuilding.Store(false)
	}
	for {
		select {
		case <-p.feed.Lacking:
		case <-ctx.Done():
			return
		case <-p.failed.Done():
			return
		}
		p.history.repairs.Add(1)
		p.history.rebuilding.Store(true)
		p.untilDone(ctx, "history could not be rebuilt; trying again", func() error { return p.rebuildHistory(ctx) })
		p.history.rebuilding.Store(false)
	}
}

// untilDone calls do until it succeeds, ctx ends, the partition fails, or history has lost its rows once
// more, which the feed has noted and asks again for. Between two calls it logs failure, and
// pauses for 1 s at first and for a minute at most, if history is tried again after 5 s: a call
// may read far more than the rows of one batch.
func (p *partition) untilDone(ctx context.Context, failure string, do func() error) {
	first, longest := p.node.opts.Feed.RetryMax/5, 12*p.node.opts.Feed.RetryMax
	for wait := first; ; wait = min(2*wait, longest) {
		err := do()
		if err == nil || ctx.Err() != nil || p.failed.Err() != nil || errors.Is(err, query.ErrGap) {
			return
		}
		p.log.Error(failure, "retry_in", wait, "error", err)
		if pause.For(ctx, wait) != nil {
			return
		}
	}
}

// markRebuild makes dirRebuild durable if history is about to take rows that it may
// have had before, and reports whether it was there already.
func (p *partition) markRebuild(behind bool) (was bool, err error) {
	fs, dir := p.ckpt.FS, p.ckpt.Path(dirRebuild)
	if _, err := fs.Stat(dir); err == nil || !statefiles.IsNotExist(err) {
		return err == nil, err
	}
	if !behind {
		return false, nil
	}
	return false, errors.Join(fs.MkdirAll(dir, 0o700), statefiles.SyncDir(fs, p.ckpt.Root))
}

// judgeRebuild removes dirRebuild where no profile was erased among the records that
// history takes again. marked says that it was there before, stored is the position
// history had at the start.
func (p *partition) judgeRebuild(marked bool, stored int64) error {
	p.mu.RLock()
	erased := p.mu.m.ErasedBelow()
	p.mu.RUnlock()
	lacks, _ := p.feed.Lacks()
	p.history.rowsAgain = marked || erased > stored
	if lacks || p.history.rowsAgain {
		p.history.rebuilding.Store(true)
		return nil
	}
	return p.ckpt.FS.RemoveAll(p.ckpt.Path(dirRebuild))
}

// finishRebuild erases again what was erased, once history has all rows.
func (p *partition) finishRebuild(ctx context.Context) error {
	upTo := p.position.applied.Load()
	if err := p.feed.WaitStored(ctx, upTo); err != nil {
		if lacks, _ := p.feed.Lacks(); lacks {
			return nil // rebuildHistory is next, and erases as well
		}
		return err
	}
	if err := p.eraseAgain(ctx, upTo); err != nil {
		if errors.Is(err, query.ErrGap) {
			// The feed may not have noticed yet. Until it has, untilDone tries again: it ends at
			// a gap that the feed knows.
			p.feed.Compare()
			err = errors.New(err.Error())
		}
		return err
	}
	return p.ckpt.FS.RemoveAll(p.ckpt.Path(dirRebuild))
}

// rebuildHistory rebuilds all rows that history lacks. The files of the second machine
// go when its store is closed: Pebble compacts, and writes lists of files, until then.
func (p *partition) rebuildHistory(ctx context.Context) error {
	begun := time.Now() // for log lines only
	join, err := p.rebuildRows(ctx)
	if err != nil {
		return err
	}
	p.log.Info("history is complete again", "records", join, "took", time.Since(begun).Round(time.Millisecond))
	return p.ckpt.FS.RemoveAll(p.ckpt.Path(dirRebuild))
}

// rebuildRows does so, and returns the offset from which on history had its rows from
// the partition itself.
func (p *partition) rebuildRows(ctx context.Context) (join int64, err error) {
	stored, err := p.node.opts.History.Position(ctx, p.id)
	if err != nil {
		return 0, err
	}
	_, next := p.feed.Lacks()
	p.log.Warn("history lacks events; rebuilding it from the log. Events are taken and segments counted meanwhile", "has", stored, "records", next)
	b, err := p.openRebuild(stored)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.m.Close()) }()
	if b.log, err = p.node.opts.Log.Read(p.id, b.m.Next()); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.log.Close()) }()
	for pass := 0; ; pass++ {
		if err := b.run(ctx, next); err != nil {
			return 0, b.gap(err)
		}
		if _, next = p.feed.Lacks(); next-b.m.Next() <= joinWithin || pass == maxRebuildPasses {
			break
		}
	}
	join = p.feed.JoinAt()
	if err := b.run(ctx, join); err != nil {
		return 0, b.gap(err)
	}
	if err := p.eraseAgain(ctx, join); err != nil {
		return 0, b.gap(err)
	}
	p.feed.Rebuilt()
	return join, nil
}

// rebuild is the second machine.
type rebuild struct {
	p      *partition
	ckpt   *checkpoint.Dir
	m      *resolver.Machine
	log    eventlog.Reader
	rows   query.Batch
	out    resolver.Outcome
	logged time.Time
}

// openRebuild loads the newest state of a rebuilding that was cut off, if history
// has all rows below it, or the empty state.
func (p *partition) openRebuild(stored int64) (*rebuild, error) {
	b := &rebuild{p: p, logged: time.Now(), ckpt: &checkpoint.Dir{FS: p.ckpt.FS, Root: p.ckpt.Path(dirRebuild), Log: p.ckpt.Log,
		Damaged: p.ckpt.Damaged, Disk: p.ckpt.Disk, Fatal: p.ckpt.Fatal}}
	offsets, err := b.ckpt.List()
	if err != nil {
		return nil, err
	}
	for _, offset := range slices.Backward(offsets) {
		f, ids, err := b.ckpt.ReadManifest(offset)
		if err == nil && offset <= stored {
			err = b.ckpt.Verify(f)
		}
		if err != nil || offset > stored {
			continue
		}
		p.log.Info("the rebuilding of history continues where it was cut off", "records", offset)
		return b, b.load(checkpoint.Candidate{Manifest: f, IDs: ids})
	}
	// Its checkpoints are of no use, but it stays: it is a mark, too.
	if err := p.ckpt.FS.RemoveAll(b.ckpt.Path(checkpoint.DirCheckpoints)); err != nil {
		return nil, err
	}
	return b, b.load(checkpoint.Candidate{})
}

func (b *rebuild) load(c checkpoint.Candidate) (err error) {
	if _, err := b.p.markRebuild(true); err != nil {
		return err
	}
	if err := b.ckpt.Prepare(); err != nil {
		return err
	}
	b.m, err = resolver.LoadCheckpoint(b.ckpt, c.Manifest, c.IDs, b.p.node.opts.CacheBytes/4, b.p.log)
	if err == nil {
		b.rows = query.Batch{Partition: b.p.id, From: b.m.Next(), To: b.m.Next()}
	}
	return err
}

// run applies the records below to and stores their rows.
func (b *rebuild) run(ctx context.Context, to int64) error {
	for b.m.Next() < to {
		e, err := b.log.Next(ctx)
		if err != nil {
			return err
		}
		if err := b.apply(e); err != nil {
			return fmt.Errorf("record %d of partition %d: %w", e.Offset, b.p.id, err)
		}
		b.rows.To = b.m.Next()
		full := b.m.GenerationBytes() > b.p.node.opts.GenerationBytes && !b.m.Lagging()
		if b.rows.Rows() >= rebuildRows || b.rows.Bytes() >= rebuildBytes || full || b.m.Next() == to {
			if err := b.store(ctx); err != nil {
				return err
			}
		}
		if full {
			if err := b.checkpoint(); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply applies one record as the partition does.
func (b *rebuild) apply(e eventlog.Entry) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = panics.Wrap(r)
		}
	}()
	if b.p.node.skipped(b.p.id, e.Offset) {
		return b.m.Skip(e.Offset, e.Data)
	}
	return b.m.Apply(e.Offset, e.Data, &b.rows, &b.out)
}

func (b *rebuild) store(ctx context.Context) error {
	if err := b.p.feed.AppendRows(ctx, &b.rows); err != nil {
		return err
	}
	b.rows.Reset()
	b.rows.Partition, b.rows.From, b.rows.To = b.p.id, b.m.Next(), b.m.Next()
	b.p.feed.NoteRebuilt(b.m.Next())
	if now := time.Now(); now.Sub(b.logged) >= rebuildNote { // the pace of log lines is no logic
		b.logged = now
		_, next := b.p.feed.Lacks()
		b.p.log.Info("rebuilding history", "records", b.m.Next(), "of", next)
	}
	return nil
}

// checkpoint writes what changed to the machine's files, which frees its memory,
// and leaves a state to continue from.
func (b *rebuild) checkpoint() error { return b.m.MoveOn(b.ckpt, b.p.feed) }

// gap reports to the feed when history has lost its rows once more.
func (b *rebuild) gap(err error) error {
	if errors.Is(err, query.ErrGap) {
		b.p.feed.LackAll()
	}
	return err
}

// maxErasedAtOnce bounds what history is asked to erase at once.
const maxErasedAtOnce = 1000

// eraseAgain takes the rows of erased profiles, which the log still implies, out of
// history, as they were before.
func (p *partition) eraseAgain(ctx context.Context, upTo int64) error {
	erased := p.erasedProfiles()
	if err := p.failed.Err(); err != nil {
		return err // some may be erased in part only
	}
	for account, ordinals := range erased {
		for part := range slices.Chunk(ordinals, maxErasedAtOnce) {
			q := query.EraseQuery{Cut: query.Cut{Partition: p.id, UpTo: upTo}, Account: account, Ordinals: part}
			if err := p.node.opts.History.Erase(ctx, q); err != nil {
				return fmt.Errorf("erase again what was erased: %w", err)
			}
		}
	}
	return nil
}

// erasedProfiles lists the ordinals of erased profiles by account.
func (p *partition) erasedProfiles() (list map[uint64][]uint32) {
	p.with(func(m *resolver.Machine) { list = m.ErasedProfiles() })
	return list
}
