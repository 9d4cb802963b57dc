package node

import "sync/atomic"

// watchEnd tells a watcher that no more will come.
type watchEnd struct {
	ended chan struct{}
	err   *atomic.Pointer[error]
}

func newWatchEnd() watchEnd { return watchEnd{make(chan struct{}), new(atomic.Pointer[error])} }

// set says why; it is called once.
func (e *watchEnd) set(err error) {
	e.err.Store(&err)
	close(e.ended)
}

func (e *watchEnd) get() error {
	if err := e.err.Load(); err != nil {
		return *err
	}
	return nil
}

// release ends the watchers of a partition that was released.
func (l *liveEvents) release(n *Node, partition int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.subs {
		if n.PartitionOf(w.account) == partition {
			w.end.set(notOwner(partition))
			delete(l.subs, w)
		}
	}
	l.count.Store(int32(len(l.subs)))
}

// release ends the watchers of a partition that was released.
func (l *liveTransitions) release(n *Node, partition int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.subs {
		if n.PartitionOf(w.account) == partition {
			w.finish(notOwner(partition))
			l.drop(w)
		}
	}
}
