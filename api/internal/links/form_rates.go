package links

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// How often forms are taken in a minute: from one network, and of one form from all. A form
// without the token of the hosted page shows nothing of when it was opened, so fewer are taken.
const (
	hostedPerClient, hostedPerForm     = 20, 600
	embeddedPerClient, embeddedPerForm = 6, 120
	rateSlots                          = 1 << 14
)

// formRates bounds how often forms are taken. Several share a slot; the one that comes counts
// from zero, so that none is held to another's count.
type formRates struct {
	seed maphash.Seed
	mu   struct {
		sync.Mutex // guards slots
		slots      []trackSlot
	}
}

func newFormRates() *formRates {
	r := &formRates{seed: maphash.MakeSeed()}
	r.mu.slots = make([]trackSlot, rateSlots)
	return r
}

// allow reports whether one more is taken in this minute.
func (r *formRates) allow(now time.Time, form string, client netip.Addr, hosted bool) bool {
	perClient, perForm, kind := embeddedPerClient, embeddedPerForm, "e"
	if hosted {
		perClient, perForm, kind = hostedPerClient, hostedPerForm, "h"
	}
	bits := 32
	if client = client.Unmap().WithZone(""); client.Is6() {
		bits = 64 // what one customer of a provider has
	}
	from := "?"
	if client.IsValid() {
		from = netip.PrefixFrom(client, bits).Masked().String()
	}
	minute := now.UnixMilli() / 60_000
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count(kind+form+"\x00"+from, minute) <= perClient && r.count(kind+form, minute) <= perForm
}

// allowPerson reports whether one more call for a person's in-app messages is taken in this
// minute.
func (r *formRates) allowPerson(now time.Time, account, person string) bool {
	minute := now.UnixMilli() / 60_000
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count("p"+account+"\x00"+person, minute) <= inboxPerPerson && r.count("p"+account, minute) <= inboxPerAccount
}

func (r *formRates) count(name string, minute int64) int {
	h := maphash.String(r.seed, name)
	s := &r.mu.slots[h%rateSlots]
	if s.link != h || s.minute != minute {
		*s = trackSlot{link: h, minute: minute}
	}
	s.count++
	return s.count
}
