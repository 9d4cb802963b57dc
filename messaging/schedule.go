package messaging

import (
	"cmp"
	"errors"
	"time"

	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/campaigns"
)

// The pace of a campaign that starts by its schedule: the defaults of a send
// request.
const (
	scheduledBatch   = 100
	scheduledDelayMs = 1000
)

// scheduleGiveUp is for how long a campaign that is due is tried while what keeps it from
// starting may pass: a segment of its audience is still being built.
const scheduleGiveUp = 24 * time.Hour

// watchSchedules starts campaigns whose time has come. The state says when one is due;
// the timer is for those that could not be started at once.
func (d *Dispatcher) watchSchedules() {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		changed, campaigns := d.opts.Node.Changed(), d.opts.Node.CampaignChanged()
		d.startDue()
		t.Reset(takeUpEvery)
		select {
		case <-changed:
		case <-campaigns:
		case <-d.ended:
		case <-t.C:
		case <-d.ctx.Done():
			return
		}
	}
}

// startDue starts all campaigns that are due at present.
func (d *Dispatcher) startDue() {
	for _, account := range d.opts.Node.AccountsWithDueCampaigns() {
		var due []campaigns.Campaign
		err := d.opts.Node.Look(account, func(v *resolver.View) error { due = v.Campaigns().Due(); return nil })
		if err != nil {
			d.opts.Logger.Debug("scheduled campaigns are not looked at", "error", err)
			continue
		}
		for i := range due {
			if d.sends(runKey{account, due[i].ID}) {
				continue // its last run is over and has messages under way; the end of it is the next look
			}
			for d.ctx.Err() == nil && d.startScheduled(account, due[i].ID) {
			}
		}
	}
}

// errNotDue reports that a campaign was started, changed or cancelled since it was listed as due.
var errNotDue = errors.New("it is not due any more")

// startScheduled starts a campaign that is due, once: the state takes the schedule away
// with the start. What keeps it from being sent is put on record. It reports whether what it
// read has changed meanwhile, so that it is to be called again.
func (d *Dispatcher) startScheduled(account uint64, id string) (again bool) {
	x, start, err := d.readScheduled(account, id)
	if err == nil {
		err = d.Start(d.ctx, account, start, audit.Author{})
	}
	var refusal *resolver.Refusal
	var fault *compose.ContentError
	building := false
	switch {
	case err == nil:
		d.opts.Logger.Info("a scheduled campaign is being sent", "account", resolver.AccountID(account), "campaign", id)
		return false
	case outdated(err):
		return true
	case errors.As(err, &refusal):
		building = refusal.Code == "conflict" && refusal.Field == "segment_ids"
	case !errors.As(err, &fault):
		d.opts.Logger.Debug("a scheduled campaign is not started yet", "campaign", id, "error", err)
		return false // the log or the node is away for a while
	}
	if building && d.opts.Now().UnixMilli()-x.ScheduledMs < scheduleGiveUp.Milliseconds() {
		return false
	}
	_, failed := d.opts.Node.Command(d.ctx, account, campaigns.CommandUnschedule, campaigns.Unschedule{ID: id, ScheduledMs: x.ScheduledMs, Error: err.Error(), IfVersion: start.IfVersion})
	switch {
	case outdated(failed):
		return true
	case failed != nil:
		d.opts.Logger.Debug("the schedule of a campaign was not ended", "campaign", id, "error", failed)
		return false
	}
	d.opts.Logger.Warn("a scheduled campaign cannot be sent", "account", resolver.AccountID(account), "campaign", id, "error", err)
	return false
}

// outdated reports whether a command was refused since the campaign, its template or its last run
// have changed since they were read.
func outdated(err error) bool {
	var refusal *resolver.Refusal
	return errors.As(err, &refusal) && (refusal.Field == "if_version" || refusal.Field == "kept_links")
}

// readScheduled reads a campaign that is due, and makes its start. With an error that is a
// [*compose.ContentError] or a refusal, the start has the version that the error is of.
func (d *Dispatcher) readScheduled(account uint64, id string) (x campaigns.Campaign, start campaigns.Start, err error) {
	var contents []campaigns.Content
	err = d.opts.Node.Look(account, func(v *resolver.View) (err error) {
		if x, _, err = v.Campaigns().WholeCampaign(id); err != nil || !x.Due {
			return cmp.Or(err, errNotDue)
		}
		start = scheduledStart(&x)
		if start.IfVersion, err = v.Campaigns().StartVersion(&x, start.TemplateID); err != nil {
			return err
		}
		contents, err = compose.CampaignContents(v, &x)
		return err
	})
	if err == nil {
		start.Variants, err = compose.PrepareContents(&x, contents)
	}
	if err == nil {
		err = d.opts.Node.Look(account, func(v *resolver.View) error {
			if err := d.CheckProviders(v, &x, start.Variants); err != nil {
				return err
			}
			return compose.KeepLinks(v, &start)
		})
	}
	return x, start, err
}

// scheduledStart is the start of a campaign by its schedule, without contents.
func scheduledStart(x *campaigns.Campaign) campaigns.Start {
	start := campaigns.Start{ID: x.ID, Plan: campaigns.Plan{ListIDs: x.ListIDs, SegmentIDs: x.SegmentIDs, BatchSize: max(scheduledBatch, x.Rate.PerSecond()), DelayMs: scheduledDelayMs}, ScheduledMs: x.ScheduledMs, CountsSent: true, Channels: x.ChannelNames()}
	if x.Body == "" {
		start.TemplateID = x.TemplateID
	}
	return start
}
