package outbox

import (
	"cmp"
	"container/heap"
)

// dueHeap orders items by the time they are due, then by number.
type dueHeap struct{ items []*Item }

func byDue(x, y *Item) int {
	return cmp.Or(cmp.Compare(x.DueMs, y.DueMs), cmp.Compare(x.Seq, y.Seq))
}

func (h *dueHeap) push(it *Item)   { heap.Push((*dueOrder)(h), it) }
func (h *dueHeap) remove(it *Item) { heap.Remove((*dueOrder)(h), it.at) }
func (h *dueHeap) fix(it *Item)    { heap.Fix((*dueOrder)(h), it.at) }

// ready reports whether some item is due.
func (h *dueHeap) ready(nowMs int64) bool { return len(h.items) > 0 && h.items[0].DueMs <= nowMs }

// page lists items due at untilMs in order, limit at most, without those that
// skip names. It changes nothing: a heap's smallest items are found by walking
// down from its top. The work is in proportion to what is listed and skipped.
func (h *dueHeap) page(untilMs int64, limit int, skip func(*Item) bool) []*Item {
	f := frontier{h: h}
	add := func(i int) {
		if i < len(h.items) && h.items[i].DueMs <= untilMs {
			heap.Push(&f, i)
		}
	}
	var out []*Item
	for add(0); len(f.at) > 0 && len(out) < limit; {
		i := heap.Pop(&f).(int)
		if it := h.items[i]; !skip(it) {
			out = append(out, it)
		}
		add(2*i + 1)
		add(2*i + 2)
	}
	return out
}

// dueOrder is the heap for package heap; items know their place.
type dueOrder dueHeap

func (h *dueOrder) Len() int           { return len(h.items) }
func (h *dueOrder) Less(i, j int) bool { return byDue(h.items[i], h.items[j]) < 0 }
func (h *dueOrder) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].at, h.items[j].at = i, j
}

func (h *dueOrder) Push(x any) {
	it := x.(*Item)
	it.at = len(h.items)
	h.items = append(h.items, it)
}

func (h *dueOrder) Pop() any {
	n := len(h.items) - 1
	it := h.items[n]
	h.items[n], h.items = nil, h.items[:n]
	it.at = -1
	return it
}

// frontier is the places of a heap that may hold the next smallest item.
type frontier struct {
	h  *dueHeap
	at []int
}

func (f *frontier) Len() int           { return len(f.at) }
func (f *frontier) Less(i, j int) bool { return byDue(f.h.items[f.at[i]], f.h.items[f.at[j]]) < 0 }
func (f *frontier) Swap(i, j int)      { f.at[i], f.at[j] = f.at[j], f.at[i] }
func (f *frontier) Push(x any)         { f.at = append(f.at, x.(int)) }
func (f *frontier) Pop() any {
	n := len(f.at) - 1
	x := f.at[n]
	f.at = f.at[:n]
	return x
}
