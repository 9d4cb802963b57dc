package node

import (
	"sync"
	"sync/atomic"

	"github.com/musterhq/muster/eventlog"
)

// lease says whether this node holds the partition: the owner alone carries out effects, and the
// log says who that is.
type lease struct {
	clustered bool          // other nodes may hold it as well; does not change
	newest    atomic.Uint64 // number of the newest epoch applied
	own       atomic.Uint64 // number of this partition's newest epoch of its own, 0 for none
	ended     atomic.Bool   // no effect is begun any more; set while mu is held

	mu struct {
		sync.Mutex
		record  eventlog.RecordID // of the epoch record under way
		effects int               // under way
		idle    chan struct{}     // closed when none is; nil unless asked for
	}
}

// held reports whether the newest epoch is this node's, and which it is. Embedded
// there is none: its number is 0. A partition that has known epochs is a
// cluster's, and not of a node without an id.
func (l *lease) held() (epoch uint64, ok bool) {
	newest := l.newest.Load() // before own: see note
	own := l.own.Load()
	return own, own == newest && (own != 0) == l.clustered
}

// active reports whether this node holds the lease and may still begin effects, and the
// number of its epoch.
func (l *lease) active() (epoch uint64, ok bool) {
	epoch, ok = l.held()
	return epoch, ok && !l.ended.Load()
}

// ask notes the record that is to begin an epoch of this node's.
func (l *lease) ask(record eventlog.RecordID) {
	l.mu.Lock()
	l.mu.record = record
	l.mu.Unlock()
}

// note notes the newest epoch of the state; id is that of the record just applied. won
// says that the lease is this node's now, lost that it was until now.
func (l *lease) note(newest uint64, id eventlog.RecordID) (won, lost bool) {
	before := l.newest.Load()
	l.mu.Lock()
	won = l.mu.record == id && id != eventlog.RecordID{}
	l.mu.Unlock()
	_, held := l.held()
	if won {
		l.own.Store(newest)
	}
	l.newest.Store(newest)
	return won, !won && held && before != 0
}

// effect begins an effect under an epoch, which end ends; ok is false when the node does
// not hold the partition under the epoch any more.
func (l *lease) effect(epoch uint64) (end func(), ok bool) {
	if epoch == 0 && !l.clustered {
		_, ok := l.active()
		return func() {}, ok
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if now, ok := l.active(); !ok || now != epoch {
		return nil, false
	}
	l.mu.effects++
	return l.endEffect, true
}

func (l *lease) endEffect() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.effects--; l.mu.effects == 0 && l.mu.idle != nil {
		close(l.mu.idle)
		l.mu.idle = nil
	}
}

// end lets no effect begin any more. It returns a channel that is closed when those under
// way have ended, nil when there are none.
func (l *lease) end() (idle <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended.Store(true)
	if l.mu.effects == 0 {
		return nil
	}
	l.mu.idle = make(chan struct{})
	return l.mu.idle
}
