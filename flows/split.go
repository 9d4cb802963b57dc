package flows

import "math/bits"

// Pick is the index of the branch that 64 uniform bits fall on, each as likely as
// its weight has it, to 2⁻⁴⁰. Without weights it is the first.
func (s *Split) Pick(random uint64) int {
	total := uint64(0)
	for _, b := range s.Branches {
		total += uint64(max(b.Weight, 0))
	}
	at, _ := bits.Mul64(random, total)
	for i, b := range s.Branches {
		w := uint64(max(b.Weight, 0))
		if at < w {
			return i
		}
		at -= w
	}
	return 0
}
