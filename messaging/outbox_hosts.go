package messaging

import "sync"

// maxParked is how many calls of an account wait for turns at hosts. While there
// are so many, no more of the account's are looked at: those of other hosts wait
// behind them, and those of other accounts do not.
const maxParked = 1024

// callHosts bounds how many calls are under way to one host. Those beyond wait
// without a goroutine and without a place of the outbox: slow hosts hold back no
// others. It is safe for concurrent use.
type callHosts struct {
	perHost int

	mu struct {
		sync.Mutex
		running   map[string]int      // by host
		waiting   map[string][]flight // by host, in the order in which they came
		parked    map[flight]struct{} // all that wait
		ofAccount map[uint64]int      // how many of them an account has
	}
}

func newCallHosts(perHost int) *callHosts {
	h := &callHosts{perHost: perHost}
	h.mu.running, h.mu.waiting = map[string]int{}, map[string][]flight{}
	h.mu.parked, h.mu.ofAccount = map[flight]struct{}{}, map[uint64]int{}
	return h
}

// enter gives a turn, which leave ends. Without one, the item waits.
func (h *callHosts) enter(host string, f flight) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.running[host] < h.perHost {
		h.mu.running[host]++
		return true
	}
	h.mu.waiting[host] = append(h.mu.waiting[host], f)
	h.mu.parked[f] = struct{}{}
	h.mu.ofAccount[f.account]++
	return false
}

// leave ends a turn. The item that has waited longest may be carried out then.
// It may be gone from the state by now, so the last turn to end lets all go, and
// none is forgotten.
func (h *callHosts) leave(host string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.running[host]--
	list := h.mu.waiting[host]
	n := min(1, len(list))
	if h.mu.running[host] == 0 {
		delete(h.mu.running, host)
		n = len(list)
	}
	for _, f := range list[:n] {
		delete(h.mu.parked, f)
		if h.mu.ofAccount[f.account]--; h.mu.ofAccount[f.account] == 0 {
			delete(h.mu.ofAccount, f.account)
		}
	}
	if n == len(list) {
		delete(h.mu.waiting, host)
		return
	}
	h.mu.waiting[host] = list[n:]
}

// waits reports whether an item waits for a turn.
func (h *callHosts) waits(f flight) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.mu.parked[f]
	return ok
}

// room is how many more items of an account may wait.
func (h *callHosts) room(account uint64) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maxParked - h.mu.ofAccount[account]
}
