package campaigns

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// CommandUnschedule ends the schedule of a campaign.
const CommandUnschedule = "campaign.unschedule"

// maxDueAtOnce is how many campaigns of an account one record makes due.
const maxDueAtOnce = 100

// Save are the arguments of [CommandSave].
type Save struct {
	Campaign
	// SetsDate says that the request names the date.
	SetsDate bool `json:"sets_date,omitempty"`
}

// Unschedule are the arguments of [CommandUnschedule].
type Unschedule struct {
	ID string `json:"id"`
	// ScheduledMs is the schedule that is meant, 0 for any.
	ScheduledMs int64 `json:"scheduled_ms,omitempty"`
	// Error is why it could not be carried out, "" for a cancellation.
	Error string `json:"error,omitempty"`
	// IfVersion is what could not be carried out, see [Start.IfVersion]: what was mended since
	// stays scheduled. Empty for a cancellation.
	IfVersion string `json:"if_version,omitempty"`
}

// schedule decides when a campaign that is being saved is sent by itself. old is what it
// was, nil for a new one.
func (s *State) schedule(c *Save, old *Campaign, nowMs int64) Schedule {
	out := Schedule{Dated: old == nil || c.SetsDate || old.Dated}
	if !out.Dated || c.OneOff || len(c.ListIDs)+len(c.SegmentIDs) == 0 {
		return out
	}
	if old != nil && old.Due && old.Date == c.Date {
		out.ScheduledMs, out.Due = old.ScheduledMs, true // it is about to start, with what it is now
		return out
	}
	if c.LocalTime {
		out.ScheduledMs, _ = s.startsLocally(&c.Campaign, nowMs)
	} else if at, ok := DateMs(c.Date); ok && at > nowMs {
		out.ScheduledMs = at
	}
	return out
}

// setSchedule changes the schedule of a campaign on record.
func (s *State) setSchedule(x *Campaign, schedule Schedule) {
	if x.Schedule == schedule {
		return
	}
	c := *x
	c.Schedule = schedule
	s.install(&c)
	s.put(state.EntityCampaign, c.ID, must.JSON(c))
}

// enterSchedule notes when a campaign is due, leaveSchedule removes the note.
func (s *State) enterSchedule(c *Campaign) {
	switch {
	case c.Due:
		if s.due == nil {
			s.due = map[uint32]struct{}{}
		}
		s.due[c.Number] = struct{}{}
	case c.ScheduledMs != 0:
		s.schedules.Add(dueset.Item{Due: c.ScheduledMs, Ordinal: c.Number})
	}
}

func (s *State) leaveSchedule(c *Campaign) {
	delete(s.due, c.Number)
	s.schedules.Remove(dueset.Item{Due: c.ScheduledMs, Ordinal: c.Number})
}

// Advance makes campaigns due whose time has come, a bounded number, and has runs continue that
// waited until now.
func (s *State) Advance(tx *feature.Tx) {
	s.wake(tx)
	for range maxDueAtOnce {
		it, ok := s.schedules.Min()
		if !ok || it.Due > tx.AtMs {
			return
		}
		x := s.campaigns[s.ids[it.Ordinal]]
		schedule := x.Schedule
		schedule.Due = true
		s.setSchedule(x, schedule)
		s.shared.Changed = true
	}
}

// unschedule ends a schedule, and a run that waits. The campaign is a draft again, or what it was
// after it was sent last, until a change names its date.
func (s *State) unschedule(tx *feature.Tx, c Unschedule) *refuse.Refusal {
	x := s.campaigns[c.ID]
	switch {
	case x == nil:
		return noCampaign()
	case c.ScheduledMs != 0 && c.ScheduledMs != x.ScheduledMs:
		return notScheduled()
	}
	if r := s.unchanged(x.ID, "", c.IfVersion); r != nil {
		return r
	}
	if r := s.runs[c.ID]; r.paced(x) && c.ScheduledMs == 0 {
		s.stopRun(tx, r, cancelled, false)
		s.returnCredits(x, r)
		s.touch(r)
	}
	s.setSchedule(x, Schedule{ScheduleError: c.Error[:min(len(c.Error), maxErrorText)]})
	return nil
}

func notScheduled() *refuse.Refusal {
	return refuse.Conflicts("scheduled_ms", "the campaign is no longer scheduled for this instant")
}

// Due lists the campaigns of the account whose time has come and whose run is
// not started, the one that was due first at the beginning, without their bodies.
func (s *State) Due() []Campaign {
	var out []Campaign
	for number := range s.due {
		out = append(out, *s.campaigns[s.ids[number]])
	}
	slices.SortFunc(out, func(x, y Campaign) int {
		return cmp.Or(cmp.Compare(x.ScheduledMs, y.ScheduledMs), cmp.Compare(x.Number, y.Number))
	})
	return out
}

// NextDue is the earliest instant at which a campaign becomes due or a run continues, Unix ms; ok
// is false when none is scheduled and none waits.
func (s *State) NextDue() (ms int64, ok bool) {
	it, ok := s.schedules.Min()
	if wake, waits := s.wakes.Min(); waits && (!ok || wake.Due < it.Due) {
		return wake.Due, true
	}
	return it.Due, ok
}

// HasDue reports whether the time of some campaign has come whose run is not started.
func (s *State) HasDue() bool { return len(s.due) > 0 }
