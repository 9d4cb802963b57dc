package resolver

import (
	"sync"
	"sync/atomic"

	"github.com/musterhq/muster/eventlog"
)

// LiveEvent is an event as it arrives, for people who watch.
type LiveEvent struct {
	Profile    ProfileID
	EventType  string
	TimeMs     int64
	Properties string
}

// liveBuffer is how many events a watcher may lag behind; more are dropped for
// that watcher and counted.
const liveBuffer = 256

// maxWatchers bounds the watchers of a node.
const maxWatchers = 100

// liveEvents hands applied events to watchers. Without any it costs one load.
type liveEvents struct {
	count atomic.Int32
	mu    sync.Mutex
	subs  map[*Watcher]struct{}
}

// Watcher receives the events of one account.
type Watcher struct {
	// Events carries the events; it is never closed.
	Events  chan LiveEvent
	account uint64
	dropped atomic.Uint64
	live    *liveEvents
	end     watchEnd
}

// Watch starts watching an account; ok is false when too many watch already. The
// watcher of an account that is not served here has ended.
func (n *Node) Watch(account uint64) (w *Watcher, ok bool) {
	l := &n.live
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.subs) >= maxWatchers {
		return nil, false
	}
	if l.subs == nil {
		l.subs = map[*Watcher]struct{}{}
	}
	w = &Watcher{Events: make(chan LiveEvent, liveBuffer), account: account, live: l, end: newWatchEnd()}
	// A release takes the partition away before it ends watchers.
	if _, err := n.owner(account); err != nil {
		w.end.set(err)
		return w, true
	}
	l.subs[w] = struct{}{}
	l.count.Store(int32(len(l.subs)))
	return w, true
}

// Dropped is how many events the watcher was too slow for.
func (w *Watcher) Dropped() uint64 { return w.dropped.Load() }

// Ended is closed when no events come any more; Err then says why.
func (w *Watcher) Ended() <-chan struct{} { return w.end.ended }

// Err wraps [ErrNotOwner] once this node does not serve the account any more, and
// is nil before.
func (w *Watcher) Err() error { return w.end.get() }

// Close ends watching.
func (w *Watcher) Close() {
	w.live.mu.Lock()
	defer w.live.mu.Unlock()
	delete(w.live.subs, w)
	w.live.count.Store(int32(len(w.live.subs)))
}

func (l *liveEvents) publish(env eventlog.Envelope, data []byte, out *Outcome) {
	if l.count.Load() == 0 {
		return
	}
	r, err := eventlog.NewEventsReader(data[eventlog.EnvelopeSize:])
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var ev eventlog.Event
	for i := 0; r.Next(&ev) && i < len(out.Events); i++ {
		o := &out.Events[i]
		if o.Status != EventAccepted {
			continue
		}
		for w := range l.subs {
			if w.account != env.Account {
				continue
			}
			select {
			case w.Events <- LiveEvent{o.Profile, string(ev.Type), env.StampMs, string(ev.Properties)}:
			default:
				w.dropped.Add(1)
			}
		}
	}
}
