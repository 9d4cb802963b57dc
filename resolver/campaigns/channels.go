package campaigns

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// MediumOmni is the [Campaign.Medium] of campaigns that go out on several channels.
const MediumOmni = "omni"

// The channels of messages by their names in consents.
const (
	mediumEmail = "email"
	mediumSMS   = "sms"
	mediumIM    = "im"
	mediumPush  = "push"
)

// NoChannel is the reason for which people are passed over whom none of a campaign's
// channels reaches. The counts of each channel have its own reasons.
const NoChannel = "no channel of the campaign reaches the person"

// maxChannelBody bounds the text of one channel, in bytes: what WhatsApp takes.
const maxChannelBody = 4096

// ChannelMessage is what a campaign of [ChannelOmni] sends on one of its channels. That of
// e-mail has no texts of its own: it is the campaign's own subject, body and template.
type ChannelMessage struct {
	Channel string `json:"channel"`           // email, sms, whatsapp, im or push
	Subject string `json:"subject,omitempty"` // title of a push message
	Body    string `json:"body,omitempty"`
	Sender  string `json:"sender,omitempty"` // number or name that texts come from
	Link    string `json:"link,omitempty"`   // opened by a push message
	// WhatsApp is sent by WhatsApp in place of the body, Push are options of a push message;
	// nil for none.
	WhatsApp *WhatsAppTemplate `json:"whatsapp,omitempty"`
	Push     *PushOptions      `json:"push,omitempty"`
}

// channelNames are all channels, in a fixed order.
var channelNames = [...]string{mediumEmail, mediumSMS, mediumWhatsApp, mediumIM, mediumPush}

// types are the types of campaigns by their channels.
var types = map[string]int{mediumEmail: TypeEmail, mediumSMS: TypeSMS, mediumWhatsApp: TypeIM, mediumIM: TypeIM, mediumPush: TypePush}

// Parts are the single-channel campaigns that a campaign of several channels consists of,
// in its order of preference, with its id and number. Those of any other campaign are the
// campaign itself.
func (c *Campaign) Parts() []Campaign {
	if len(c.Channels) == 0 {
		return []Campaign{*c}
	}
	out := make([]Campaign, len(c.Channels))
	for i, m := range c.Channels {
		x := *c
		x.Channel, x.Type, x.Channels = ChannelSingle, types[m.Channel], nil
		if m.Channel != mediumEmail {
			x.Subject, x.Body, x.Sender, x.Link, x.WhatsApp, x.Push = m.Subject, m.Body, m.Sender, m.Link, m.WhatsApp, m.Push
			x.TemplateID = ""
		}
		if m.Channel == mediumWhatsApp {
			x.Service = ServiceWhatsApp
		}
		out[i] = x
	}
	return out
}

// Media are the channels that a campaign goes out on, in its order of preference.
func (c *Campaign) Media() []string {
	if len(c.Channels) == 0 {
		return []string{c.Medium()}
	}
	out := make([]string, len(c.Channels))
	for i, m := range c.Channels {
		out[i] = m.Channel
	}
	return out
}

// ChannelNames are the channels of a campaign of several, none of any other.
func (c *Campaign) ChannelNames() []string {
	if len(c.Channels) == 0 {
		return nil
	}
	return c.Media()
}

// ChannelField is the name in requests of the channel i of a campaign of several channels,
// which stands before the names of its fields.
func ChannelField(i int) string { return "channels[" + strconv.Itoa(i) + "]" }

// CheckChannels says what is wrong with the channels of a campaign; nil for nothing.
func (c *Campaign) CheckChannels() *refuse.Refusal {
	switch {
	case len(c.Channels) == 0:
		return nil
	case c.Channel != ChannelOmni:
		return refuse.Invalid("channels", "channels Input should be left out where channel is not 1: a single-channel campaign has its type")
	case len(c.Channels) > len(types):
		return refuse.Invalid("channels", "channels Input should have at most %d entries", len(types))
	}
	parts := c.Parts()
	for i := range parts {
		if r := c.checkChannel(i, &parts[i]); r != nil {
			field := ChannelField(i)
			r.Field, r.Message = field+"."+r.Field, field+"."+r.Message
			return r
		}
	}
	return nil
}

// checkChannel says what is wrong with one channel, by the names of its own fields.
func (c *Campaign) checkChannel(i int, part *Campaign) *refuse.Refusal {
	m := &c.Channels[i]
	same := func(x ChannelMessage) bool { return x.Channel == m.Channel }
	switch {
	case types[m.Channel] == 0:
		return refuse.Invalid("channel", "channel Input should be email, sms, whatsapp, im or push")
	case slices.IndexFunc(c.Channels, same) < i:
		return refuse.Invalid("channel", "channel Input should name each channel once; %s stands there twice", m.Channel)
	case m.Channel == mediumEmail && *m != ChannelMessage{Channel: mediumEmail}:
		return refuse.Invalid("channel", "channel email Input should stand alone: an e-mail has the campaign's own subject, body, template_id and sender")
	case m.Channel != mediumPush && m.Subject+m.Link != "":
		return refuse.Invalid("subject", "subject and link should be left out where channel is not push")
	case m.Channel != mediumPush && m.Push != nil:
		return refuse.Invalid("push", "push Input should be left out where channel is not push")
	case m.Channel != mediumWhatsApp && m.WhatsApp != nil:
		return refuse.Invalid("whatsapp", "whatsapp Input should be left out where channel is not whatsapp")
	case m.Channel != mediumSMS && m.Channel != mediumIM && m.Sender != "":
		return refuse.Invalid("sender", "sender Input should be left out where channel is not sms or im")
	case len(m.Subject) > MaxSubjectBytes:
		return refuse.Invalid("subject", "subject must have at most %d bytes", MaxSubjectBytes)
	case len(m.Body) > maxChannelBody:
		return refuse.Invalid("body", "body must have at most %d bytes", maxChannelBody)
	case strings.ContainsAny(m.Sender, "\r\n") || len(m.Sender) > MaxSubjectBytes:
		return refuse.Invalid("sender", "sender must be one line of at most %d bytes", MaxSubjectBytes)
	}
	if m.Channel == mediumEmail {
		return nil
	}
	if r := part.checkService(); r != nil {
		return r
	}
	return part.checkPush()
}

// ChannelCounts are what became of people on one channel of a run.
type ChannelCounts struct {
	// Failed is how many messages could not be handed over. Where the failure was final, the
	// person's next channel was tried.
	Failed uint64 `json:"failed,omitempty"`
	// Skipped is how many people were passed over on this channel, by reason, for the next one.
	Skipped map[string]int `json:"skipped,omitempty"`
}

// skip counts a person that the channel does not reach.
func (c *ChannelCounts) skip(reason string) { countReason(&c.Skipped, reason) }

// claimSet names the set of those to whom a campaign of several channels is about to be sent
// by one of them: its pending recipients, and those of a run that was stopped, of whom it is
// not known whether their message has gone out.
func claimSet(medium string) string { return "via/" + medium }

// channelSet names the set of those of whom something is known of their message on one
// channel of a campaign of several, such as [Opened].
func channelSet(medium, which string) string { return "by/" + medium + "/" + which }

// channelSets are what is known of recipients by channel.
var channelSets = [...]string{setSent, Delivered, Opened, Clicked, Bounced, Complained, Unsubscribed}

// claim notes which channel of a run a recipient is sent to on.
func (s *State) claim(x *Campaign, r *Run, ordinal uint32, channel int) {
	s.unclaim(x, ordinal)
	s.set(x, claimSet(r.Channels[channel])).Add(ordinal)
}

// unclaim forgets which channel a recipient is sent to on.
func (s *State) unclaim(x *Campaign, ordinal uint32) {
	for _, medium := range channelNames { // an earlier run may have had others
		if s.members(x, claimSet(medium)).Contains(ordinal) {
			s.set(x, claimSet(medium)).Remove(ordinal)
		}
	}
}

// claimed is the channel that a profile is sent to on, or was about to be in a run that was
// stopped; "" for none.
func (s *State) claimed(x *Campaign, ordinal uint32) string {
	for _, medium := range channelNames {
		if s.members(x, claimSet(medium)).Contains(ordinal) {
			return medium
		}
	}
	return ""
}

// via is the place among the run's channels of the one that a recipient is sent to on; it
// is 0 in a run on one channel.
func (s *State) via(x *Campaign, r *Run, ordinal uint32) int {
	return max(0, slices.Index(r.Channels, s.claimed(x, ordinal)))
}

// mediumOf is the channel that a recipient of a run is sent to on.
func (s *State) mediumOf(x *Campaign, r *Run, ordinal uint32) string {
	if len(r.Channels) == 0 {
		return x.Medium()
	}
	return r.Channels[s.via(x, r, ordinal)]
}

// mediumOfContent is the channel of a content that a campaign is started with.
func (s *State) mediumOfContent(x *Campaign, i int) string {
	if len(x.Channels) == 0 {
		return x.Medium()
	}
	return x.Channels[i].Channel
}

// pendingEmails are those of the pending recipients of a run who are sent an e-mail.
func (s *State) pendingEmails(x *Campaign, r *Run) uint64 {
	pending := s.members(x, setPending)
	switch {
	case len(r.Channels) > 0:
		return pending.AndCardinality(s.members(x, claimSet(mediumEmail)))
	case x.Medium() == mediumEmail:
		return pending.GetCardinality()
	}
	return 0
}

// choose finds the first channel, from one on, that reaches a profile; reasons are why
// channels do not. ok is false where none does, and channel then their number.
func choose(reasons []string, from int) (channel int, ok bool) {
	for i := from; i < len(reasons); i++ {
		if reasons[i] == "" {
			return i, true
		}
	}
	return len(reasons), false
}

// skipChannels counts a person on the channels of a run that do not reach them.
func (r *Run) skipChannels(reasons []string, from, to int) {
	for i := from; i < to; i++ {
		r.channelCounts(i).skip(reasons[i])
	}
}

// channelCounts finds the counts of a channel or makes them.
func (r *Run) channelCounts(i int) *ChannelCounts {
	if len(r.ByChannel) < len(r.Channels) {
		r.ByChannel = append(r.ByChannel, make([]ChannelCounts, len(r.Channels)-len(r.ByChannel))...)
	}
	return &r.ByChannel[i]
}

// goesOn reports whether a message that was not sent is not the last for its recipient in
// this run. The recipient's next channel is claimed then, and is the reply; or an e-mail is
// next for which there is no credit: the run stops, and the recipient is part of its audience
// again.
func (s *State) goesOn(tx *feature.Tx, x *Campaign, r *Run, c *Result) bool {
	if len(r.Channels) == 0 || c.Result == ResultSent {
		return false
	}
	if present := r.channelCounts(c.Variant); c.Result == ResultSkipped {
		present.skip(c.Reason)
	} else {
		present.Failed++
	}
	if !c.Unreachable || !r.Busy() {
		return false
	}
	// What was just recorded, such as a bounce, counts already.
	o := s.host.Root(c.Ordinal)
	reasons, _ := s.host.Reach(o, r.Channels)
	channel, ok := choose(reasons, c.Variant+1)
	if ok {
		var until int64
		var reason string
		if channel, until, reason = s.limited(x, o, r.Channels, reasons, channel, false); until != 0 {
			s.set(x, setPending).Remove(c.Ordinal)
			s.unclaim(x, c.Ordinal)
			s.hold(x, r, o, until)
			return true
		}
		ok = reason == ""
	}
	if ok && r.Channels[channel] == mediumEmail {
		if s.host.EmailCredits() < 1 {
			s.set(x, setPending).Remove(c.Ordinal)
			s.unclaim(x, c.Ordinal)
			s.set(x, setAudience).Add(c.Ordinal)
			s.stopRun(tx, r, outOfCredits)
			return true
		}
		s.host.SpendCredits(1)
	}
	r.skipChannels(reasons, c.Variant+1, channel)
	if !ok {
		return false
	}
	if c.Result != ResultSkipped {
		r.note(c.Reason)
	}
	s.claim(x, r, c.Ordinal, channel)
	if !x.IgnoresLimits {
		s.host.Count(o, r.Channels[channel], x.Number)
	}
	tx.Reply = ResultReply{Next: &Recipient{Ordinal: c.Ordinal, Variant: channel}}
	return true
}

// ChannelNumbers are what is known of the recipients on one channel of a campaign of
// several channels. Failed and Skipped are of the last run.
type ChannelNumbers struct {
	Channel string
	ChannelCounts
	Sent, Delivered, Opened, Clicked, Bounced, Complained, Unsubscribed uint64
}

// ByChannel counts a campaign's recipients by channel, in the order of its last run, and
// behind them on channels of earlier runs; there is nothing to count for campaigns on one
// channel.
func (s *State) ByChannel(x Campaign) (out []ChannelNumbers) {
	r := s.runs[x.ID]
	if r == nil {
		return nil
	}
	media := slices.Clone(r.Channels)
	for _, medium := range channelNames {
		if !slices.Contains(media, medium) && !s.members(&x, channelSet(medium, setSent)).IsEmpty() {
			media = append(media, medium)
		}
	}
	for i, medium := range media {
		of := func(which string) uint64 { return s.members(&x, channelSet(medium, which)).GetCardinality() }
		n := ChannelNumbers{
			Channel: medium, Sent: of(setSent), Delivered: of(Delivered), Opened: of(Opened), Clicked: of(Clicked),
			Bounced: of(Bounced), Complained: of(Complained), Unsubscribed: of(Unsubscribed),
		}
		if i < len(r.ByChannel) {
			n.ChannelCounts = r.ByChannel[i]
			n.Skipped = maps.Clone(n.Skipped) // the state goes on changing it
		}
		out = append(out, n)
	}
	return out
}

// VariantOn is the place among the contents of a campaign's newest run of the message that
// went out on a channel, −1 if that run does not have the channel. The ids of messages on
// several channels do not say it: channels may have been put in another order since.
func (s *State) VariantOn(id, medium string, variant int) int {
	if r := s.runs[id]; r != nil && len(r.Channels) > 0 {
		return slices.Index(r.Channels, medium)
	}
	return variant
}

// moveClicks are the clicks by link of the run before, by the links of this one.
func (r *Run) moveClicks(old *Run) []uint64 {
	if len(r.Channels) == 0 || slices.Equal(r.Channels, old.Channels) && slices.Equal(r.Links, old.Links) {
		return old.ByLink
	}
	var out []uint64
	for i, medium := range r.Channels {
		clicks := make([]uint64, r.Links[i])
		if k := slices.Index(old.Channels, medium); k >= 0 {
			from := old.LinksBefore(k)
			for n := range min(r.Links[i], old.Links[k], max(0, len(old.ByLink)-from)) {
				clicks[n] = old.ByLink[from+n]
			}
		}
		out = append(out, clicks...)
	}
	return out
}
