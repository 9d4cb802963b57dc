package campaigns

import (
	"slices"

	"github.com/musterhq/muster/resolver/internal/profile"
)

// Started reports whether there is a campaign that was sent, or is being sent.
func (s *State) Started(id string) bool { return s.runs[id] != nil }

// CountEngagement counts what a recipient did with a message of a campaign that was sent:
// recipients once, opens and clicks as often as they come. what is [Opened] or another of
// these constants, "" for what has no figure; channel is the message's; link is the number
// of the link, for a click.
func (s *State) CountEngagement(campaign string, ordinal uint32, channel string, variant int, what string, link int) {
	x, r := s.campaigns[campaign], s.runs[campaign]
	s.touch(r)
	if len(r.Channels) > 0 && what != "" {
		s.set(x, channelSet(channel, what)).Add(ordinal)
		if what == Clicked {
			s.set(x, channelSet(channel, Opened)).Add(ordinal)
		}
		variant = s.VariantOn(campaign, channel, variant)
	}
	fresh := what != "" && s.set(x, what).Add(ordinal)
	switch what {
	case Opened:
		r.Opens++
		if fresh {
			r.ofVariant(variant).Opened++
		}
	case Clicked:
		r.Clicks++
		if fresh {
			r.ofVariant(variant).Clicked++
		}
		if links := r.linksOf(variant); link >= 0 && link < links {
			link += r.LinksBefore(variant)
			links += r.LinksBefore(variant)
			r.click(link, links)
		}
		// Images may be off: a click is an open, too.
		if s.set(x, Opened).Add(ordinal) {
			r.ofVariant(variant).Opened++
		}
	}
}

// LinksBefore is where the links of a content begin among those that clicks are counted by.
func (r *Run) LinksBefore(variant int) (n int) {
	if r.CountsApart() {
		for i := range min(variant, len(r.Links)) {
			n += r.Links[i]
		}
	}
	return n
}

// CountsApart reports whether each content's links have their own counts of clicks.
func (r *Run) CountsApart() bool { return len(r.Channels) > 0 || r.OwnClicks }

// Numbers are how many of a campaign's recipients are in each state.
type Numbers struct {
	// Audience are those who are still to be sent to, Held those of them who were put aside.
	// Failed are those whom no send has reached: who failed once and got the message by a later
	// send counts as sent alone.
	Audience, Held, Pending, Sent, Failed, Delivered, Opened, Clicked, Bounced, Complained, Unsubscribed uint64
	// Dismissed and Expired are of in-app messages.
	Dismissed, Expired uint64
}

// Numbers counts a campaign's recipients.
func (s *State) Numbers(x Campaign) Numbers {
	n := func(which string) uint64 { return s.members(&x, which).GetCardinality() }
	held := uint64(0)
	if r := s.runs[x.ID]; r != nil {
		held = s.held(&x, r)
	}
	failed := s.members(&x, setFailed)
	unreached := failed.GetCardinality() - failed.AndCardinality(s.members(&x, setSent))
	return Numbers{n(setAudience) + held, held, n(setPending), n(setSent), unreached, n(Delivered), n(Opened), n(Clicked), n(Bounced), n(Complained), n(Unsubscribed), n(Dismissed), n(Expired)}
}

// RecipientStatus is the outcome of one recipient.
type RecipientStatus struct {
	Ordinal                                                                     uint32
	Listed                                                                      uint32 // the ordinal it stands under in the list: another after a merge
	Sent, Delivered, Opened, Clicked, Bounced, Failed, Complained, Unsubscribed bool
}

// Recipients lists those a campaign was sent to, or failed to be, in order of ordinals,
// from an ordinal on, limit at most.
func (s *State) Recipients(x Campaign, from uint32, limit int) []RecipientStatus {
	set := func(which string) func(uint32) bool { return s.members(&x, which).Contains }
	sent, failed := s.members(&x, setSent), s.members(&x, setFailed)
	list := append(profile.Page(sent, from, limit), profile.Page(failed, from, limit)...)
	slices.Sort(list)
	list = slices.Compact(list)
	delivered, opened, clicked, bounced := set(Delivered), set(Opened), set(Clicked), set(Bounced)
	complained, unsubscribed := set(Complained), set(Unsubscribed)
	var out []RecipientStatus
	for _, o := range list[:min(limit, len(list))] {
		root := s.host.Root(o)
		out = append(out, RecipientStatus{root, o, sent.Contains(o), delivered(root), opened(root), clicked(root), bounced(root), failed.Contains(o) && !sent.Contains(o), complained(root), unsubscribed(root)})
	}
	return out
}
