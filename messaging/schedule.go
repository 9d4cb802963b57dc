package messaging

import (
	"cmp"
	"errors"
	"time"

	"github.com/musterhq/muster/resolver"
)

// The pace of a campaign that nobody sent by hand: the defaults of a send request.
const (
	scheduledBatch   = 100
	scheduledDelayMs = 1000
)

// scheduleGiveUp is for how long a campaign that is due is tried while what keeps it from
// starting may pass: a segment of its audience is still being built.
const scheduleGiveUp = 24 * time.Hour

// PrepareCampaign checks what a campaign is to send, takes the links out of an e-mail,
// and returns what the state machine is told. A fault is a [*ContentError].
func PrepareCampaign(x *resolver.Campaign, c resolver.CampaignContent) (resolver.CampaignContent, error) {
	if c.HTML == "" && c.Text == "" {
		return c, &ContentError{"", fault("body Field required: the campaign has nothing to send")}
	}
	switch x.Medium() {
	case mediumEmail:
		return PrepareEmail(c)
	case mediumPush:
		out, err := PreparePush(asText(c))
		var f *ContentError
		if errors.As(err, &f) && f.Field == "title" {
			f.Field = "subject"
		}
		return out, err
	}
	// The sender is a number or a name; without one the provider's is taken.
	c.Sender = x.Sender
	return PrepareText(asText(c))
}

// asText is a content that has no markup: what the body says, as it is.
func asText(c resolver.CampaignContent) resolver.CampaignContent {
	if c.Text == "" {
		c.Text = c.HTML
	}
	c.HTML = ""
	return c
}

// OwnContent is what a campaign sends by itself: its own texts, those of its template
// where it has no body.
func OwnContent(v *resolver.View, x *resolver.Campaign) (resolver.CampaignContent, error) {
	out := resolver.CampaignContent{Subject: x.Subject, HTML: x.Body, Sender: cmp.Or(x.Sender, v.DefaultSender()), SenderName: x.SenderName, ReplyTo: x.ReplyTo, Link: x.Link}
	if x.Body != "" || x.TemplateID == "" {
		return out, nil
	}
	t, ok, err := v.WholeTemplate(x.TemplateID)
	if err != nil || !ok {
		return out, err // it is in use, so it is there
	}
	out.HTML, out.Text, out.Subject = t.HTML, t.Text, cmp.Or(t.Subject, out.Subject)
	return out, nil
}

// watchSchedules starts campaigns whose time has come. The state says when one is due;
// the timer is for those that could not be started at once.
func (d *Dispatcher) watchSchedules() {
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		changed, started := d.opts.Node.Changed(), d.opts.Node.CampaignStarted()
		d.startDue()
		t.Reset(takeUpEvery)
		select {
		case <-changed:
		case <-started:
		case <-t.C:
		case <-d.ctx.Done():
			return
		}
	}
}

// startDue starts all campaigns that are due at present.
func (d *Dispatcher) startDue() {
	for _, account := range d.opts.Node.AccountsWithDueCampaigns() {
		var due []resolver.Campaign
		err := d.opts.Node.Look(account, func(v *resolver.View) (err error) { due, err = v.DueCampaigns(); return err })
		if err != nil {
			d.opts.Logger.Debug("scheduled campaigns are not looked at", "error", err)
			continue
		}
		for i := range due {
			if d.ctx.Err() != nil {
				return
			}
			d.startScheduled(account, &due[i])
		}
	}
}

// startScheduled starts a campaign that is due, once: the state takes the schedule away
// with the start. What keeps it from being sent is put on record.
func (d *Dispatcher) startScheduled(account uint64, x *resolver.Campaign) {
	start := resolver.CampaignStart{ID: x.ID, ListIDs: x.ListIDs, SegmentIDs: x.SegmentIDs, BatchSize: scheduledBatch, DelayMs: scheduledDelayMs, ScheduledMs: x.ScheduledMs}
	var content resolver.CampaignContent
	err := d.opts.Node.Look(account, func(v *resolver.View) (err error) {
		if x.Body == "" {
			start.TemplateID = x.TemplateID
		}
		content, err = OwnContent(v, x)
		return err
	})
	if err == nil {
		content, err = PrepareCampaign(x, content)
	}
	if err == nil {
		start.Variants = []resolver.CampaignContent{content}
		err = d.Start(d.ctx, account, start)
	}
	var refusal *resolver.Refusal
	var fault *ContentError
	building := false
	switch {
	case err == nil:
		d.opts.Logger.Info("a scheduled campaign is being sent", "account", resolver.AccountID(account), "campaign", x.ID)
		return
	case errors.As(err, &refusal):
		building = refusal.Code == "conflict" && refusal.Field == "segment_ids"
	case !errors.As(err, &fault):
		d.opts.Logger.Debug("a scheduled campaign is not started yet", "campaign", x.ID, "error", err)
		return // the log or the node is away for a while
	}
	if building && d.opts.Now().UnixMilli()-x.ScheduledMs < scheduleGiveUp.Milliseconds() {
		return
	}
	d.opts.Logger.Warn("a scheduled campaign cannot be sent", "account", resolver.AccountID(account), "campaign", x.ID, "error", err)
	_, _ = d.opts.Node.Command(d.ctx, account, resolver.CommandCampaignUnschedule, resolver.CampaignUnschedule{ID: x.ID, ScheduledMs: x.ScheduledMs, Error: err.Error()})
}
