// Package lowpriority runs work that nobody waits for on threads that give way to the rest of
// the process where processors are short.
package lowpriority

import "runtime"

// Do calls fn on a thread of low priority and returns when fn has. Threads that fn starts
// outside of Go have that priority as well, for good; goroutines that it starts do not. On
// systems other than Linux, where a process may not lower a single thread, it calls fn as it is.
func Do(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if isMainThread() {
			// It would stay low for good and be shown as the process's. While it waits here the
			// other goroutine has another thread.
			Do(fn)
			runtime.UnlockOSThread()
			return
		}
		// It is not unlocked: a thread may not raise its priority again, and ends with its
		// goroutine.
		lower()
		fn()
	}()
	<-done
}
