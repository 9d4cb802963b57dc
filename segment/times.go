package segment

import "time"

// ParseTime reads the times that conditions understand, in values and in
// definitions alike: a calendar date, midnight UTC, or a date-time of RFC 3339,
// both exactly in this form:
//
//	YYYY-MM-DD
//	YYYY-MM-DDThh:mm:ss[.f…](Z|±hh:mm)
//
// Years run from 0001 to 9999, days exist in their month, hh is at most 23, mm
// and ss at most 59 (no leap second), the fraction has 1 to 9 digits, T and Z
// are upper case. As a regular expression, ranges apart:
//
//	^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2}))?$
//
// The result is in Unix milliseconds, rounded down.
func ParseTime[T string | []byte](s T) (ms int64, ok bool) {
	if len(s) < len("YYYY-MM-DD") || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	century, ok1 := twoDigits(s, 0)
	year, ok2 := twoDigits(s, 2)
	month, ok3 := twoDigits(s, 5)
	day, ok4 := twoDigits(s, 8)
	year += century * 100
	if !(ok1 && ok2 && ok3 && ok4) || year == 0 || month == 0 || month > 12 || day == 0 {
		return 0, false
	}
	date := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if date.Day() != day {
		return 0, false
	}
	ms = date.UnixMilli()
	if len(s) == len("YYYY-MM-DD") {
		return ms, true
	}
	if len(s) < len("YYYY-MM-DDThh:mm:ssZ") || s[10] != 'T' || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	hour, ok1 := twoDigits(s, 11)
	minute, ok2 := twoDigits(s, 14)
	second, ok3 := twoDigits(s, 17)
	if !(ok1 && ok2 && ok3) || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	ms += int64(hour)*3_600_000 + int64(minute)*60_000 + int64(second)*1000
	i := 19
	if s[i] == '.' {
		weight := int64(100)
		start := i + 1
		for i = start; i < len(s) && isDigit(s[i]); i++ {
			ms += int64(s[i]-'0') * weight
			weight /= 10
		}
		if i == start || i-start > 9 {
			return 0, false
		}
	}
	switch {
	case i == len(s)-1 && s[i] == 'Z':
		return ms, true
	case i == len(s)-6 && (s[i] == '+' || s[i] == '-') && s[i+3] == ':':
		hour, ok1 := twoDigits(s, i+1)
		minute, ok2 := twoDigits(s, i+4)
		if !(ok1 && ok2) || hour > 23 || minute > 59 {
			return 0, false
		}
		offset := int64(hour)*3_600_000 + int64(minute)*60_000
		if s[i] == '+' {
			offset = -offset
		}
		return ms + offset, true
	}
	return 0, false
}

// twoDigits reads the number at s[i:i+2].
func twoDigits[T string | []byte](s T, i int) (n int, ok bool) {
	return int(s[i]-'0')*10 + int(s[i+1]-'0'), isDigit(s[i]) && isDigit(s[i+1])
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// The instants that [AppendTime] can write: years 0001 to 9999 in UTC.
const (
	minTimeMs = -62_135_596_800_000
	maxTimeMs = 253_402_300_799_999
)

// AppendTime appends ms as YYYY-MM-DDThh:mm:ss.mmmZ. The form has a fixed
// width for all instants that definitions may name, so that comparing texts
// compares times.
func AppendTime(dst []byte, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(dst, "2006-01-02T15:04:05.000Z")
}
