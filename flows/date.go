package flows

import (
	"math"
	"time"

	"github.com/musterhq/muster/internal/localtime"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/segment"
)

// Next is the first instant after afterMs at which the trigger is due for a
// profile whose field has the value, a JSON scalar: a day, an instant in RFC 3339
// or Unix milliseconds, which stand for the day they are on in the trigger's zone.
// ok is false when there is none: the value is no date, or the one time is over.
//
// A yearly trigger is due on the day itself and on every anniversary; that of 29
// February is 28 February in years that have none. The offset is counted from the
// anniversary. Local times that come twice or never are resolved as in [Wait.Due].
func (t *DateTrigger) Next(value []byte, afterMs int64) (dueMs int64, ok bool) {
	day, ok := t.day(value)
	if !ok {
		return 0, false
	}
	if !t.Yearly {
		dueMs = t.on(day)
		return dueMs, dueMs > afterMs
	}
	year, month, dayOfMonth := localtime.Calendar(day)
	// Clocks have shown the days before, and so anniversaries of earlier years are over.
	around, _, _ := localtime.Calendar(localtime.Day(t.Zone, afterMs) - t.OffsetDays)
	for year = max(year, around); year <= maxYear; year++ {
		if dueMs = t.on(anniversary(year, month, dayOfMonth)); dueMs > afterMs {
			return dueMs, true
		}
	}
	return 0, false
}

// on is when the trigger is due for a date, in Unix milliseconds.
func (t *DateTrigger) on(day int) int64 {
	return localtime.Instant(t.Zone, day+t.OffsetDays, t.AtMinutes*60)
}

func anniversary(year int, month time.Month, day int) int {
	if month == time.February && day == 29 && time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Month() != month {
		day = 28
	}
	return localtime.DayNumber(year, month, day)
}

const msPerDay = 86_400_000

// Instants that can be told as a date: the years 0001 to 9999.
const (
	minDateMs = -62_135_596_800_000
	maxDateMs = 253_402_300_799_999
	maxYear   = 9999
)

// day reads a value as the number of a day.
func (t *DateTrigger) day(value []byte) (day int, ok bool) {
	switch rawjson.KindOf(value) {
	case rawjson.String:
		var buf [64]byte
		text, ok := rawjson.Text(value, buf[:])
		if !ok {
			return 0, false
		}
		ms, ok := segment.ParseTime(text)
		if !ok {
			return 0, false
		}
		if len(text) == len("2006-01-02") {
			return int(floorDiv(ms, msPerDay)), true
		}
		return localtime.Day(t.Zone, ms), true
	case rawjson.Number:
		f, ok := rawjson.Float(value)
		if !ok || f < minDateMs || f > maxDateMs {
			return 0, false
		}
		return localtime.Day(t.Zone, int64(math.Floor(f))), true
	}
	return 0, false
}

// floorDiv rounds down.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
