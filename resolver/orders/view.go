package orders

import (
	"slices"

	"github.com/musterhq/muster/resolver/internal/identifier"
)

// Summary is a person's orders in figures.
type Summary struct {
	Totals  []CurrencyFigures // by currency
	FirstMs int64             // time of the first order, 0 before it
	LastMs  int64
	Cart    *Cart // the newest one, nil for none
	// Ordered says that an order_placed followed the cart.
	Ordered bool
}

// HasOpenCart reports whether the newest cart has something in it, and no order_placed followed.
func (s *State) HasOpenCart(ordinal uint32) bool {
	x := s.Summary(ordinal)
	return x.Cart != nil && !x.Cart.Empty && (x.Cart.Count > 0 || x.Cart.Total > 0) && !x.Ordered
}

// Summary is the orders of a profile in figures.
func (s *State) Summary(ordinal uint32) Summary {
	r := s.record(ordinal)
	return Summary{Totals: r.Totals, FirstMs: r.FirstMs, LastMs: r.LastMs, Cart: r.Cart, Ordered: r.Cart != nil && max(r.LastMs, r.BoughtMs) >= r.Cart.AtMs}
}

// Position is a place in the list of a profile's orders.
type Position struct {
	AtMs int64
	Hash identifier.Hash
}

// Orders lists a profile's orders, the newest first, of those before a place; nil is the
// beginning. next is nil behind the last page. Refunds that wait for their orders are not
// listed.
func (s *State) Orders(ordinal uint32, before *Position, limit int) (out []Order, next *Position) {
	list := s.list(ordinal)
	if before != nil {
		i, _ := slices.BinarySearchFunc(list, entry{before.AtMs, before.Hash}, compareEntries)
		list = list[:i]
	}
	for i, e := range slices.Backward(list) {
		if x := s.order(e.hash); x.Placed {
			out = append(out, *x)
		}
		if len(out) == limit && i > 0 {
			return out, &Position{e.atMs, e.hash}
		}
	}
	return out, nil
}

// Get finds an order by its id, and the profile that has it.
func (s *State) Get(id string) (x Order, ordinal uint32, ok bool) {
	var buf []byte
	o := s.order(s.host.HashOrder(id, &buf))
	if o == nil || !o.Placed || identifier.IsMasked(id) {
		return Order{}, 0, false
	}
	return *o, s.host.Root(o.Ordinal), true
}
