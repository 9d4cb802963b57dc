package trackingapi

import (
	"math"
	"net/netip"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// The bounds of what one client address may send under browsers' keys of an account. A page
// sends a few events a second; an office shares an address. A key itself has no rate: an
// attacker could use it up and silence the shop.
const (
	floodEvents = 500    // a second, in the long run
	floodBurst  = 20_000 // events at once
	// maxAddresses bounds the addresses that are remembered.
	maxAddresses = 20_000
)

// floods counts the events of client addresses. The zero value is ready.
type floods struct {
	mu struct {
		sync.Mutex // guards spent
		// spent has how many events an address has sent beyond what time has given back.
		spent map[sender]spending
	}
}

// sender is a client of an account's browser keys.
type sender struct {
	account uint64
	address netip.Prefix
}

// spending is a number of events as of an instant.
type spending struct {
	events float64
	at     time.Time
}

// senderOf is who sends a request. Of an IPv6 address the first 64 bits count: the others
// are the client's own to choose.
func senderOf(ctx *fasthttp.RequestCtx, account uint64) sender {
	addr, _ := netip.AddrFromSlice(ctx.RemoteIP())
	addr = addr.Unmap()
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // no address is one of its own
	return sender{account, p}
}

// wait is how long a sender is to wait before the next request, 0 where it need not.
func (f *floods) wait(s sender, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	over := f.mu.spent[s].left(now) - floodBurst
	if over <= 0 {
		return 0
	}
	return min(maxRetryAfter, time.Duration(math.Ceil(over/floodEvents))*time.Second)
}

// count notes events of a sender.
func (f *floods) count(s sender, events int, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.spent == nil {
		f.mu.spent = map[sender]spending{}
	}
	if _, known := f.mu.spent[s]; !known && len(f.mu.spent) >= maxAddresses {
		f.forget(now)
	}
	// The debt is bounded, so that the pause that is asked for is always enough.
	most := float64(floodBurst) + floodEvents*maxRetryAfter.Seconds()
	f.mu.spent[s] = spending{min(most, f.mu.spent[s].left(now)+float64(events)), now}
}

// forget makes room: senders that owe nothing go, and where all do, half of them.
func (f *floods) forget(now time.Time) {
	for s, x := range f.mu.spent {
		if x.left(now) == 0 {
			delete(f.mu.spent, s)
		}
	}
	for s := range f.mu.spent {
		if len(f.mu.spent) <= maxAddresses/2 {
			break
		}
		delete(f.mu.spent, s)
	}
}

// left is what is left of a spending at a later instant.
func (x spending) left(now time.Time) float64 {
	return max(0, x.events-floodEvents*now.Sub(x.at).Seconds())
}
