package fieldcolumns

import "math/bits"

// The share of the profiles, and the least number, that may have changed before reading
// them again is no better than a new scan.
const (
	changedShare = 4
	changedLeast = 4096
)

// changed is a set of ordinals.
type changed struct {
	bits []uint64
	n    int // of ordinals
	from int // no word below has any
	most int // of ordinals
}

func newChanged(profiles uint32) changed {
	return changed{bits: make([]uint64, (profiles+63)/64), most: max(changedLeast, int(profiles/changedShare))}
}

// add reports whether there are no more than may be.
func (c *changed) add(ordinal uint32) bool {
	w := int(ordinal / 64)
	for w >= len(c.bits) {
		c.bits = append(c.bits, 0)
	}
	if bit := uint64(1) << (ordinal % 64); c.bits[w]&bit == 0 {
		c.bits[w] |= bit
		c.n++
		c.from = min(c.from, w)
	}
	return c.n <= c.most
}

// take removes the smallest.
func (c *changed) take() (ordinal uint32, ok bool) {
	if c.n == 0 {
		c.from = len(c.bits)
		return 0, false
	}
	for c.bits[c.from] == 0 {
		c.from++
	}
	w := c.bits[c.from]
	c.bits[c.from] = w & (w - 1)
	c.n--
	return uint32(c.from)*64 + uint32(bits.TrailingZeros64(w)), true
}
