package trackingapi

import (
	"strconv"

	"github.com/musterhq/muster/ingest"
)

// moment is a time in Unix milliseconds that a call may lack.
type moment struct {
	ms  int64
	has bool
}

// or is m, or other where m is lacking.
func (m moment) or(other moment) moment {
	if m.has {
		return m
	}
	return other
}

// happened is when an event happened, by the clock of the server: the time between event
// and sending is measured by one clock, the client's, whatever that shows.
func happened(received int64, original, sent moment) int64 {
	switch {
	case !original.has:
		return received
	case !sent.has:
		return min(original.ms, received)
	}
	return received - max(0, sent.ms-original.ms)
}

// leastMillis is the number from which on a time in digits is in milliseconds: in seconds
// it would be the year 5138, in milliseconds it is March 1973.
const leastMillis = 1e11

// parseMoment reads a time in canonical text: RFC 3339, or a number of Unix milliseconds or
// seconds.
func parseMoment(value []byte) (m moment, ok bool) {
	if text, is := unquote(value); is {
		m.ms, ok = ingest.ParseTime(text)
		m.has = ok && m.ms >= 0
		return m, m.has
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || !(f >= 0 && f < 1e15) {
		return moment{}, false
	}
	if f < leastMillis {
		f *= 1000
	}
	return moment{int64(f), true}, true
}

// decimal writes a number in canonical text without an exponent, and one that is whole
// without a point.
func decimal(number []byte) []byte {
	whole := true
	for _, c := range number {
		whole = whole && (c == '-' || c-'0' < 10)
	}
	if whole {
		return number
	}
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil {
		return number
	}
	return strconv.AppendFloat(nil, f, 'f', -1, 64)
}
