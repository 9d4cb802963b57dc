package live

import (
	"sync"
	"sync/atomic"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

// Transition is an entry or exit as it happens.
type Transition struct {
	query.Transition
	Profile resolver.ProfileID
}

// transitionBuffer is how many transitions a watcher may lag behind.
const transitionBuffer = 4096

// Transitions hands transitions to watchers. Without any it costs one load. The zero value
// is ready for use; it is safe for concurrent use.
type Transitions struct {
	count atomic.Int32
	mu    sync.Mutex
	subs  map[*TransitionWatcher]struct{}
}

// TransitionWatcher receives the transitions of one segment.
type TransitionWatcher struct {
	// Events carries the transitions. It is closed when the watcher was too slow:
	// what it missed is in history, behind the last one it received. It is closed
	// as well when this node does not serve the account any more; Err says which.
	Events  chan Transition
	account uint64
	segment string
	from    int64
	live    *Transitions
	end     watchEnd
}

// Watchers is how many watch.
func (l *Transitions) Watchers() int { return int(l.count.Load()) }

// NotServed is a watcher of an account that is not served here, for a reason.
func NotServed(reason error) *TransitionWatcher {
	w := &TransitionWatcher{Events: make(chan Transition), end: newWatchEnd()}
	w.finish(reason)
	return w
}

// Watch starts watching a segment from a record's offset on, before which nothing is
// applied meanwhile; ok is false when too many watch already. served is as in
// [Events.Watch].
func (l *Transitions) Watch(account uint64, segment string, from int64, served func() error) (w *TransitionWatcher, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := served(); err != nil {
		return NotServed(err), true
	}
	if len(l.subs) >= maxWatchers {
		return nil, false
	}
	if l.subs == nil {
		l.subs = map[*TransitionWatcher]struct{}{}
	}
	w = &TransitionWatcher{Events: make(chan Transition, transitionBuffer), account: account, segment: segment, from: from, live: l, end: newWatchEnd()}
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
	if w.live == nil {
		return // it never watched
	}
	w.live.mu.Lock()
	defer w.live.mu.Unlock()
	w.live.drop(w)
}

// drop ends a subscription. The lock is held.
func (l *Transitions) drop(w *TransitionWatcher) {
	delete(l.subs, w)
	l.count.Store(int32(len(l.subs)))
}

// Send hands the transitions of a record to watchers. It is called by the
// goroutine that applies.
func (l *Transitions) Send(m *resolver.Machine, list []query.Transition) {
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
			case w.Events <- Transition{*t, id}:
				continue
			default:
			}
			close(w.Events)
			l.drop(w)
			break
		}
	}
}
