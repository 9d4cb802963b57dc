package automation

import (
	"maps"
	"slices"

	"github.com/musterhq/muster/flows"
)

// NextChannel continues with a message of an omnichannel step that could not reach a profile
// on a channel: it is queued on the next channel that does. What becomes of the enrolment
// does not depend on it, since that has continued when the first message was queued. event is
// what started the enrolment.
//
// An e-mail for which there is no credit is passed over: the enrolment has left the step, and
// cannot wait for credits.
func (s *State) NextChannel(flow, step string, ordinal uint32, channel string, event []byte) {
	o := s.port.Root(ordinal)
	f, at, tried, ok := s.channelOf(flow, step, channel)
	if !ok || s.port.Erased(o) {
		return
	}
	messages := f.def.Steps[at].Messages
	s.channels(f, at)[tried].Failed++
	d := s.port.Load(o)
	var skipped []flows.Result
	queued := false
	for i := tried + 1; i < len(messages) && !queued; i++ {
		x := &messages[i]
		r := s.port.Reach(d, x.Channel)
		if r == flows.Queued && !x.IgnoresLimits {
			if r, _ = s.port.MayGo(o, x.Channel); r == flows.Held {
				r = flows.QuietHours // no enrolment stands at the step that could wait
			}
		}
		switch {
		case r != flows.Queued:
		case x.Email != nil && s.port.Credits() < 1,
			!s.port.QueueMessage(Source{Ordinal: o, Flow: flow, Step: step, Event: event}, d, x):
			r = flows.Refused
		default:
			queued = true
			continue
		}
		skipped = append(skipped, r)
	}
	s.countChannels(f, at, tried+1, skipped, queued)
}

// MessageFailed counts a message of an omnichannel step that failed and that no other channel
// takes the place of, because it may have gone out. Under older rules it did not count.
func (s *State) MessageFailed(flow, step, channel string) {
	if f, at, i, ok := s.channelOf(flow, step, channel); ok && s.port.Rules() >= rulesFailedCount {
		s.channels(f, at)[i].Failed++
	}
}

// channelOf finds the omnichannel step of a message, and the place of its channel there.
func (s *State) channelOf(flow, step, channel string) (f *flow, at, place int, ok bool) {
	if f = s.flow(flow); f == nil {
		return nil, 0, 0, false
	}
	at = slices.IndexFunc(f.def.Steps, func(x flows.Step) bool { return x.ID == step && x.Type == flows.StepOmnichannel })
	if at < 0 {
		return nil, 0, 0, false
	}
	place = slices.IndexFunc(f.def.Steps[at].Messages, func(m flows.Message) bool { return m.Channel == channel })
	return f, at, place, place >= 0
}

// countChannels counts a person on the channels of an omnichannel step from one on: passed
// over on the first of them, and queued on the one behind these. Steps of one channel have
// nothing to count.
func (s *State) countChannels(f *flow, step, from int, skipped []flows.Result, queued bool) {
	if f.def.Steps[step].Type != flows.StepOmnichannel {
		return
	}
	counts := s.channels(f, step)[from:]
	for i, r := range skipped {
		if counts[i].Skipped == nil {
			counts[i].Skipped = map[flows.Result]uint64{}
		}
		counts[i].Skipped[r]++
	}
	if queued {
		counts[len(skipped)].Queued++
	}
}

// channels are the counts of the channels of an omnichannel step, to be changed.
func (s *State) channels(f *flow, step int) []ChannelCount {
	c := &s.count(f).Steps[step]
	if c.Channels == nil {
		c.Channels = make([]ChannelCount, len(f.def.Steps[step].Messages))
	}
	return c.Channels
}

// clone is a copy that shares nothing with c.
func (c *StepCount) clone() StepCount {
	out := *c
	out.Results = maps.Clone(c.Results)
	out.Channels = slices.Clone(c.Channels)
	for i := range out.Channels {
		out.Channels[i].Skipped = maps.Clone(c.Channels[i].Skipped)
	}
	return out
}
