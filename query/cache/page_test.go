package cache

import (
	"math/rand/v2"
	"testing"

	"github.com/musterhq/muster/segment"
)

// TestPackedPagesAreThoseBefore: pages of which any number of profiles has events are, packed, what
// they were.
func TestPackedPagesAreThoseBefore(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	type place struct {
		n, some uint32
		sum     segment.Int128
		ext     int64
	}
	for _, fn := range []segment.Fn{"", segment.FnSum, segment.FnMax, segment.FnDistinct} {
		some, sum, ext := columns(fn)
		for range 200 {
			pages, want := make([]*page, 1+rnd.IntN(6)), map[int]place{}
			for i := range pages {
				if rnd.IntN(8) == 0 {
					continue // there is none
				}
				p := newPage(fn)
				for _, at := range rnd.Perm(pageSize)[:[]int{0, 1, 2, rnd.IntN(pageSize), packWithin, packWithin + 1, pageSize}[rnd.IntN(7)]] {
					x := place{n: []uint32{1, 2, 1 << 31, 1<<32 - 1}[rnd.IntN(4)]}
					p.n[at] = x.n
					if some {
						x.some = rnd.Uint32()
						p.some[at] = x.some
					}
					if sum {
						x.sum = segment.Micros(rnd.Int64())
						p.sum[at] = x.sum
					}
					if ext {
						x.ext = rnd.Int64()
						p.ext[at] = x.ext
					}
					want[i*pageSize+at] = x
				}
				pages[i] = p
			}
			pack(pages, fn, func(int) bool { return true })
			for i, p := range pages {
				if p == nil {
					continue
				}
				for k, n := range p.n {
					at := k
					if p.slots != nil {
						at = int(p.slots[k])
					} else if n == 0 {
						continue
					}
					x := place{n: n}
					if some {
						x.some = p.some[k]
					}
					if sum {
						x.sum = p.sum[k]
					}
					if ext {
						x.ext = p.ext[k]
					}
					o := i*pageSize + at
					if have, ok := want[o]; !ok || x != have {
						t.Fatalf("%q: ordinal %d has %+v, want %+v (there and not twice: %t)", fn, o, x, have, ok)
					}
					delete(want, o)
				}
			}
			if len(want) > 0 {
				t.Fatalf("%q: %d profiles are missing", fn, len(want))
			}
		}
	}
}
