package campaigns

import (
	"slices"

	"github.com/musterhq/muster/resolver/internal/refuse"
)

// Pacing says what holds up the messages of a campaign.
type Pacing struct {
	// LocalTime says that the date is what each person's own clocks show when the campaign is
	// sent to them. It has no offset then.
	LocalTime bool `json:"local_time,omitempty"`
	// Rate bounds how fast the campaign is sent; nil does not.
	Rate *Rate `json:"rate,omitempty"`
	// IgnoresLimits sends it whatever the account's quiet hours and frequency caps say, and
	// does not count it for the latter.
	IgnoresLimits bool `json:"ignore_sending_limits,omitempty"`
}

// check says what is wrong with the pacing of a campaign with such a date; nil for nothing.
func (p *Pacing) check(date string) *refuse.Refusal {
	if p.LocalTime && date != "" {
		if _, ok := WallMs(date); !ok {
			return refuse.Invalid("date", "date Input should have no offset where local_time is true, such as 2026-01-31T09:00: it is what each person's clocks show")
		}
	}
	return p.Rate.check()
}

// PacingState is how far a run is that is held up by its [Pacing] and the account's limits: by people's clocks, by limits and by its rate.
type PacingState struct {
	// WallMs is the time at which people are sent to by their own clocks, in Unix ms as if it
	// was of UTC; 0 for a run that does not look at them.
	WallMs int64 `json:"wall_ms,omitempty"`
	// Held are the instants at which people are looked at again who were put aside, ascending.
	Held []int64 `json:"held,omitempty"`
	// WakeMs is when a run with [RunWaiting] continues. Woken says that it has, and that nothing
	// of it was under way.
	WakeMs int64 `json:"wake_ms,omitempty"`
	Woken  bool  `json:"woken,omitempty"`
	// NextUs is the instant of the campaign's next message by its rate, in Unix µs.
	NextUs int64 `json:"next_us,omitempty"`
}

// hold notes an instant at which people are looked at again.
func (p *PacingState) hold(untilMs int64) {
	if i, found := slices.BinarySearch(p.Held, untilMs); !found {
		p.Held = slices.Insert(slices.Clone(p.Held), i, untilMs) // readers may have the others
	}
}

// release takes the first instant that has come; ok is false where none has.
func (p *PacingState) release(nowMs int64) (atMs int64, ok bool) {
	if len(p.Held) == 0 || p.Held[0] > nowMs {
		return 0, false
	}
	atMs, p.Held = p.Held[0], slices.Clone(p.Held[1:])
	return atMs, true
}

// allowed is how many people a run may be sent to now by its rate, up to limit.
func (p *PacingState) allowed(rate *Rate, nowMs int64, limit uint64) uint64 {
	if rate == nil {
		return limit
	}
	from := max(p.NextUs, nowMs*1000-rate.us()/rateBursts)
	if from > nowMs*1000 {
		return 0
	}
	return min(limit, uint64((nowMs*1000-from)/rate.intervalUs())+1)
}

// spend notes that one more person is sent to.
func (p *PacingState) spend(rate *Rate, nowMs int64) {
	if rate != nil {
		p.NextUs = max(p.NextUs, nowMs*1000-rate.us()/rateBursts) + rate.intervalUs()
	}
}

// rateMs is how long the rate keeps the run from its next message, rounded up.
func (p *PacingState) rateMs(rate *Rate, nowMs int64) int64 {
	if rate == nil {
		return 0
	}
	return max(0, (p.NextUs+999)/1000-nowMs)
}

const (
	// maxPauseMs is how long a run pauses for its rate. For longer, it waits.
	maxPauseMs = 5000
	// easternmostMs is how far the clocks are ahead of UTC that show a time first.
	easternmostMs = 14 * 3_600_000
)
