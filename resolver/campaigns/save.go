package campaigns

import (
	"cmp"
	"encoding/json"
	"iter"
	"math"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// keptSentMs is how long a campaign that was sent stays on record at least.
const keptSentMs = 90 * dayMs

// save makes a campaign, or replaces the one with the ID. The reply is without the body.
func (s *State) save(tx *feature.Tx, c Save) *refuse.Refusal { return s.saveCampaign(tx, c, true) }

// saveUnscheduled is save of logs in which a campaign's date sends nothing.
func (s *State) saveUnscheduled(tx *feature.Tx, c Save) *refuse.Refusal {
	return s.saveCampaign(tx, c, false)
}

func (s *State) saveCampaign(tx *feature.Tx, c Save, dated bool) *refuse.Refusal {
	if r := s.checkCampaign(&c.Campaign); r != nil {
		return r
	}
	c.CreatedMs, c.UpdatedMs = tx.AtMs, tx.AtMs
	made, was, next := c.ID == "", 0, s.host.NextNumber()
	var old *Campaign
	c.Schedule = Schedule{}
	if made {
		switch {
		case len(s.campaigns) >= s.shared.MaxCampaigns && !s.makeRoom(tx):
			return refuse.AtLimit("", "this account has %d campaigns, the most it can have; delete one first: drafts, and those sent more than 90 days ago", s.shared.MaxCampaigns)
		case next == math.MaxUint32:
			return refuse.AtLimit("", "this account has made %d campaigns, the most it can ever make", next)
		}
		c.ID, c.Number = feature.NewID("cmp_", tx.Record), next
	} else {
		if old = s.campaigns[c.ID]; old == nil {
			return noCampaign()
		}
		if s.runs[c.ID].Busy() {
			return refuse.Conflicts("", "the campaign is being sent; wait until that is done")
		}
		c.Number, c.CreatedMs, c.OneOff, was = old.Number, old.CreatedMs, old.OneOff, old.BodyBytes
	}
	if r := s.roomForText("body", len(c.Body)-was); r != nil {
		return r
	}
	c.BodyBytes = s.putText(textCampaign, c.ID, was, []byte(c.Body))
	c.Body = ""
	if dated {
		c.Schedule = s.schedule(&c, old, tx.AtMs)
	}
	if s.install(&c.Campaign); made {
		s.host.SaveNumbers()
	}
	s.put(state.EntityCampaign, c.ID, must.JSON(c.Campaign))
	tx.Reply = c.Campaign
	return nil
}

// checkCampaign says what is wrong with a campaign. Whether its sender may send
// is asked when it is sent.
func (s *State) checkCampaign(c *Campaign) *refuse.Refusal {
	if r := refuse.Name(c.Name); r != nil {
		return r
	}
	switch {
	case c.Channel != ChannelOmni && c.Channel != ChannelSingle:
		return refuse.Invalid("channel", "channel Input should be 1 or 2")
	case c.Type < 0 || c.Type > TypeInApp || c.Type == 0 && c.Channel == ChannelSingle:
		// Requests are checked before, with all types; logs have this text.
		return refuse.Invalid("type", "type Input should be 1, 2, 3 or 4")
	case c.Date == "" && c.Channel == ChannelSingle:
		return refuse.Invalid("date", "date Field required")
	case len(c.Subject) > MaxSubjectBytes:
		return refuse.Invalid("subject", "subject must have at most %d bytes", MaxSubjectBytes)
	case len(must.JSON(c)) > maxCampaignBytes:
		return refuse.AtLimit("body", "the campaign must have at most %d bytes", maxCampaignBytes)
	case c.TemplateID != "" && s.templates[c.TemplateID] == nil:
		return NoTemplate()
	}
	if r := c.CheckService(); r != nil {
		return r
	}
	if r := c.checkPush(); r != nil {
		return r
	}
	if r := c.checkInApp(); r != nil {
		return r
	}
	if r := c.CheckChannels(); r != nil {
		return r
	}
	if r := c.Pacing.check(c.Date); r != nil {
		return r
	}
	return s.checkAudience(c.ListIDs, c.SegmentIDs)
}

// install takes in a campaign. Those of a checkpoint come in any order,
// and the one-off ones among them are to be sorted after that.
func (s *State) install(c *Campaign) {
	old := s.campaigns[c.ID]
	if old == nil && c.OneOff {
		s.oneOffs = append(s.oneOffs, c.Number)
	}
	if old != nil {
		s.leaveSchedule(old)
	}
	s.enterSchedule(c)
	s.campaigns[c.ID] = c
	s.ids[c.Number] = c.ID
	s.host.TakeNumber(c.Number)
}

// delete removes a campaign that was never sent, or some time ago: what
// was sent stays on record for a while, and its links lead somewhere.
func (s *State) delete(tx *feature.Tx, c Ref) *refuse.Refusal {
	old := s.campaigns[c.ID]
	if old == nil {
		return noCampaign()
	}
	switch r := s.runs[c.ID]; {
	case r.Busy():
		return refuse.Conflicts("", "the campaign is being sent; wait until that is done")
	case r != nil && tx.AtMs-r.FinishedMs < keptSentMs:
		return refuse.Conflicts("", "the campaign was sent, so it stays on record; it may be deleted 90 days after it was sent last")
	}
	s.drop(old)
	return nil
}

// makeRoom drops the oldest one-off campaign that is over. It returns
// whether there was one.
func (s *State) makeRoom(tx *feature.Tx) bool {
	for _, number := range s.oneOffs {
		// What was made and not sent is about to be, unless a crash came between.
		x := s.campaigns[s.ids[number]]
		if r := s.runs[x.ID]; r != nil && !r.Busy() || r == nil && tx.AtMs-x.CreatedMs > dayMs {
			s.drop(x)
			return true
		}
	}
	return false
}

// drop removes a campaign and all that is kept of it. Its number is not
// used again.
func (s *State) drop(x *Campaign) {
	for _, which := range sets {
		s.dropSet(x, which)
	}
	for _, medium := range channelNames {
		s.dropSet(x, claimSet(medium))
		for _, which := range channelSets {
			s.dropSet(x, channelSet(medium, which))
		}
	}
	if i, ok := slices.BinarySearch(s.oneOffs, x.Number); ok {
		s.oneOffs = slices.Delete(s.oneOffs, i, i+1)
	}
	s.leaveSchedule(x)
	s.putText(textCampaign, x.ID, x.BodyBytes, nil)
	if r := s.runs[x.ID]; r != nil {
		s.leaveWait(x, r)
		s.dropHeld(x, r)
		s.dropRunSets(x, r)
		s.keepContents(r, r, nil, nil)
	}
	delete(s.campaigns, x.ID)
	delete(s.ids, x.Number)
	delete(s.runs, x.ID)
	for _, kind := range [...]byte{state.EntityCampaign, state.EntityRun} {
		s.put(kind, x.ID, nil)
	}
}

// All lists the campaigns, the oldest first, without their bodies.
func (s *State) All() []Campaign {
	out := make([]Campaign, 0, len(s.campaigns))
	for _, c := range s.campaigns {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(x, y Campaign) int { return cmp.Compare(x.Number, y.Number) })
	return out
}

// Campaign finds a campaign; its body is not read.
func (s *State) Campaign(id string) (Campaign, bool) {
	if c := s.campaigns[id]; c != nil {
		return *c, true
	}
	return Campaign{}, false
}

// ByNumber finds the campaign of a number; its body is not read. Numbers are those that
// the account has given.
func (s *State) ByNumber(number uint32) (Campaign, bool) { return s.Campaign(s.ids[number]) }

// Ongoing are the campaigns that are not over: drafts, those scheduled and those being
// sent, with their present or last runs, nil for none. They must not be changed.
func (s *State) Ongoing() iter.Seq2[*Campaign, *Run] {
	return func(yield func(*Campaign, *Run) bool) {
		for id, x := range s.campaigns {
			if r := s.runs[id]; (r == nil || r.Busy() || x.ScheduledMs != 0) && !yield(x, r) {
				return
			}
		}
	}
}

func (s *State) loadCampaign(value []byte) error {
	c := new(Campaign)
	if err := json.Unmarshal(value, c); err != nil {
		return err
	}
	s.textBytes += int64(c.BodyBytes)
	s.install(c)
	return nil
}
