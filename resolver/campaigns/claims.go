package campaigns

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/resolver/internal/feature"
)

// claim notes which channel of a run a recipient is sent to on.
func (s *State) claim(x *Campaign, r *Run, ordinal uint32, channel int) {
	s.unclaim(x, ordinal)
	s.set(x, claimSet(r.Channels[channel])).Add(ordinal)
}

// unclaim removes the note of the channel on which a recipient is sent to.
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

// getsAnother reports whether the recipient of a message that was not sent gets another one in this
// run, or will be looked at again. Then the recipient's next channel is claimed, and is the
// reply; or it is held until later; or the next is an e-mail for which there is no credit: the
// run stops, and the recipient is part of its audience again.
func (s *State) getsAnother(tx *feature.Tx, x *Campaign, r *Run, c *Result) bool {
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
			s.stopRun(tx, r, outOfCredits, false)
			return true
		}
		s.host.SpendCredits(1)
	}
	r.skipChannels(reasons, c.Variant+1, channel)
	if !ok {
		return false
	}
	if c.Result != ResultSkipped {
		r.note(c.Reason, c.Anonymous)
	}
	s.claim(x, r, c.Ordinal, channel)
	if !x.IgnoresLimits {
		s.host.Count(o, r.Channels[channel], x.Number)
	}
	tx.Reply = ResultReply{Next: &Recipient{Ordinal: c.Ordinal, Variant: channel}}
	return true
}

// ChannelNumbers are the numbers of recipients on one channel of a campaign of
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
			n.Skipped = maps.Clone(n.Skipped) // the state keeps changing it
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
	if !r.CountsApart() || slices.Equal(r.Channels, old.Channels) && slices.Equal(r.Links, old.Links) && r.OwnClicks == old.OwnClicks {
		return old.ByLink
	}
	var out []uint64
	for i := range r.Links {
		clicks := make([]uint64, r.Links[i])
		k := i
		if len(r.Channels) > 0 {
			k = slices.Index(old.Channels, r.Channels[i])
		}
		// Clicks that were counted together are taken for those on the first.
		if k == 0 || 0 < k && k < len(old.Links) && old.CountsApart() {
			from := old.LinksBefore(k)
			for n := range min(r.Links[i], old.linksOf(k), max(0, len(old.ByLink)-from)) {
				clicks[n] = old.ByLink[from+n]
			}
		}
		out = append(out, clicks...)
	}
	return out
}
