package flows

import (
	"fmt"
	"time"

	"github.com/musterhq/muster/internal/localtime"
	"github.com/musterhq/muster/segment"
)

// Due is when a wait that begins at nowMs ends, in Unix milliseconds: not before
// nowMs. The next time of a day is after nowMs, so that who comes at 09:00 sharp
// waits for a day.
func (w *Wait) Due(nowMs int64) int64 {
	u := w.Until
	switch {
	case u == nil:
		return nowMs + w.Seconds*1000
	case u.Day >= 0:
		return max(nowMs, localtime.Instant(u.Zone, u.Day, u.SecondOfDay))
	}
	// Days before today are over, whatever the zone did, and it is put back by a day
	// at most: the bound is for instants beyond all calendars.
	today := localtime.Day(u.Zone, nowMs)
	for day := today; ; day++ {
		if due := localtime.Instant(u.Zone, day, u.SecondOfDay); due > nowMs || day > today+2 {
			return max(nowMs, due)
		}
	}
}

// parseUntil reads HH:MM, YYYY-MM-DDTHH:MM, both with seconds if wanted, or an
// instant in RFC 3339, whose fraction of a second is dropped and for which the zone
// does not matter.
func parseUntil(s string, zone *time.Location) (*Until, bool) {
	if second, ok := localtime.Clock(s); ok {
		return &Until{Day: -1, SecondOfDay: second, Zone: zone, text: s}, true
	}
	if len(s) < len("YYYY-MM-DDTHH:MM") || s[10] != 'T' {
		return nil, false
	}
	if second, ok := localtime.Clock(s[11:]); ok {
		ms, ok := segment.ParseTime(s[:10])
		if !ok || ms < 0 {
			return nil, false
		}
		return &Until{Day: int(ms / msPerDay), SecondOfDay: second, Zone: zone, text: s}, true
	}
	ms, ok := segment.ParseTime(s)
	if !ok || ms < 0 || time.UnixMilli(ms).UTC().Year() > 9999 {
		return nil, false
	}
	return &Until{Day: int(ms / msPerDay), SecondOfDay: int(ms % msPerDay / 1000), Zone: time.UTC, text: s}, true
}

// absolute tells an instant from a local time.
func (u *Until) absolute() bool { return len(u.text) > len("YYYY-MM-DDTHH:MM:SS") }

// String is the time as [Parse] reads it.
func (u *Until) String() string {
	if u.text != "" {
		return u.text
	}
	s := fmt.Sprintf("%02d:%02d:%02d", u.SecondOfDay/3600, u.SecondOfDay/60%60, u.SecondOfDay%60)
	if u.Day < 0 {
		return s
	}
	year, month, day := localtime.Calendar(u.Day)
	return fmt.Sprintf("%04d-%02d-%02dT%s", year, month, day, s)
}
