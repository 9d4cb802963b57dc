// Package localtime relates what clocks in a time zone show to instants.
package localtime

import (
	"sort"
	"time"
)

const secondsPerDay = 86_400

// probeSeconds is less than what lies between two changes of a zone's clocks.
const probeSeconds = 6 * 3600

// Instant is the first instant, in Unix milliseconds, at which clocks in a zone
// show a second of a day, or later. So a local time that comes twice, when clocks
// are put back, is the first of the two; one that is left out, when they are put
// forward, is the moment they are. day is days since 1970-01-01.
//
// Changes are looked for by probing: on the last day of leap years,
// [time.Time.ZoneBounds] names bounds that are none and that lie in the past.
func Instant(zone *time.Location, day, second int) int64 {
	local := int64(day)*secondsPerDay + int64(second)
	// Clocks are less than a day from UTC everywhere.
	at := local - secondsPerDay
	offset := offsetAt(zone, at)
	for {
		end, next := at+probeSeconds, offsetAt(zone, at+probeSeconds)
		if next != offset {
			end = at + 1 + int64(sort.Search(probeSeconds-1, func(i int) bool {
				return offsetAt(zone, at+1+int64(i)) != offset
			}))
			next = offsetAt(zone, end)
		}
		if t := max(at, local-offset); t < end {
			return t * 1000
		}
		at, offset = end, next
	}
}

// offsetAt is how far clocks in a zone are before UTC, in seconds.
func offsetAt(zone *time.Location, at int64) int64 {
	_, offset := time.Unix(at, 0).In(OrUTC(zone)).Zone()
	return int64(offset)
}

// Day is the day that clocks in a zone show, in days since 1970-01-01.
func Day(zone *time.Location, ms int64) int {
	year, month, day := time.UnixMilli(ms).In(OrUTC(zone)).Date()
	return DayNumber(year, month, day)
}

// DayNumber is the number of a date, in days since 1970-01-01.
func DayNumber(year int, month time.Month, day int) int {
	return int(time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay)
}

// Calendar is the date of a day's number.
func Calendar(day int) (year int, month time.Month, dayOfMonth int) {
	return time.Unix(int64(day)*secondsPerDay, 0).UTC().Date()
}

// OrUTC is the zone, UTC for nil.
func OrUTC(zone *time.Location) *time.Location {
	if zone == nil {
		return time.UTC
	}
	return zone
}

// Clock reads HH:MM or HH:MM:SS, in seconds after midnight.
func Clock(s string) (second int, ok bool) {
	if len(s) != len("HH:MM") && len(s) != len("HH:MM:SS") {
		return 0, false
	}
	for i, most := 0, 23; i < len(s); i, most = i+3, 59 {
		tens, ones := int(s[i])-'0', int(s[i+1])-'0'
		if tens < 0 || tens > 9 || ones < 0 || ones > 9 || tens*10+ones > most || i > 0 && s[i-1] != ':' {
			return 0, false
		}
		second = second*60 + tens*10 + ones
	}
	if len(s) == len("HH:MM") {
		second *= 60
	}
	return second, true
}
