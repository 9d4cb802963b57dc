package node

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/wake"
)

// checkpointing is when a partition's checkpoints are due, and what became of them. The
// mutex is held from the freeze of one to its end.
type checkpointing struct {
	sync.Mutex
	due      chan struct{} // as soon as can be
	dueByLog chan struct{} // heeded after a pause
	finished *wake.Broadcast
	// held is what was frozen and could not be written: it is nowhere else, so it is
	// written before anything else is frozen.
	held *checkpoint.Frozen
	// urgent is how many wait for one, or need one: it is written without pauses.
	urgent atomic.Int32
	// first is whether the one that follows the replay of a start is still to be written. It
	// is written without pauses: a process that ends again soon would leave the next start
	// the same replay.
	first atomic.Bool
	// pruning is held while checkpoints are removed or linked.
	pruning sync.Mutex
	behind  behind
	last    atomic.Int64 // offset of the newest one

	// For metrics.
	written, writtenNs, freezeMaxNs atomic.Int64
}

func newCheckpointing() *checkpointing {
	return &checkpointing{due: make(chan struct{}, 1), dueByLog: make(chan struct{}, 1), finished: wake.NewBroadcast()}
}

// request asks for a checkpoint of at least what is applied now. It is not lost while
// another one is being written, which may have begun too early, or end without having
// written anything.
func (c *checkpointing) request() { poke(c.due) }

// requestFirst is request after the replay of a start.
func (c *checkpointing) requestFirst() {
	c.first.Store(true)
	c.request()
}

// noteApplied counts records of so many bytes, and asks for a checkpoint when amount has
// come.
func (c *checkpointing) noteApplied(bytes int, amount int64) {
	c.behind.add(bytes)
	if c.behind.due(amount) {
		poke(c.dueByLog)
	}
}

// noteFreeze notes how long Apply has waited for a freeze. The mutex is held.
func (c *checkpointing) noteFreeze(took time.Duration) {
	c.freezeMaxNs.Store(max(c.freezeMaxNs.Load(), int64(took)))
}

// wrote notes that what was frozen is written: the checkpoint at the offset is whole. The
// mutex is held.
func (c *checkpointing) wrote(offset int64, took time.Duration) {
	c.held = nil
	c.last.Store(offset)
	c.behind.wrote()
	c.first.Store(false)
	c.written.Add(1)
	c.writtenNs.Add(int64(took))
	c.finished.Signal()
}

// lateShare is the part of its pauses that a late checkpoint takes: work and pauses are as long.
const lateShare = 8

// throttled is what the checkpoint that is being written takes of a pause. It is late when a
// crash would have an eighth more replayed than makes one due; with a quarter it takes none.
func (c *checkpointing) throttled(pause time.Duration, amount int64) time.Duration {
	switch late := c.behind.unwritten() - amount; {
	case c.urgent.Load() > 0, c.first.Load(), late >= amount/4:
		return 0
	case late >= amount/8:
		return pause / lateShare
	}
	return pause
}

// poke leaves a signal in a channel that has room for one.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// leastBetween is the least time between the end of a checkpoint and the beginning of one that is
// due by the amount of log. After one that worked for longer it is as long as that work.
const leastBetween = time.Second

// behind measures how much log a start would replay, in bytes of records. The goroutine that
// applies adds; the holder of the partition's checkpoint lock does the rest; all may ask.
type behind struct {
	applied atomic.Int64 // bytes applied since the partition was loaded
	frozen  atomic.Int64 // applied at the newest freeze
	written atomic.Int64 // applied at the freeze of the newest checkpoint that is whole
}

// add counts a record that was applied.
func (b *behind) add(bytes int) { b.applied.Add(int64(bytes)) }

// freeze notes that what is applied so far is about to be written. The machine's
// lock is held.
func (b *behind) freeze() { b.frozen.Store(b.applied.Load()) }

// wrote notes that what was frozen is written.
func (b *behind) wrote() { b.written.Store(b.frozen.Load()) }

// due reports whether so many bytes were applied since the newest freeze that it is
// time for another checkpoint.
func (b *behind) due(amount int64) bool { return b.applied.Load()-b.frozen.Load() >= amount }

// unwritten is how much a crash would have replayed.
func (b *behind) unwritten() int64 { return b.applied.Load() - b.written.Load() }
