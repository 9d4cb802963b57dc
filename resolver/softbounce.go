package resolver

import "slices"

// The rule of soft bounces: an address that refuses maxSoftBounces messages for
// a while within softBounceDays, with no open or click between them, is taken
// for dead.
const (
	maxSoftBounces = 3
	softBounceDays = 14
)

// softBounce notes a soft bounce of e-mail and tells whether it was the last
// that is borne.
func (x *contactExtra) softBounce(nowMs int64) (dead bool) {
	x.soft = slices.DeleteFunc(x.soft, func(ms int64) bool { return ms <= nowMs-softBounceDays*dayMs })
	if len(x.soft)+1 < maxSoftBounces {
		x.soft = append(x.soft, nowMs)
		return false
	}
	x.soft = x.soft[:0]
	return true
}

// foldSoftBounces takes over those of a profile that was merged; the newest
// stay.
func (x *contactExtra) foldSoftBounces(other []int64) {
	x.soft = append(x.soft, other...)
	slices.Sort(x.soft)
	if n := len(x.soft) - (maxSoftBounces - 1); n > 0 {
		x.soft = slices.Delete(x.soft, 0, n)
	}
}
