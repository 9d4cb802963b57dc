package node

import (
	"sync"
	"sync/atomic"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

// TransitionEvent is an entry or exit as it happens.
type TransitionEvent struct {
	query.Transition
	Profile resolver.ProfileID
}

// transitionBuffer is how many transitions a watcher may lag behind.
const transitionBuffer = 4096

// liveTransitions hands transitions to watchers. Without any it costs one load.
type liveTransitions struct {
	count atomic.Int32
	mu    sync.Mutex
	subs  map[*TransitionWatcher]struct{}
}

// TransitionWatcher receives the transitions of one segment.
type TransitionWatcher struct {
	// Events carries the transitions. It is closed when the watcher was too slow:
	// what it missed is in history, behind the last one it received. It is closed
	// as well when this node does not serve the account any more; Err tells.
	Events  chan TransitionEvent
	account uint64
	segment string
	from    int64
	live    *liveTransitions
	end     watchEnd
}

// WatchTransitions starts watching a segment; ok is false when too many watch
// already. The watcher of an account that is not served here has ended.
func (n *Node) WatchTransitions(account uint64, segment string) (w *TransitionWatcher, ok bool) {
	l := &n.transitions
	w = &TransitionWatcher{Events: make(chan TransitionEvent, transitionBuffer), account: account, segment: segment, live: l, end: newWatchEnd()}
	p, err := n.owner(account)
	if err != nil {
		w.finish(err)
		return w, true
	}
	// Nothing is applied meanwhile: what is not received is below from.
	p.mu.RLock()
	defer p.mu.RUnlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	// A release takes the partition away before it ends watchers.
	if _, err := n.owner(account); err != nil || p.mu.m == nil {
		w.finish(notOwner(p.id))
		return w, true
	}
	if len(l.subs) >= maxWatchers {
		return nil, false
	}
	if l.subs == nil {
		l.subs = map[*TransitionWatcher]struct{}{}
	}
	w.from = p.mu.m.Next()
	l.subs[w] = struct{}{}
	l.count.Store(int32(len(l.subs)))
	return w, true
}

// From is the offset from which on the watcher receives transitions; earlier
// ones are in history.
func (w *TransitionWatcher) From() int64 { return w.from }

// Err wraps [resolver.ErrNotOwner] once this node does not serve the account any more, and
// is nil when Events was closed for another reason.
func (w *TransitionWatcher) Err() error { return w.end.get() }

func (w *TransitionWatcher) finish(err error) {
	w.end.set(err)
	close(w.Events)
}

// Close ends watching.
func (w *TransitionWatcher) Close() {
	w.live.mu.Lock()
	defer w.live.mu.Unlock()
	w.live.drop(w)
}

// drop ends a subscription. The lock is held.
func (l *liveTransitions) drop(w *TransitionWatcher) {
	delete(l.subs, w)
	l.count.Store(int32(len(l.subs)))
}

// publish hands the transitions of a record to watchers. It is called by the
// goroutine that applies.
func (l *liveTransitions) publish(m *resolver.Machine, list []query.Transition) {
	if len(list) == 0 || l.count.Load() == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.subs {
		for i := range list {
			t := &list[i]
			if t.Account != w.account || t.Segment != w.segment || t.Key.Offset < w.from {
				continue
			}
			id, _ := m.Profile(t.Account, t.Ordinal)
			select {
			case w.Events <- TransitionEvent{*t, id}:
				continue
			default:
			}
			close(w.Events)
			l.drop(w)
			break
		}
	}
}
