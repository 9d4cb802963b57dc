package node

import (
	"sync/atomic"
	"time"
)

// leastBetween is the least time between the end of a checkpoint and the beginning of
// one that is due by the amount of log. One that worked for longer is followed by a pause
// as long as that: such checkpoints work for half of the time at most.
const leastBetween = time.Second

// behind measures how much log a start would replay, in bytes of records. The
// goroutine that applies adds; whoever holds the partition's checkpoint lock does the
// rest; everybody may ask.
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

// late reports whether a crash would have a quarter more replayed than makes a
// checkpoint due: the one being written is then to be finished soon.
func (b *behind) late(amount int64) bool {
	return b.applied.Load()-b.written.Load() >= amount+amount/4
}

// noteApplied counts a record, and asks for a checkpoint when enough has come.
func (p *partition) noteApplied(bytes int) {
	p.behind.add(bytes)
	if !p.behind.due(p.node.opts.CheckpointLogBytes) {
		return
	}
	select {
	case p.checkpoint.dueByLog <- struct{}{}:
	default:
	}
}
