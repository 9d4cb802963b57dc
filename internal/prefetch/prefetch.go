package prefetch

import "unsafe"

// lineBytes is the size of a line of the processor's caches.
const lineBytes = 64

// Line begins to bring the line that p points into near the processor. p may be nil.
func Line[T any](p *T) { line(unsafe.Pointer(p)) }

// Bytes does that with the lines of b, of the first limit bytes at most.
func Bytes(b []byte, limit int) {
	n := min(len(b), limit)
	if n == 0 {
		return
	}
	for i := 0; i < n; i += lineBytes {
		line(unsafe.Pointer(&b[i]))
	}
	line(unsafe.Pointer(&b[n-1])) // b need not begin where a line does
}
