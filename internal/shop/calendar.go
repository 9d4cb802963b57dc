package shop

import (
	"math/rand/v2"
	"time"
)

// How busy the shop is, relative to the average.
var (
	byMonth   = [12]float64{0.9, 0.8, 0.9, 0.95, 1, 0.9, 0.8, 0.8, 0.95, 1.05, 1.6, 1.7}
	byWeekday = [7]float64{1.25, 1.05, 0.95, 0.9, 0.95, 0.9, 1.1} // from Sunday
	byHour    = [24]float64{
		2, 1, 1, 1, 1, 2, 4, 8, 12, 15, 17, 18, 20, 18, 15, 14, 15, 17, 20, 24, 26, 22, 14, 6,
	}
)

const (
	msPerSecond = int64(1000)
	msPerMinute = 60 * msPerSecond
	msPerHour   = 60 * msPerMinute
	msPerDay    = 24 * msPerHour
)

// calendar draws instants.
type calendar struct {
	startMs, endMs int64
	days           []float64 // running sums
	hours          []float64
}

func newCalendar(until time.Time, days int) *calendar {
	c := &calendar{endMs: until.UnixMilli()}
	c.startMs = c.endMs - int64(days)*msPerDay
	sum := 0.0
	for d := range days {
		t := time.UnixMilli(c.startMs + int64(d)*msPerDay).UTC()
		// The shop grows by half over the history.
		sum += byMonth[t.Month()-1] * byWeekday[t.Weekday()] * (1 + 0.5*float64(d)/float64(days))
		c.days = append(c.days, sum)
	}
	sum = 0
	for _, h := range byHour {
		sum += h
		c.hours = append(c.hours, sum)
	}
	return c
}

// visit draws the instant of a visit of someone who came first on firstDay.
func (c *calendar) visit(rng *rand.Rand, who *customer) int64 {
	day := choose(rng, c.days)
	for range 20 {
		if day >= who.firstDay {
			break
		}
		day = choose(rng, c.days)
	}
	if day < who.firstDay {
		day = who.firstDay
	}
	return c.startMs + int64(day)*msPerDay + c.timeOfDay(rng, who)
}

// firstVisit draws the instant a customer comes first.
func (c *calendar) firstVisit(rng *rand.Rand, who *customer) int64 {
	return c.startMs + int64(who.firstDay)*msPerDay + c.timeOfDay(rng, who)
}

func (c *calendar) timeOfDay(rng *rand.Rand, who *customer) int64 {
	hour := (choose(rng, c.hours) - who.country.offsetHours + 24) % 24
	return int64(hour)*msPerHour + rng.Int64N(msPerHour/msPerSecond)*msPerSecond
}
