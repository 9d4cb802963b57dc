package catalog

import "math/bits"

const (
	// lookAll is how many objects are looked at before sampling begins.
	lookAll = 1000
	// maxRarity is the binary logarithm of how many objects there are for each that is
	// looked at, in the end.
	maxRarity = 6
)

// Sampled reports whether the object with this number, from 0, is to be looked at: all of
// the first 1,000, then one in 2 up to the 2,000th, one in 4 up to the 4,000th, and so on
// down to one in 64. Which ones is spread evenly, without a period that the objects might
// have, too.
func Sampled(n uint64) bool {
	if n < lookAll {
		return true
	}
	rarity := min(bits.Len64(n/lookAll), maxRarity)
	// The finisher of SplitMix64.
	n ^= n >> 30
	n *= 0xbf58476d1ce4e5b9
	n ^= n >> 27
	n *= 0x94d049bb133111eb
	n ^= n >> 31
	return n&(1<<rarity-1) == 0
}
