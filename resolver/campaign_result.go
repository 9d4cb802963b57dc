package resolver

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment/engine"
)

// CampaignResult reports one message of a campaign.
type CampaignResult struct {
	ID      string `json:"id"`
	Run     int    `json:"run"`
	Ordinal uint32 `json:"ordinal"`
	Variant int    `json:"variant"`
	Result  string `json:"result"`
	Reason  string `json:"reason,omitempty"`
	// Handed says that a message that failed went out in full and may have been
	// taken: the answer was lost.
	Handed bool `json:"handed,omitempty"`
	// Devices, Accepted and Retired are devices, for push: those addressed, those
	// taken, and the addresses called dead.
	Devices  uint64   `json:"devices,omitempty"`
	Accepted uint64   `json:"accepted,omitempty"`
	Retired  []string `json:"retired,omitempty"` // addresses
	// Epoch is that of the batch. When it is over, only that something was sent is
	// taken note of.
	Epoch uint64 `json:"epoch,omitempty"`
}

// The events that sending records, by medium.
func sentType(medium string) string    { return medium + "_sent" }
func failedType(medium string) string  { return medium + "_failed" }
func bouncedType(medium string) string { return medium + "_bounced" }

// resultCampaign records what became of a message. A result that was recorded
// before changes nothing.
func (m *Machine) resultCampaign(cmd *command, c CampaignResult) *Refusal {
	a := cmd.account
	x := a.campaigns[c.ID]
	r := a.runs[c.ID]
	if r == nil || r.Run != c.Run {
		return runOver()
	}
	if r := m.checkOutcome(c.Epoch, c.Result); r != nil {
		return r
	}
	if !a.set(campaignSet(x.Number, setPending)).Remove(c.Ordinal) {
		return nil
	}
	a.touchRun(r)
	paid := r.takePaid()
	if c.Result == outbox.ResultSkipped {
		if r.Skipped == nil {
			r.Skipped = map[string]int{}
		}
		r.Skipped[c.Reason]++
		r.note(c.Reason)
		if paid {
			m.giveBack(a, x.Medium(), 1)
		}
		return nil
	}
	o := a.root(c.Ordinal)
	if err := m.load(a, o, &m.doc); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	d, medium := &m.doc, x.Medium()
	event := ownEvent{failedType(medium), properties{"campaign_id": c.ID, "campaign_name": x.Name}}
	cmd.noteDomain(event.properties, medium, d)
	fields := engine.Fields(0)
	switch c.Result {
	case outbox.ResultSent:
		if !paid {
			m.spendCredits(a, 1)
		}
		a.set(campaignSet(x.Number, setSent)).Add(o)
		r.Sent++
		r.variantCounts(c.Variant).Sent++
		d.Engaged.Sent++
		d.Engaged.LastSentMs = m.logTime
		fields |= engine.FieldEngagement
		event.typ = sentType(medium)
	case outbox.ResultBounced:
		a.set(campaignSet(x.Number, setBounced)).Add(o)
		if d.Block(profile.Block{Channel: byte(slices.Index(profile.Channels, medium)), Reason: profile.BlockBounced, SinceMs: m.logTime}) {
			fields |= engine.FieldConsents
		}
		event.typ = bouncedType(medium)
		fallthrough
	default:
		a.set(campaignSet(x.Number, setFailed)).Add(o)
		r.Failed++
		r.note(c.Reason)
		event.properties["reason"] = c.Reason
		if paid && !c.Handed {
			m.giveBack(a, medium, 1)
		}
		if c.Result == outbox.ResultRefused {
			// The rest waits for a start after the account is put right.
			if r.Busy() {
				m.stopRun(a, r, "stopped: "+c.Reason)
			}
		}
	}
	r.Devices += c.Devices
	r.Accepted += c.Accepted
	r.Retired += uint64(len(c.Retired))
	events := append([]ownEvent{event}, m.dropDevices(a, o, d, retiredDead, func(v *profile.Device) bool { return slices.Contains(c.Retired, string(v.Address)) })...)
	if len(events) > 1 {
		fields |= engine.FieldDevices
	}
	m.updateProfile(cmd, o, d, fields, events...)
	return nil
}

// giveBack returns the credit of a message that no relay has taken: a credit is
// for a message that went out, or may have.
func (m *Machine) giveBack(a *account, medium string, n uint64) {
	if medium == "email" && n > 0 {
		a.EmailCredits += int64(n)
		m.store.PutEntity(state.EntityKey(a.number, state.EntityAccount, ""), must.JSON(a.accountEntity))
	}
}

// returnCredits gives back what the messages cost that a run which was stopped has
// not sent. They stay pending: what became of one may be reported late.
func (m *Machine) returnCredits(a *account, x *Campaign, r *CampaignRun) {
	if x.Medium() != "email" {
		return
	}
	n := a.members(campaignSet(x.Number, setPending)).GetCardinality()
	m.giveBack(a, "email", n-min(n, r.Returned))
	r.Returned = n
}

// takePaid reports whether the credit of one more pending message is still paid, and
// has not been given back.
func (r *CampaignRun) takePaid() bool {
	if r.Returned == 0 {
		return true
	}
	r.Returned--
	return false
}

func (r *CampaignRun) variantCounts(i int) *VariantCounts {
	for len(r.VariantOf) <= min(i, maxVariants) {
		r.VariantOf = append(r.VariantOf, VariantCounts{})
	}
	return &r.VariantOf[min(max(i, 0), maxVariants)]
}

// CampaignFinish ends a run; Stopped says why, if it was before its end.
type CampaignFinish struct {
	ID      string `json:"id"`
	Run     int    `json:"run"`
	Stopped string `json:"stopped,omitempty"`
	// Epoch is the one under which the run was sent, 0 when embedded.
	Epoch uint64 `json:"epoch,omitempty"`
}

// finishCampaign ends a run when no recipient is left, or when it is asked to.
func (m *Machine) finishCampaign(cmd *command, c CampaignFinish) *Refusal {
	if r := m.checkEpoch(c.Epoch); r != nil {
		return r
	}
	a := cmd.account
	x, r := a.run(c.ID, c.Run)
	if r == nil {
		return runOver()
	}
	if c.Stopped != "" {
		m.stopRun(a, r, c.Stopped)
		m.returnCredits(a, x, r)
	} else {
		if !a.members(campaignSet(x.Number, setPending)).IsEmpty() || !a.members(campaignSet(x.Number, setAudience)).IsEmpty() {
			return &Refusal{Code: "conflict", Message: "somebody is still to be sent to"}
		}
		r.Status, r.FinishedMs = RunDone, m.logTime
		m.dropContents(a, r)
		m.notify(a, outbox.NoProfile, webhookevent.CampaignSent, properties{"campaign_id": x.ID, "campaign_name": x.Name, "run": r.Run, "recipients": r.Total, "sent": r.Sent, "failed": r.Failed})
	}
	a.touchRun(r)
	cmd.reply(r)
	return nil
}

// resumeCampaign notes that a run goes on after a stop of the service, and
// answers who was being sent to.
func (m *Machine) resumeCampaign(cmd *command, c CampaignBatch) *Refusal {
	if r := m.checkEpoch(c.Epoch); r != nil {
		return r
	}
	a := cmd.account
	x, r := a.run(c.ID, c.Run)
	if r == nil {
		return runOver()
	}
	r.Resumed++
	a.touchRun(r)
	var reply CampaignBatchReply
	for _, o := range profile.Page(a.members(campaignSet(x.Number, setPending)), 0, maxPending) {
		reply.Recipients = append(reply.Recipients, Recipient{o, r.variant(o)})
	}
	cmd.reply(reply)
	return nil
}

// maxPending is how many recipients of a campaign are being sent to at once at
// most: two batches.
const maxPending = 2 * maxBatch

// BusyCampaigns lists the campaigns of the account whose run goes on, the oldest
// campaign first.
func (v *View) BusyCampaigns() []CampaignRun {
	var out []CampaignRun
	for id, r := range v.a.runs {
		if r.Busy() {
			c, _ := v.CampaignRun(id)
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(x, y CampaignRun) int {
		return cmp.Compare(v.a.campaigns[x.ID].Number, v.a.campaigns[y.ID].Number)
	})
	return out
}
