package campaigns

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

const (
	// maxPauseMs is how long a run pauses for its rate. For longer, it waits.
	maxPauseMs = 5000
	// easternmostMs is how far the clocks are ahead of UTC that show a time first.
	easternmostMs = 14 * 3_600_000
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

// startsLocally is when a campaign starts whose date is a local time: when the first clocks show
// it. It does not start by itself where those of the account have shown it.
func (s *State) startsLocally(c *Campaign, nowMs int64) (atMs int64, ok bool) {
	wall, ok := WallMs(c.Date)
	if !ok || s.host.AccountLocal(wall) <= nowMs {
		return 0, false
	}
	return max(wall-easternmostMs, nowMs+1), true
}

// Pace is how far a run is that is held up: by people's clocks, by limits and by its rate.
type Pace struct {
	// WallMs is the time at which people are sent to by their own clocks, in Unix ms as if it
	// was of UTC; 0 for a run that does not look at them.
	WallMs int64 `json:"wall_ms,omitempty"`
	// Held are the instants at which people are looked at again who were put aside, ascending.
	Held []int64 `json:"held,omitempty"`
	// WakeMs is when a run with [RunWaiting] goes on. Woken says that it has, and that nothing
	// of it was under way.
	WakeMs int64 `json:"wake_ms,omitempty"`
	Woken  bool  `json:"woken,omitempty"`
	// NextUs is the instant of the campaign's next message by its rate, in Unix µs.
	NextUs int64 `json:"next_us,omitempty"`
}

// hold notes an instant at which people are looked at again.
func (p *Pace) hold(untilMs int64) {
	if i, found := slices.BinarySearch(p.Held, untilMs); !found {
		p.Held = slices.Insert(slices.Clone(p.Held), i, untilMs) // readers may have the others
	}
}

// release takes the first instant that has come; ok is false where none has.
func (p *Pace) release(nowMs int64) (atMs int64, ok bool) {
	if len(p.Held) == 0 || p.Held[0] > nowMs {
		return 0, false
	}
	atMs, p.Held = p.Held[0], slices.Clone(p.Held[1:])
	return atMs, true
}

// heldSet names the set of a campaign's recipients who are looked at again at an instant.
func heldSet(untilMs int64) string { return "held/" + strconv.FormatInt(untilMs, 10) }

// hold puts a person aside until an instant.
func (s *State) hold(x *Campaign, r *Run, ordinal uint32, untilMs int64) {
	s.set(x, heldSet(untilMs)).Add(ordinal)
	r.hold(untilMs)
}

// releaseHeld makes those part of the audience again whose time has come.
func (s *State) releaseHeld(x *Campaign, r *Run, nowMs int64) {
	for at, ok := r.release(nowMs); ok; at, ok = r.release(nowMs) {
		which := heldSet(at)
		audience := s.set(x, setAudience)
		audience.Assign(roaring.Or(audience.Bits, s.members(x, which)))
		s.dropSet(x, which)
	}
}

// dropHeld forgets those of a run who were put aside.
func (s *State) dropHeld(x *Campaign, r *Run) {
	for _, ms := range r.Held {
		s.dropSet(x, heldSet(ms))
	}
	r.Held = nil
}

// held is how many people of a run were put aside.
func (s *State) held(x *Campaign, r *Run) (n uint64) {
	for _, ms := range r.Held {
		n += s.members(x, heldSet(ms)).GetCardinality()
	}
	return n
}

// allowed is how many people a run may be sent to now by its rate, up to limit.
func (p *Pace) allowed(rate *Rate, nowMs int64, limit uint64) uint64 {
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
func (p *Pace) spend(rate *Rate, nowMs int64) {
	if rate != nil {
		p.NextUs = max(p.NextUs, nowMs*1000-rate.us()/rateBursts) + rate.intervalUs()
	}
}

// rateMs is how long the rate keeps the run from its next message, rounded up.
func (p *Pace) rateMs(rate *Rate, nowMs int64) int64 {
	if rate == nil {
		return 0
	}
	return max(0, (p.NextUs+999)/1000-nowMs)
}

// wait lets a run wait until an instant.
func (s *State) wait(x *Campaign, r *Run, untilMs int64) {
	r.Status, r.WakeMs = RunWaiting, untilMs
	s.wakes.Add(dueset.Item{Due: untilMs, Ordinal: x.Number})
}

// leaveWait ends the wait of a run, if it waits.
func (s *State) leaveWait(x *Campaign, r *Run) {
	if r != nil && r.Status == RunWaiting {
		s.wakes.Remove(dueset.Item{Due: r.WakeMs, Ordinal: x.Number})
		r.Status, r.WakeMs = RunSending, 0
	}
}

// wake has runs go on whose wait is over, a bounded number.
func (s *State) wake(tx *feature.Tx) {
	for range maxDueAtOnce {
		it, ok := s.wakes.Min()
		if !ok || it.Due > tx.AtMs {
			return
		}
		x := s.campaigns[s.ids[it.Ordinal]]
		r := s.runs[x.ID]
		s.leaveWait(x, r)
		r.Woken = s.members(x, setPending).IsEmpty()
		s.touch(r)
		s.shared.Started = true
	}
}

// paced reports whether a run may be cancelled: it waits, or may have to.
func (r *Run) paced(x *Campaign) bool {
	return r.Busy() && (r.Status == RunWaiting || x.Rate != nil || r.WallMs != 0)
}

const cancelled = "the rest of the run was cancelled"
