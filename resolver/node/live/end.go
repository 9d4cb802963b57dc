package live

import "sync/atomic"

// watchEnd signals a watcher that no more will come.
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

// End ends the watchers of accounts that are not served any more, with the reason.
func (l *Events) End(gone func(account uint64) bool, reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.subs {
		if gone(w.account) {
			w.end.set(reason)
			delete(l.subs, w)
		}
	}
	l.count.Store(int32(len(l.subs)))
}

// End ends the watchers of accounts that are not served any more, with the reason.
func (l *Transitions) End(gone func(account uint64) bool, reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.subs {
		if gone(w.account) {
			w.finish(reason)
			l.drop(w)
		}
	}
}
