package paging

import (
	"math"
	"strconv"
)

// How many entries a page has: unless the query says otherwise, and at most.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
)

// Number reads a whole number of a query, absent when there is no text. It is
// not ok when the text is none from low to high.
func Number(text []byte, low, high, absent int) (n int, ok bool) {
	if len(text) == 0 {
		return absent, true
	}
	x, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || x < int64(low) || x > int64(min(high, math.MaxInt32)) {
		return 0, false
	}
	return int(x), true
}
