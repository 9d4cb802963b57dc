package trackingapi

import (
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/ingest"
)

// moment is a time in Unix milliseconds that a call may lack.
type moment struct {
	ms  int64
	has bool
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

// Numbers tell their unit: as a time in seconds leastMillis is the year 5138, in
// milliseconds 1973, and so on for microseconds and nanoseconds.
const (
	leastMillis = 1e11
	leastMicros = 1e14
	leastNanos  = 1e17
	mostNanos   = 1e20
)

// ofNumber reads a time in a number of seconds, milliseconds, microseconds or nanoseconds
// since 1970.
func ofNumber(text []byte) (m moment, ok bool) {
	f, err := strconv.ParseFloat(string(text), 64)
	switch {
	case err != nil || !(f >= 0 && f < mostNanos):
		return moment{}, false
	case f < leastMillis:
		f *= 1e3
	case f >= leastNanos:
		f /= 1e6
	case f >= leastMicros:
		f /= 1e3
	}
	return moment{int64(f), true}, true
}

// isoLayouts are the shapes of ISO 8601 that applications write beside RFC 3339, and of the
// HTTP date, which JavaScript's toUTCString writes. Without a zone a time is one of UTC.
var isoLayouts = [...]string{
	"2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04:05",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700", "2006-01-02T15:04",
	"20060102T150405Z0700", "20060102T150405", "2006-01-02", time.RFC1123, time.RFC1123Z,
}

// maxMomentBytes is the longest text that is looked at as a time.
const maxMomentBytes = 64

// parseMoment reads a time in canonical text: RFC 3339 and other shapes of ISO 8601, or a
// number of seconds, milliseconds, microseconds or nanoseconds since 1970, also as a text.
func parseMoment(value []byte) (m moment, ok bool) {
	text, is := unquote(value)
	if !is {
		return ofNumber(value)
	}
	if m.ms, ok = ingest.ParseTime(text); !ok {
		m.ms, ok = parseOther(text)
	}
	if m.has = ok && m.ms >= 0; m.has {
		return m, true
	}
	if len(text) > 0 && len(text) <= maxMomentBytes && text[0]-'0' < 10 {
		return ofNumber(text)
	}
	return moment{}, false
}

// parseOther reads a time in one of isoLayouts.
func parseOther(b []byte) (ms int64, ok bool) {
	if len(b) > maxMomentBytes {
		return 0, false
	}
	text := strings.TrimSpace(string(b))
	if n := len("2006-01-02"); len(text) > n && (text[n] == ' ' || text[n] == 't') {
		text = text[:n] + "T" + text[n+1:]
		text = strings.Replace(strings.Replace(text, " UTC", "Z", 1), " GMT", "Z", 1)
		text = strings.NewReplacer(" +", "+", " -", "-", " Z", "Z", " z", "Z").Replace(text)
	}
	if n := len(text) - 1; n > 0 && text[n] == 'z' {
		text = text[:n] + "Z"
	}
	for _, layout := range isoLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMilli(), true
		}
	}
	// A space before the zone, or a comma before the fraction.
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.UnixMilli(), true
	}
	return 0, false
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
