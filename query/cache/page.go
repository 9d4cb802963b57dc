package cache

import (
	"sync"

	"github.com/musterhq/muster/internal/bit"
	"github.com/musterhq/muster/segment"
)

const (
	pageBits = 8
	pageSize = 1 << pageBits
	pageMask = pageSize - 1
)

// page is the profiles of as many ordinals, column by column. One that is being filled has
// a place for each of them. When it is finished, and few have events, it has those alone,
// beside those of other pages: to be read in order, from a quarter of the memory.
type page struct {
	slots []uint8  // which ordinals the places are of, ascending; nil: each has its own
	n     []uint32 // matching events
	some  []uint32 // those with a value, or the different ones
	sum   []segment.Int128
	ext   []int64 // the least or greatest value
}

// columns are what pages of a function have.
func columns(fn segment.Fn) (some, sum, ext bool) {
	switch fn {
	case segment.FnSum, segment.FnAvg:
		return true, true, false
	case segment.FnMin, segment.FnMax:
		return true, false, true
	}
	return fn != "", false, false
}

// openPages are empty pages to be filled, by whether they have values, sums and extremes:
// a question fills thousands, and has them for as long as it is asked.
var openPages [2][2][2]sync.Pool

func openPagesOf(some, sum, ext bool) *sync.Pool {
	return &openPages[bit.Of(some)][bit.Of(sum)][bit.Of(ext)]
}

func newPage(fn segment.Fn) *page {
	if p, _ := openPagesOf(columns(fn)).Get().(*page); p != nil {
		clear(p.n)
		clear(p.some)
		clear(p.sum)
		clear(p.ext)
		return p
	}
	p := &page{n: make([]uint32, pageSize)}
	some, sum, ext := columns(fn)
	if some {
		p.some = make([]uint32, pageSize)
	}
	if sum {
		p.sum = make([]segment.Int128, pageSize)
	}
	if ext {
		p.ext = make([]int64, pageSize)
	}
	return p
}

// open is a copy to be filled.
func (p *page) open(fn segment.Fn) *page {
	out := newPage(fn)
	if p.slots == nil {
		copy(out.n, p.n)
		copy(out.some, p.some)
		copy(out.sum, p.sum)
		copy(out.ext, p.ext)
		return out
	}
	for k, at := range p.slots {
		out.n[at] = p.n[k]
		if p.some != nil {
			out.some[at] = p.some[k]
		}
		if p.sum != nil {
			out.sum[at] = p.sum[k]
		}
		if p.ext != nil {
			out.ext[at] = p.ext[k]
		}
	}
	return out
}

func (p *page) bytes() int64 {
	return int64(len(p.slots) + 4*len(p.n) + 4*len(p.some) + 16*len(p.sum) + 8*len(p.ext) + 128)
}

// filled is how many profiles have events.
func (p *page) filled() (n int) {
	for _, events := range p.n {
		n += bit.Of(events > 0)
	}
	return n
}

// packWithin is the share of a page that may be filled for it to be packed.
const packWithin = pageSize / 2

// pack puts the pages in place of which open ones were filled into as little memory as
// they need, one behind the other. The caller alone may use the open ones.
func pack(pages []*page, fn segment.Fn, was func(i int) bool) {
	filled, places, packed := make([]int, len(pages)), 0, 0
	for i, p := range pages {
		if p == nil || p.slots != nil || !was(i) {
			filled[i] = -1
			continue
		}
		if filled[i] = p.filled(); filled[i] > packWithin {
			filled[i] = -1
			continue
		}
		places, packed = places+filled[i], packed+1
	}
	if packed == 0 {
		return
	}
	all := page{slots: make([]uint8, places+1), n: make([]uint32, places)}
	some, sum, ext := columns(fn)
	if some {
		all.some = make([]uint32, places)
	}
	if sum {
		all.sum = make([]segment.Int128, places)
	}
	if ext {
		all.ext = make([]int64, places)
	}
	out := make([]page, 0, packed)
	free := openPagesOf(some, sum, ext)
	for i, n := range filled {
		if n < 0 {
			continue
		}
		p := pages[i]
		if n == 0 {
			pages[i] = nil
			free.Put(p)
			continue
		}
		k := 0
		for at, events := range p.n {
			all.slots[k] = uint8(at)
			k += bit.Of(events > 0) // else the next one takes its place
		}
		slots := all.slots[:n]
		for k, at := range slots {
			all.n[k] = p.n[at]
		}
		if some {
			for k, at := range slots {
				all.some[k] = p.some[at]
			}
		}
		if sum {
			for k, at := range slots {
				all.sum[k] = p.sum[at]
			}
		}
		if ext {
			for k, at := range slots {
				all.ext[k] = p.ext[at]
			}
		}
		out = append(out, all.take(n))
		pages[i] = &out[len(out)-1]
		free.Put(p)
	}
}

// take takes the first k places off the columns.
func (p *page) take(k int) page {
	out := page{slots: p.slots[:k:k], n: p.n[:k:k]}
	p.slots, p.n = p.slots[k:], p.n[k:]
	if p.some != nil {
		out.some, p.some = p.some[:k:k], p.some[k:]
	}
	if p.sum != nil {
		out.sum, p.sum = p.sum[:k:k], p.sum[k:]
	}
	if p.ext != nil {
		out.ext, p.ext = p.ext[:k:k], p.ext[k:]
	}
	return out
}
