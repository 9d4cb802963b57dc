package profile

import "slices"

// The rule of soft bounces: an address that refuses maxSoftBounces messages for
// a while within softBounceDays, with no open or click between them, is taken
// for dead.
const (
	maxSoftBounces = 3
	softBounceDays = 14

	softBounceMs = softBounceDays * 24 * 60 * 60 * 1000
)

// SoftBounce notes a soft bounce of e-mail and reports whether it was the last
// that is borne.
func (x *Contact) SoftBounce(nowMs int64) (dead bool) {
	x.SoftBounces = slices.DeleteFunc(x.SoftBounces, func(ms int64) bool { return ms <= nowMs-softBounceMs })
	if len(x.SoftBounces)+1 < maxSoftBounces {
		x.SoftBounces = append(x.SoftBounces, nowMs)
		return false
	}
	x.SoftBounces = x.SoftBounces[:0]
	return true
}

// mergeSoftBounces takes over those of a profile that was merged; the newest
// stay.
func (x *Contact) mergeSoftBounces(other []int64) {
	x.SoftBounces = append(x.SoftBounces, other...)
	slices.Sort(x.SoftBounces)
	if n := len(x.SoftBounces) - (maxSoftBounces - 1); n > 0 {
		x.SoftBounces = slices.Delete(x.SoftBounces, 0, n)
	}
}
