package campaigns

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// Result reports one message of a campaign.
type Result struct {
	ID      string `json:"id"`
	Run     int    `json:"run"`
	Ordinal uint32 `json:"ordinal"`
	Variant int    `json:"variant"`
	Result  string `json:"result"`
	Reason  string `json:"reason,omitempty"`
	// Anonymous says that the reason names no recipient.
	Anonymous bool `json:"anonymous,omitempty"`
	// Handed says that a message that failed went out in full and may have been
	// taken: the answer was lost.
	Handed bool `json:"handed,omitempty"`
	// Devices, Accepted and Retired are devices, for push: those addressed, those
	// taken, and the addresses called dead.
	Devices  uint64   `json:"devices,omitempty"`
	Accepted uint64   `json:"accepted,omitempty"`
	Retired  []string `json:"retired,omitempty"` // addresses
	// InApp is an in-app message that was sent, a card.Card as JSON.
	InApp json.RawMessage `json:"in_app,omitempty"`
	// Unreachable says that the message cannot reach the person on this channel, and has not
	// gone out: a campaign of several channels continues to the person's next one.
	Unreachable bool `json:"unreachable,omitempty"`
	// Epoch is that of the batch. When it is over, only that something was sent is
	// taken note of.
	Epoch uint64 `json:"epoch,omitempty"`
}

// ResultReply is the answer to a [Result] of a campaign of several channels.
type ResultReply struct {
	// Next is the message that the same person is to be sent instead, nil for none.
	Next *Recipient `json:"next,omitempty"`
}

// The results of messages. Every other one is a failure: the message will not reach this
// recipient. Senders report messages of the outbox in the same words.
const (
	ResultSent    = "sent"    // a provider took responsibility
	ResultBounced = "bounced" // the address does not exist
	ResultSkipped = "skipped" // nothing is sent to this recipient, as to those who may not be sent to
	ResultRefused = "refused" // the provider refuses the account: all others would fail alike
)

// result records what became of a message. A result that was recorded before changes
// nothing. Under an epoch that is over only that something was sent is recorded.
func (s *State) result(tx *feature.Tx, c Result) *refuse.Refusal {
	s.host.NoteOutcome(c.Ordinal) // also where the run is over
	x := s.campaigns[c.ID]
	r := s.runs[c.ID]
	if r == nil || r.Run != c.Run {
		return runOver()
	}
	if c.Result != ResultSent {
		if r := s.host.CheckEpoch(c.Epoch); r != nil {
			return r
		}
	}
	if !s.members(x, setPending).Contains(c.Ordinal) {
		return nil
	}
	if len(r.Channels) > 0 {
		if present := s.via(x, r, c.Ordinal); present != c.Variant {
			// This was reported before, and the person continued to another channel.
			tx.Reply = ResultReply{Next: &Recipient{Ordinal: c.Ordinal, Variant: present}}
			return nil
		}
	}
	s.touch(r)
	medium := s.mediumOf(x, r, c.Ordinal)
	paid := medium != mediumEmail || r.takePaid()
	if c.Result != ResultSent && !c.Handed {
		if paid {
			s.host.GiveBack(medium, 1)
		}
		s.host.Uncount(s.host.Root(c.Ordinal), x.Number)
	}
	if c.Result != ResultSkipped {
		s.recordAttempt(x, r, &c, medium)
	}
	o := s.host.Root(c.Ordinal)
	if c.Result == ResultBounced && tx.Rules >= rulesBounces {
		s.bounced(x, r, medium, o)
	}
	if s.getsAnother(tx, x, r, &c) {
		return nil
	}
	s.set(x, setPending).Remove(c.Ordinal)
	if len(r.Channels) > 0 {
		s.unclaim(x, c.Ordinal)
	}
	switch c.Result {
	case ResultSkipped:
		r.note(c.Reason, c.Anonymous)
		if len(r.Channels) > 0 && c.Unreachable && r.Busy() {
			c.Reason = NoChannel
		}
		r.skip(c.Reason)
		return nil
	case ResultSent:
		if !paid {
			s.host.SpendCredits(1)
		}
		s.set(x, setSent).Add(o)
		if medium == mediumInApp { // it is in the inbox
			s.set(x, Delivered).Add(o)
		}
		if len(r.Channels) > 0 {
			s.set(x, channelSet(medium, setSent)).Add(o)
			if medium == mediumInApp {
				s.set(x, channelSet(medium, Delivered)).Add(o)
			}
		}
		r.Sent++
		r.ofVariant(c.Variant).Sent++
	case ResultBounced:
		s.bounced(x, r, medium, o)
		fallthrough
	default:
		s.set(x, setFailed).Add(o)
		r.Failed++
		r.note(c.Reason, c.Anonymous)
		if c.Result == ResultRefused && r.Busy() {
			// The rest waits for a start after the account is put right.
			s.stopRun(tx, r, "stopped: "+c.Reason, c.Anonymous)
		}
	}
	return nil
}

// recordAttempt counts a message that was handed over or not, and records it on the profile.
func (s *State) recordAttempt(x *Campaign, r *Run, c *Result, medium string) {
	r.push(c.Devices, c.Accepted, uint64(len(c.Retired)))
	s.host.Record(Report{
		Ordinal: s.host.Root(c.Ordinal), Medium: medium, Result: c.Result, Reason: c.Reason, Retired: c.Retired,
		InApp: c.InApp, Campaign: x, Recipient: c.Ordinal, Variant: c.Variant,
		Properties: map[string]any{"campaign_id": c.ID, "campaign_name": x.Name},
	})
}

// returnCredits gives back what the messages cost that a run which was stopped has
// not sent. They stay pending: what became of one may be reported late.
func (s *State) returnCredits(x *Campaign, r *Run) {
	n := s.pendingEmails(x, r)
	s.host.GiveBack(mediumEmail, n-min(n, r.Returned))
	r.Returned = n
}

// takePaid reports whether the credit of one more pending message is still paid, and
// has not been given back.
func (r *Run) takePaid() bool {
	if r.Returned == 0 {
		return true
	}
	r.Returned--
	return false
}

// Finish ends a run; Stopped says why, if it was before its end.
type Finish struct {
	ID      string `json:"id"`
	Run     int    `json:"run"`
	Stopped string `json:"stopped,omitempty"`
	// Anonymous says that Stopped names no recipient.
	Anonymous bool `json:"anonymous,omitempty"`
	// Epoch is the one under which the run was sent, 0 when embedded.
	Epoch uint64 `json:"epoch,omitempty"`
}

// finish ends a run when no recipient is left, or when it is asked to.
func (s *State) finish(tx *feature.Tx, c Finish) *refuse.Refusal {
	if r := s.host.CheckEpoch(c.Epoch); r != nil {
		return r
	}
	x, r := s.run(c.ID, c.Run)
	if r == nil {
		return runOver()
	}
	if c.Stopped != "" {
		s.stopRun(tx, r, c.Stopped, c.Anonymous)
		s.returnCredits(x, r)
	} else {
		if !s.members(x, setPending).IsEmpty() || !s.members(x, setAudience).IsEmpty() || s.held(x, r) > 0 {
			return refuse.Conflicts("", "somebody is still to be sent to")
		}
		r.Status, r.FinishedMs = RunDone, tx.AtMs
		s.dropHeld(x, r)
		s.dropContents(r)
		s.host.Notify(webhookevent.CampaignSent, map[string]any{"campaign_id": x.ID, "campaign_name": x.Name, "run": r.Run, "recipients": r.Total, "sent": r.Sent, "failed": r.Failed})
	}
	s.touch(r)
	tx.Reply = r
	return nil
}

// Sends reports whether some run continues that does not wait. It looks at all runs.
func (s *State) Sends() bool {
	for _, r := range s.runs {
		if r.Busy() && r.Status != RunWaiting {
			return true
		}
	}
	return false
}

// Busy lists the runs that continue and do not wait, that of the oldest campaign first.
func (s *State) Busy() []Run {
	var out []Run
	for id, r := range s.runs {
		if r.Busy() && r.Status != RunWaiting {
			c, _ := s.Run(id)
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(x, y Run) int {
		return cmp.Compare(s.campaigns[x.ID].Number, s.campaigns[y.ID].Number)
	})
	return out
}

// stopRun ends a run before its end. What is pending costs its credit until its outcome is
// recorded, the schedule is cancelled or the campaign is started again; see returnCredits.
func (s *State) stopRun(tx *feature.Tx, r *Run, reason string, anonymous bool) {
	x := s.campaigns[r.ID]
	s.leaveWait(x, r)
	s.dropHeld(x, r)
	r.stop(tx.AtMs, reason, anonymous)
	s.dropContents(r)
	s.shared.Changed = true
}

// Sending reports whether a run of a campaign continues.
func (s *State) Sending(id string, number int) bool {
	_, r := s.run(id, number)
	return r != nil
}

// Run is the present or last run of a campaign.
func (s *State) Run(id string) (Run, bool) {
	r := s.runs[id]
	if r == nil {
		return Run{}, false
	}
	c := *r
	c.Links, c.Held = slices.Clone(r.Links), slices.Clone(r.Held)
	c.RunCounts = r.RunCounts.clone(len(r.Errors))
	c.ByLink, c.VariantOf = slices.Clone(r.ByLink), slices.Clone(r.VariantOf)
	if r.AB != nil {
		ab := *r.AB
		c.AB = &ab
	}
	c.ByChannel = slices.Clone(r.ByChannel)
	for i := range c.ByChannel {
		c.ByChannel[i].Skipped = maps.Clone(c.ByChannel[i].Skipped)
	}
	return c, true
}

// rulesBounces is the version of the rules from which on an address that does not exist counts as
// bounced also where the person continues to another channel.
const rulesBounces = 25

// bounced counts an address that does not exist.
func (s *State) bounced(x *Campaign, r *Run, medium string, ordinal uint32) {
	s.set(x, Bounced).Add(ordinal)
	if len(r.Channels) > 0 {
		s.set(x, channelSet(medium, Bounced)).Add(ordinal)
	}
}
