package flows

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/localtime"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/internal/zones"
)

// The zones of property tests: clocks change by an hour, by half of one, for
// Ramadan, and once by a whole day.
var zoneNames = []string{
	"UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia",
	"America/St_Johns", "Africa/Cairo",
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, ok := zones.Load(name)
	if !ok {
		t.Fatalf("no zone %s", name)
	}
	return z
}

// cases is how many random cases a property is tried with.
func cases(short int) int {
	if testlevel.Long() {
		return 50 * short
	}
	return short
}

// naiveInstant looks at the clock each minute, from the day before on, for the
// first time it shows the local time or a later one.
func naiveInstant(z *time.Location, year int, month time.Month, day, hour, minute int) int64 {
	want := fmt.Sprintf("%04d-%02d-%02d %02d:%02d", year, month, day, hour, minute)
	t := time.Date(year, month, day, hour, minute, 0, 0, time.UTC).Add(-26 * time.Hour)
	for t.In(z).Format("2006-01-02 15:04") < want {
		t = t.Add(time.Minute)
	}
	return t.UnixMilli()
}

// edges are local times around the changes of clocks, and some others.
func edges(t testing.TB, r *rand.Rand) (z *time.Location, local time.Time) {
	z = zone(t, zoneNames[r.IntN(len(zoneNames))])
	at := time.Date(2005+r.IntN(30), time.Month(1+r.IntN(12)), 1+r.IntN(28), r.IntN(24), r.IntN(60), 0, 0, time.UTC)
	if r.IntN(4) > 0 {
		if _, end := at.In(z).ZoneBounds(); !end.IsZero() && end.Year() < 2040 {
			at = end.UTC().Add(time.Duration(r.IntN(300)-150) * time.Minute)
		}
	}
	if r.IntN(10) == 0 {
		at = time.Date(2004+4*r.IntN(8), 12, 31, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(3*24*60)-24*60) * time.Minute)
	}
	if z.String() == "Pacific/Apia" && r.IntN(2) == 0 {
		at = time.Date(2011, 12, 29, 6, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(3*24*60)) * time.Minute)
	}
	local = at.In(z)
	if r.IntN(2) == 0 {
		// What clocks may have left out.
		local = time.Date(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute(), 0, 0, time.UTC).Add(time.Duration(r.IntN(120)) * time.Minute)
	}
	return z, local
}

// R1: a local time is the first instant at which clocks show it, or a later one.
func TestR1InstantIsTheFirstAtWhichClocksShowIt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range cases(1500) {
		z, l := edges(t, r)
		got := localtime.Instant(z, localtime.DayNumber(l.Year(), l.Month(), l.Day()), l.Hour()*3600+l.Minute()*60)
		if want := naiveInstant(z, l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute()); got != want {
			t.Fatalf("%s %s: %s, not %s", z, l.Format("2006-01-02 15:04"), at(got), at(want))
		}
	}
}

func at(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

func ms(t testing.TB, s string) int64 {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v.UnixMilli()
}

func TestLocalTimesThatComeTwiceOrNever(t *testing.T) {
	for _, c := range []struct{ zone, local, want string }{
		{"Europe/Berlin", "2024-03-31T02:30", "2024-03-31T01:00:00Z"}, // left out: 02:00 became 03:00
		{"Europe/Berlin", "2024-10-27T02:30", "2024-10-27T00:30:00Z"}, // twice: summer time first
		{"Australia/Lord_Howe", "2024-10-06T02:15", "2024-10-05T15:30:00Z"},
		{"America/New_York", "2024-11-03T01:30", "2024-11-03T05:30:00Z"},
		{"Pacific/Apia", "2011-12-30T09:00", "2011-12-30T10:00:00Z"}, // the day that never was
		{"Asia/Kathmandu", "2024-01-01T00:00", "2023-12-31T18:15:00Z"},
		{"Africa/Casablanca", "2024-03-10T02:30", "2024-03-10T01:30:00Z"},
	} {
		u, ok := parseUntil(c.local, zone(t, c.zone))
		if !ok {
			t.Fatal(c.local)
		}
		if got := (&Wait{Until: u}).Due(0); got != ms(t, c.want) {
			t.Errorf("%s %s: %s, not %s", c.zone, c.local, at(got), c.want)
		}
	}
}

func TestWaitDue(t *testing.T) {
	now := ms(t, "2024-07-01T07:00:00Z")
	for _, c := range []struct {
		until, zone, want string
	}{
		{"09:00", "Europe/Berlin", "2024-07-02T07:00:00Z"}, // it is 09:00 sharp: tomorrow
		{"09:00:01", "Europe/Berlin", "2024-07-01T07:00:01Z"},
		{"08:59", "Europe/Berlin", "2024-07-02T06:59:00Z"},
		{"07:01", "UTC", "2024-07-01T07:01:00Z"},
		{"00:30", "Asia/Kathmandu", "2024-07-01T18:45:00Z"},
		{"2024-07-01T09:00", "UTC", "2024-07-01T09:00:00Z"},
		{"2024-07-01T06:00", "UTC", "2024-07-01T07:00:00Z"}, // over: no wait
		{"2024-07-01T12:00:00+02:00", "Asia/Tokyo", "2024-07-01T10:00:00Z"},
		{"1970-01-01T00:00:00Z", "UTC", "2024-07-01T07:00:00Z"},
	} {
		u, ok := parseUntil(c.until, zone(t, c.zone))
		if !ok {
			t.Fatal(c.until)
		}
		if got := (&Wait{Until: u}).Due(now); got != ms(t, c.want) {
			t.Errorf("%s %s: %s, not %s", c.until, c.zone, at(got), c.want)
		}
	}
	if got := (&Wait{Seconds: 90}).Due(now); got != now+90_000 {
		t.Error(got)
	}
	// L3: times beyond all calendars end, too.
	for _, far := range []int64{math.MaxInt64, math.MinInt64, math.MaxInt64 / 2} {
		(&Wait{Until: &Until{Day: -1, Zone: zone(t, "Europe/Berlin")}}).Due(far)
		(&DateTrigger{Yearly: true, Zone: zone(t, "Europe/Berlin")}).Next([]byte(`"2000-02-29"`), far)
	}
}

// R1: the next time of a day is the first after now among those of all days, found
// one by one.
func TestR1NextTimeOfADay(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range cases(300) {
		z, l := edges(t, r)
		now := l.UnixMilli() + int64(r.IntN(3))*int64(r.IntN(60_000))
		hour, minute := r.IntN(24), r.IntN(60)
		if r.IntN(2) == 0 {
			shown := time.UnixMilli(now).In(z)
			hour, minute = shown.Hour(), shown.Minute()
		}
		got := (&Wait{Until: &Until{Day: -1, SecondOfDay: hour*3600 + minute*60, Zone: z}}).Due(now)
		day := time.UnixMilli(now).UTC().AddDate(0, 0, -3)
		want := int64(0)
		for want <= now {
			want = naiveInstant(z, day.Year(), day.Month(), day.Day(), hour, minute)
			day = day.AddDate(0, 0, 1)
		}
		if got != want {
			t.Fatalf("%s, %02d:%02d after %s: %s, not %s", z, hour, minute, at(now), at(got), at(want))
		}
	}
}

func TestDateNext(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for _, c := range []struct {
		trigger      DateTrigger
		value, after string
		want         string // empty for none
	}{
		{DateTrigger{}, `"2024-05-01"`, "2024-04-30T23:59:59Z", "2024-05-01T00:00:00Z"},
		{DateTrigger{}, `"2024-05-01"`, "2024-05-01T00:00:00Z", ""},
		{DateTrigger{OffsetDays: -3, AtMinutes: 9 * 60, Zone: berlin}, `"2024-05-01"`, "2024-01-01T00:00:00Z", "2024-04-28T07:00:00Z"},
		{DateTrigger{AtMinutes: 9 * 60, Zone: berlin}, `"2024-05-01T23:30:00Z"`, "2024-01-01T00:00:00Z", "2024-05-02T07:00:00Z"},
		{DateTrigger{AtMinutes: 60}, `1714521600000`, "2024-01-01T00:00:00Z", "2024-05-01T01:00:00Z"},
		{DateTrigger{AtMinutes: 60}, `1714521599999.5`, "2024-01-01T00:00:00Z", "2024-04-30T01:00:00Z"},
		{DateTrigger{AtMinutes: 60}, `-1`, "1969-01-01T00:00:00Z", "1969-12-31T01:00:00Z"},
		{DateTrigger{Yearly: true}, `"1990-05-01"`, "2024-05-01T00:00:00Z", "2025-05-01T00:00:00Z"},
		{DateTrigger{Yearly: true}, `"1990-05-01"`, "2024-04-30T23:59:59Z", "2024-05-01T00:00:00Z"},
		{DateTrigger{Yearly: true}, `"2030-05-01"`, "2024-04-30T23:59:59Z", "2030-05-01T00:00:00Z"}, // not before the day itself
		{DateTrigger{Yearly: true}, `"2000-02-29"`, "2023-02-01T00:00:00Z", "2023-02-28T00:00:00Z"},
		{DateTrigger{Yearly: true}, `"2000-02-29"`, "2023-03-01T00:00:00Z", "2024-02-29T00:00:00Z"},
		{DateTrigger{Yearly: true, OffsetDays: 1}, `"2000-02-29"`, "2023-02-01T00:00:00Z", "2023-03-01T00:00:00Z"},
		{DateTrigger{Yearly: true, OffsetDays: -1}, `"2000-01-01"`, "2023-06-01T00:00:00Z", "2023-12-31T00:00:00Z"},
		{DateTrigger{Yearly: true, OffsetDays: 3650}, `"2000-01-01"`, "2001-06-01T00:00:00Z", "2009-12-29T00:00:00Z"},
		{DateTrigger{Yearly: true, AtMinutes: 150, Zone: berlin}, `"2000-03-31"`, "2024-01-01T00:00:00Z", "2024-03-31T01:00:00Z"},
		{DateTrigger{Yearly: true}, `"5 May"`, "2024-01-01T00:00:00Z", ""},
		{DateTrigger{Yearly: true}, `"2023-02-29"`, "2024-01-01T00:00:00Z", ""},
		{DateTrigger{Yearly: true}, `null`, "2024-01-01T00:00:00Z", ""},
		{DateTrigger{Yearly: true}, `true`, "2024-01-01T00:00:00Z", ""},
		{DateTrigger{Yearly: true}, `["2000-01-01"]`, "2024-01-01T00:00:00Z", ""},
		{DateTrigger{Yearly: true}, `1e300`, "2024-01-01T00:00:00Z", ""},
		{DateTrigger{Yearly: true}, ``, "2024-01-01T00:00:00Z", ""},
	} {
		due, ok := c.trigger.Next([]byte(c.value), ms(t, c.after))
		if ok != (c.want != "") || ok && due != ms(t, c.want) {
			t.Errorf("%+v of %s after %s: %s, %v, not %s", c.trigger, c.value, c.after, at(due), ok, c.want)
		}
	}
}

// R1: Next is the first due time after an instant, found day by day.
func TestR1DateNextIsTheFirstOfAllDays(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range cases(150) {
		z, l := edges(t, r)
		d := DateTrigger{OffsetDays: r.IntN(21) - 10, AtMinutes: l.Hour()*60 + l.Minute(), Yearly: r.IntN(4) > 0, Zone: z}
		if r.IntN(3) == 0 {
			d.OffsetDays = r.IntN(7301) - 3650
		}
		base := time.Date(l.Year()-r.IntN(5), l.Month(), l.Day(), 0, 0, 0, 0, time.UTC)
		if r.IntN(3) == 0 {
			base = time.Date(2000+4*r.IntN(8), 2, 29, 0, 0, 0, 0, time.UTC)
		}
		value, _ := json.Marshal(base.Format("2006-01-02"))
		if r.IntN(3) == 0 {
			// An instant on that day in the zone: at noon no clock is changed.
			noon := time.Date(base.Year(), base.Month(), base.Day(), 12, 0, 0, 0, z)
			if noon.Day() != base.Day() {
				continue // a day that never was
			}
			value = []byte(strconv.FormatInt(noon.UnixMilli(), 10))
		}
		// Due times, by walking through the calendar.
		var dues []int64
		for day := base; day.Year() < base.Year()+4; day = day.AddDate(0, 0, 1) {
			same := day.Month() == base.Month() && day.Day() == base.Day() ||
				base.Month() == 2 && base.Day() == 29 && day.Month() == 2 && day.Day() == 28 && day.AddDate(0, 0, 1).Month() == 3
			if same && (d.Yearly || day.Equal(base)) {
				on := day.AddDate(0, 0, d.OffsetDays)
				dues = append(dues, naiveInstant(z, on.Year(), on.Month(), on.Day(), l.Hour(), l.Minute()))
			}
		}
		for i, due := range dues {
			for _, after := range []int64{due - 1, due, due + 1, due - int64(r.Int64N(400*msPerDay))} {
				want, ok := int64(0), false
				for _, x := range dues {
					if !ok && x > after {
						want, ok = x, true
					}
				}
				if !ok && d.Yearly {
					continue // beyond those that were walked to
				}
				got, gotOK := d.Next(value, after)
				if gotOK != ok || ok && got != want {
					t.Fatalf("%+v of %s (%d) after %s: %s, %v, not %s, %v", d, value, i, at(after), at(got), gotOK, at(want), ok)
				}
			}
		}
	}
}

func BenchmarkDateNext(b *testing.B) {
	d := DateTrigger{AtMinutes: 9 * 60, Yearly: true, Zone: zone(b, "Europe/Berlin")}
	b.ReportAllocs()
	for b.Loop() {
		d.Next([]byte(`"1990-05-01"`), 1_714_521_600_000)
	}
}

func BenchmarkWaitUntil(b *testing.B) {
	w := Wait{Until: &Until{Day: -1, SecondOfDay: 9 * 3600, Zone: zone(b, "Europe/Berlin")}}
	b.ReportAllocs()
	for b.Loop() {
		w.Due(1_714_521_600_000)
	}
}
