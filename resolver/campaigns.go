package resolver

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/state"
)

// The commands of campaigns.
const (
	CommandCampaignSave   = "campaign.save.2"
	CommandCampaignDelete = "campaign.delete"

	// commandCampaignSave1 is [CommandCampaignSave] in logs of before dates sent anything.
	commandCampaignSave1 = "campaign.save"
)

const (
	maxCampaigns     = 100_000 // of an account, at a time
	maxCampaignBytes = 1 << 20
	maxAudiences     = 1000 // lists and segments of a campaign
	// keptSentMs is how long a campaign that was sent stays on record at least.
	keptSentMs = 90 * dayMs
)

// Channels and types of campaigns.
const (
	ChannelOmni   = 1
	ChannelSingle = 2

	TypeEmail = 1
	TypeSMS   = 2
	TypeIM    = 3
	TypePush  = 4
)

// Campaign is a message to many, once.
type Campaign struct {
	ID         string   `json:"id"`
	Number     uint32   `json:"number"` // dense; names the sets of its recipients
	Name       string   `json:"name"`
	Channel    int      `json:"channel"`
	Type       int      `json:"type"` // 0 for none
	Date       string   `json:"date"` // ISO 8601, as given
	Subject    string   `json:"subject"`
	Body       string   `json:"body"` // kept apart: see texts.go, [View.CampaignBody]
	Sender     string   `json:"sender"`
	SenderName string   `json:"sender_name"`
	ReplyTo    string   `json:"reply_to"`
	TemplateID string   `json:"template_id,omitempty"`
	ListIDs    []string `json:"list_ids,omitempty"`
	SegmentIDs []string `json:"segment_ids,omitempty"`
	Link       string   `json:"link,omitempty"` // opened by a push message
	CreatedMs  int64    `json:"created_ms"`
	UpdatedMs  int64    `json:"updated_ms"`
	// OneOff campaigns are made by the service for one send. When the account has as
	// many campaigns as it can have, the oldest that is over gives way to a new one.
	OneOff bool `json:"one_off,omitempty"`
	// BodyBytes is the length of the body.
	BodyBytes int `json:"body_bytes,omitempty"`
	CampaignSchedule
}

// CampaignID names a campaign.
type CampaignID struct {
	ID string `json:"id"`
}

// Medium is the channel that a campaign's messages go out on, by its name in
// consents.
func (c *Campaign) Medium() string {
	if c.Channel == ChannelSingle {
		switch c.Type {
		case TypeSMS:
			return "sms"
		case TypeIM:
			return "im"
		case TypePush:
			return "push"
		}
	}
	return "email"
}

// saveCampaign makes a campaign, or replaces the one with the ID. The reply is
// without the body.
func (m *Machine) saveCampaign(cmd *command, c CampaignSave) *Refusal {
	a := cmd.account
	if r := a.checkCampaign(&c.Campaign); r != nil {
		return r
	}
	c.CreatedMs, c.UpdatedMs = m.logTime, m.logTime
	made, was := c.ID == "", 0
	var old *Campaign
	c.CampaignSchedule = CampaignSchedule{}
	if made {
		switch {
		case len(a.campaigns) >= m.campaignLimit && !m.makeRoomForCampaign(a):
			return atLimit("", "this account has %d campaigns, the most it can have; delete one first: drafts, and those sent more than 90 days ago", m.campaignLimit)
		case a.NextCampaign == maxNumber:
			return atLimit("", "this account has made %d campaigns, the most it can ever make", uint32(maxNumber))
		}
		c.ID, c.Number = feature.NewID("cmp_", cmd.env.ID), a.NextCampaign
	} else {
		if old = a.campaigns[c.ID]; old == nil {
			return noCampaign()
		}
		if a.runs[c.ID].Busy() {
			return &Refusal{Code: "conflict", Message: "the campaign is being sent; wait until that is done"}
		}
		c.Number, c.CreatedMs, c.OneOff, was = old.Number, old.CreatedMs, old.OneOff, old.BodyBytes
	}
	if r := a.sending.RoomForText("body", len(c.Body)-was); r != nil {
		return r
	}
	c.BodyBytes = a.sending.PutText(campaigns.TextCampaign, c.ID, was, []byte(c.Body))
	c.Body = ""
	if cmd.name != commandCampaignSave1 {
		c.CampaignSchedule = m.schedule(&c, old)
	}
	if a.installCampaign(&c.Campaign); made {
		m.saveNumbers(a)
	}
	m.store.PutEntity(state.EntityKey(a.number, state.EntityCampaign, c.ID), must.JSON(c.Campaign))
	cmd.reply(c.Campaign)
	return nil
}

func noCampaign() *Refusal { return notFound("id", "there is no campaign with this id") }

// checkCampaign says what is wrong with a campaign. Whether its sender may send
// is asked when it is sent.
func (a *account) checkCampaign(c *Campaign) *Refusal {
	if r := refuse.Name(c.Name); r != nil {
		return r
	}
	switch {
	case c.Channel != ChannelOmni && c.Channel != ChannelSingle:
		return invalid("channel", "channel Input should be 1 or 2")
	case c.Type < 0 || c.Type > TypePush || c.Type == 0 && c.Channel == ChannelSingle:
		return invalid("type", "type Input should be 1, 2, 3 or 4")
	case c.Date == "" && c.Channel == ChannelSingle:
		return invalid("date", "date Field required")
	case len(c.Subject) > campaigns.MaxSubjectBytes:
		return invalid("subject", "subject must have at most %d bytes", campaigns.MaxSubjectBytes)
	case len(must.JSON(c)) > maxCampaignBytes:
		return atLimit("body", "the campaign must have at most %d bytes", maxCampaignBytes)
	case c.TemplateID != "" && !a.hasTemplate(c.TemplateID):
		return campaigns.NoTemplate()
	}
	return a.checkAudience(c.ListIDs, c.SegmentIDs)
}

// checkAudience says which list or segment is not there.
func (a *account) checkAudience(lists, segments []string) *Refusal {
	if len(lists)+len(segments) > maxAudiences {
		return invalid("list_id", "list_id and segment_ids must have at most %d ids together", maxAudiences)
	}
	for _, id := range lists {
		if a.list(id) == nil {
			return notFound("list_id", "list_id: there is no list with the id %q", id)
		}
	}
	for _, id := range segments {
		if a.segments[id] == nil {
			return notFound("segment_ids", "segment_ids: there is no segment with the id %q", id)
		}
	}
	return nil
}

// installCampaign takes in a campaign. Those of a checkpoint come in any order,
// and the one-off ones among them are to be sorted after that.
func (a *account) installCampaign(c *Campaign) {
	old := a.campaigns[c.ID]
	if old == nil && c.OneOff {
		a.oneOffs = append(a.oneOffs, c.Number)
	}
	if old != nil {
		a.leaveSchedule(old)
	}
	a.enterSchedule(c)
	a.campaigns[c.ID] = c
	a.campaignIDs[c.Number] = c.ID
	a.NextCampaign = max(a.NextCampaign, c.Number+1)
}

// deleteCampaign removes a campaign that was never sent, or some time ago: what
// was sent stays on record for a while, and its links lead somewhere.
func (m *Machine) deleteCampaign(cmd *command, c CampaignID) *Refusal {
	a := cmd.account
	old := a.campaigns[c.ID]
	if old == nil {
		return noCampaign()
	}
	switch r := a.runs[c.ID]; {
	case r.Busy():
		return &Refusal{Code: "conflict", Message: "the campaign is being sent; wait until that is done"}
	case r != nil && m.logTime-r.FinishedMs < keptSentMs:
		return &Refusal{Code: "conflict", Message: "the campaign was sent, so it stays on record; it may be deleted 90 days after it was sent last"}
	}
	m.dropCampaign(a, old)
	return nil
}

// makeRoomForCampaign drops the oldest one-off campaign that is over. It returns
// whether there was one.
func (m *Machine) makeRoomForCampaign(a *account) bool {
	for _, number := range a.oneOffs {
		// What was made and not sent is about to be, unless a crash came between.
		x := a.campaigns[a.campaignIDs[number]]
		if r := a.runs[x.ID]; r != nil && !r.Busy() || r == nil && m.logTime-x.CreatedMs > dayMs {
			m.dropCampaign(a, x)
			return true
		}
	}
	return false
}

// dropCampaign removes a campaign and all that is kept of it. Its number is not
// used again.
func (m *Machine) dropCampaign(a *account, x *Campaign) {
	for _, which := range campaignSets {
		m.dropSet(a, campaignSet(x.Number, which))
	}
	if i, ok := slices.BinarySearch(a.oneOffs, x.Number); ok {
		a.oneOffs = slices.Delete(a.oneOffs, i, i+1)
	}
	a.leaveSchedule(x)
	a.sending.PutText(campaigns.TextCampaign, x.ID, x.BodyBytes, nil)
	if r := a.runs[x.ID]; r != nil {
		m.dropRunSets(a, x, r)
		m.keepContents(a, r, r, nil, nil)
	}
	delete(a.campaigns, x.ID)
	delete(a.campaignIDs, x.Number)
	delete(a.runs, x.ID)
	for _, kind := range [...]byte{state.EntityCampaign, state.EntityRun} {
		m.store.PutEntity(state.EntityKey(a.number, kind, x.ID), nil)
	}
}

// Campaigns lists the campaigns, the oldest first, without their bodies.
func (v *View) Campaigns() []Campaign {
	out := make([]Campaign, 0, len(v.a.campaigns))
	for _, c := range v.a.campaigns {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(x, y Campaign) int { return cmp.Compare(x.Number, y.Number) })
	return out
}

// Campaign finds a campaign; its body is not read.
func (v *View) Campaign(id string) (Campaign, bool) {
	if c := v.a.campaigns[id]; c != nil {
		return *c, true
	}
	return Campaign{}, false
}

// The sets of a campaign's recipients.
const (
	setAudience     = "audience"     // still to be sent to
	setPending      = "pending"      // being sent to
	setSent         = "sent"         // a provider took responsibility
	setFailed       = "failed"       // could not be sent to
	setDelivered    = "delivered"    // a provider said so
	setOpened       = "opened"       // once or more
	setClicked      = "clicked"      // once or more
	setBounced      = "bounced"      // hard
	setComplained   = "complained"   //
	setUnsubscribed = "unsubscribed" // by a link of the campaign
)

// campaignSets are all of them.
var campaignSets = [...]string{setAudience, setPending, setSent, setFailed, setDelivered, setOpened, setClicked, setBounced, setComplained, setUnsubscribed}

func campaignSet(number uint32, which string) string {
	var b strings.Builder
	b.WriteString("campaign/")
	b.WriteString(strconv.FormatUint(uint64(number), 10))
	b.WriteByte('/')
	b.WriteString(which)
	return b.String()
}
