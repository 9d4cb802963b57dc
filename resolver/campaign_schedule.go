package resolver

import (
	"cmp"
	"slices"
	"time"

	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/state"
)

// CommandCampaignUnschedule ends the schedule of a campaign.
const CommandCampaignUnschedule = "campaign.unschedule"

// dueCampaigns is how many campaigns of an account one record makes due.
const dueCampaigns = 100

// CampaignSchedule says when a campaign is sent by itself. The time is that of the log:
// the first record from that instant on makes the campaign due, and whoever carries out
// what is to be sent starts its run, once: the start takes the schedule away.
type CampaignSchedule struct {
	// Dated campaigns are sent at their date, if it is in the future when they are
	// saved and they have an audience. Cleared by a start and by a cancellation.
	Dated bool `json:"dated,omitempty"`
	// ScheduledMs is when it is sent, 0 for not by itself.
	ScheduledMs int64 `json:"scheduled_ms,omitempty"`
	// Due says that the instant has come and the run is not started yet.
	Due bool `json:"due,omitempty"`
	// ScheduleError is why the last schedule could not be carried out.
	ScheduleError string `json:"schedule_error,omitempty"`
}

// CampaignSave are the arguments of [CommandCampaignSave].
type CampaignSave struct {
	Campaign
	// SetsDate says that the request names the date.
	SetsDate bool `json:"sets_date,omitempty"`
}

// CampaignUnschedule are the arguments of [CommandCampaignUnschedule].
type CampaignUnschedule struct {
	ID string `json:"id"`
	// ScheduledMs is the schedule that is meant, 0 for any.
	ScheduledMs int64 `json:"scheduled_ms,omitempty"`
	// Error is why it could not be carried out, "" for a cancellation.
	Error string `json:"error,omitempty"`
}

// dateLayouts are the forms of ISO 8601 that the date of a campaign may have. Without
// an offset it is UTC.
var dateLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05", time.DateOnly, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05.999999999Z0700"}

// CampaignDateMs is the instant of a campaign's date in Unix milliseconds; ok is false
// for a text that is none.
func CampaignDateMs(date string) (ms int64, ok bool) {
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, date); err == nil {
			return t.UnixMilli(), true
		}
	}
	return 0, false
}

// schedule decides when a campaign that is being saved is sent by itself. old is what it
// was, nil for a new one.
func (m *Machine) schedule(c *CampaignSave, old *Campaign) CampaignSchedule {
	s := CampaignSchedule{Dated: old == nil || c.SetsDate || old.Dated}
	if !s.Dated || c.OneOff || len(c.ListIDs)+len(c.SegmentIDs) == 0 {
		return s
	}
	if old != nil && old.Due && old.Date == c.Date {
		s.ScheduledMs, s.Due = old.ScheduledMs, true // it is about to start, with what it is now
		return s
	}
	if at, ok := CampaignDateMs(c.Date); ok && at > m.logTime {
		s.ScheduledMs = at
	}
	return s
}

// setSchedule changes the schedule of a campaign on record.
func (m *Machine) setSchedule(a *account, x *Campaign, s CampaignSchedule) {
	if x.CampaignSchedule == s {
		return
	}
	c := *x
	c.CampaignSchedule = s
	a.installCampaign(&c)
	m.store.PutEntity(state.EntityKey(a.number, state.EntityCampaign, c.ID), must.JSON(c))
}

// enterSchedule notes when a campaign is due, leaveSchedule forgets it.
func (a *account) enterSchedule(c *Campaign) {
	switch {
	case c.Due:
		if a.dueCampaigns == nil {
			a.dueCampaigns = map[uint32]struct{}{}
		}
		a.dueCampaigns[c.Number] = struct{}{}
	case c.ScheduledMs != 0:
		a.schedules.Add(dueset.Item{Due: c.ScheduledMs, Ordinal: c.Number})
	}
}

func (a *account) leaveSchedule(c *Campaign) {
	delete(a.dueCampaigns, c.Number)
	a.schedules.Remove(dueset.Item{Due: c.ScheduledMs, Ordinal: c.Number})
}

// advanceSchedules makes campaigns due whose time has come.
func (m *Machine) advanceSchedules(a *account) {
	for range dueCampaigns {
		it, ok := a.schedules.Min()
		if !ok || it.Due > m.logTime {
			return
		}
		x := a.campaigns[a.campaignIDs[it.Ordinal]]
		s := x.CampaignSchedule
		s.Due = true
		m.setSchedule(a, x, s)
		m.started = true
	}
}

// unscheduleCampaign ends a schedule. The campaign is a draft again, or what it was
// after it was sent last, until a change names its date.
func (m *Machine) unscheduleCampaign(cmd *command, c CampaignUnschedule) *Refusal {
	a := cmd.account
	x := a.campaigns[c.ID]
	switch {
	case x == nil:
		return noCampaign()
	case c.ScheduledMs != 0 && c.ScheduledMs != x.ScheduledMs:
		return notScheduled()
	}
	m.setSchedule(a, x, CampaignSchedule{ScheduleError: c.Error[:min(len(c.Error), maxErrorText)]})
	return nil
}

func notScheduled() *Refusal {
	return &Refusal{Code: "conflict", Field: "scheduled_ms", Message: "the campaign is no longer scheduled for this instant"}
}

// DueCampaigns lists the campaigns of the account whose time has come and whose run is
// not started, the one that was due first at the beginning, with their bodies.
func (v *View) DueCampaigns() ([]Campaign, error) {
	var out []Campaign
	for number := range v.a.dueCampaigns {
		x, _, err := v.WholeCampaign(v.a.campaignIDs[number])
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(x, y Campaign) int {
		return cmp.Or(cmp.Compare(x.ScheduledMs, y.ScheduledMs), cmp.Compare(x.Number, y.Number))
	})
	return out, nil
}
