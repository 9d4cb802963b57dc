package campaigns

import (
	"strings"
	"time"
)

// dateLayouts are the forms of ISO 8601 that the date of a campaign may have. Without
// an offset it is UTC.
var dateLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05", time.DateOnly, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05.999999999Z0700"}

// DateMs is the instant of a campaign's date in Unix milliseconds; ok is false
// for a text that is none.
func DateMs(date string) (ms int64, ok bool) {
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, date); err == nil {
			return t.UnixMilli(), true
		}
	}
	return 0, false
}

// WallMs is the time that a date without an offset shows, in Unix ms as if it was of UTC; ok
// is false for any other text.
func WallMs(date string) (ms int64, ok bool) {
	for _, layout := range dateLayouts {
		if strings.Contains(layout, "Z07") {
			continue
		}
		if t, err := time.Parse(layout, date); err == nil {
			return t.UnixMilli(), true
		}
	}
	return 0, false
}
