package reach

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment"
)

// Three sets for each channel hold the contacts by kind of status there, as far as
// time does not decide it: searches look at no others.
const (
	standingActive       = iota // subscribed, engaged or at risk
	standingUnsubscribed        // unsubscribed
	standingSuppressed          // pending, bounced, complained or suppressed
	standings

	standingNone = -1 // no status
)

// standingNames are the last part of the sets' names.
var standingNames = [standings]string{"active", "unsubscribed", "blocked"}

// statusSets are the sets of an account, by channel as in profile.Channels.
type statusSets [][standings]*profile.OrdinalSet

// newStatusSets are the sets among those of an account.
func newStatusSets(of *profile.OrdinalSets) statusSets {
	s := make(statusSets, len(profile.Channels))
	for i, channel := range profile.Channels {
		for k, name := range standingNames {
			s[i][k] = of.Set(prefix + channel + "/" + name)
		}
	}
	return s
}

// standingOf is what kind of status a profile has on a channel, see
// [segment.Facts.Status].
func standingOf(d *profile.Document, channel byte) int {
	reason := d.GravestSuppression(channel)
	if reason > profile.SuppressionPending {
		return standingSuppressed
	}
	for i := range d.Consents {
		if d.Consents[i].Channel != channel {
			continue
		}
		switch d.Consents[i].Status {
		case profile.ConsentUnsubscribed:
			return standingUnsubscribed
		case profile.ConsentSubscribed:
			if reason == profile.SuppressionPending {
				return standingSuppressed
			}
			return standingActive
		}
		return standingNone
	}
	return standingNone
}

// decide calls fn for each set with whether the profile of a document is in it. Of one
// channel it is in one set at most.
func (s statusSets) decide(d *profile.Document, fn func(x *profile.OrdinalSet, in bool)) {
	for channel := range s {
		in := standingOf(d, byte(channel))
		for standing, x := range s[channel] {
			fn(x, standing == in)
		}
	}
}

// each calls fn for the sets.
func (s statusSets) each(fn func(*profile.OrdinalSet)) {
	for channel := range s {
		for _, set := range s[channel] {
			fn(set)
		}
	}
}

// WithStatus are profiles of which those are some that have a status on a channel. The
// answer must not be changed.
func (s *Sets) WithStatus(channel, status string) *roaring.Bitmap {
	i := slices.Index(profile.Channels, channel)
	if i < 0 {
		return profile.EmptySet
	}
	for kind, statuses := range standingStatuses {
		if slices.Contains(statuses, status) {
			return s.statuses[i][kind].Bits
		}
	}
	return profile.EmptySet
}

// standingStatuses are the statuses of each kind.
var standingStatuses = [standings][]string{
	standingActive:       {segment.ContactSubscribed, segment.ContactEngaged, segment.ContactAtRisk},
	standingUnsubscribed: {segment.ContactUnsubscribed},
	standingSuppressed:   {segment.ContactPending, segment.ContactBounced, segment.ContactComplained, segment.ContactSuppressed},
}

// StatusMembers are those of all profiles that satisfy a condition on a status. It is not
// ok where the condition tells apart what the sets do not.
func (s *Sets) StatusMembers(p *segment.Predicate, all *roaring.Bitmap) (members *roaring.Bitmap, ok bool) {
	channel := slices.Index(profile.Channels, p.Path[1])
	if channel < 0 {
		return nil, false
	}
	asked := func(status string) bool {
		return slices.ContainsFunc(p.Values, func(x segment.Value) bool { return x.Kind == segment.ValueString && x.Str == status })
	}
	negated := false
	switch p.Op {
	case segment.OpEq, segment.OpIn:
	case segment.OpNe, segment.OpNotIn:
		negated = true
	case segment.OpExists, segment.OpNotExists:
		asked, negated = func(string) bool { return true }, p.Op == segment.OpNotExists
	default:
		return nil, false
	}
	members = roaring.New()
	for kind, statuses := range standingStatuses {
		if kind == standingActive && p.Path[1] != "email" {
			statuses = statuses[:1] // engagement is of e-mail
		}
		n := 0
		for _, status := range statuses {
			if asked(status) {
				n++
			}
		}
		switch n {
		case 0:
		case len(statuses):
			members.Or(s.statuses[channel][kind].Bits)
		default:
			return nil, false
		}
	}
	if negated {
		members = roaring.AndNot(all, members)
	}
	return members, true
}
