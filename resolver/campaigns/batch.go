package campaigns

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// Batch asks for the next recipients, and claims them.
type Batch struct {
	ID  string `json:"id"`
	Run int    `json:"run"`
	// Epoch is the one under which they are sent to, 0 when embedded.
	Epoch uint64 `json:"epoch,omitempty"`
}

// Recipient is one message to be sent. Its variant says which of the run's contents.
type Recipient struct {
	Ordinal uint32 `json:"ordinal"`
	Variant int    `json:"variant"`
	// Again says that the message may have gone out before, in a run that was stopped: it
	// does not continue to another channel.
	Again bool `json:"again,omitempty"`
}

// BatchReply has the recipients of the next messages.
type BatchReply struct {
	Recipients []Recipient `json:"recipients"`
	// Left is how many have not been looked at, or were put aside.
	Left uint64 `json:"left"`
	// WaitMs is how long an A/B test still waits, when no other recipients are
	// left.
	WaitMs int64 `json:"wait_ms,omitempty"`
	// PauseMs is how long the campaign's rate holds further recipients back.
	PauseMs int64 `json:"pause_ms,omitempty"`
	// Waiting says that the run waits until an instant: it continues by itself then.
	Waiting bool `json:"waiting,omitempty"`
	// Stopped says why the run has ended before its end.
	Stopped string `json:"stopped,omitempty"`
}

// batch takes the next recipients out of the audience: those who may be
// sent to become pending, the others are counted.
func (s *State) batch(tx *feature.Tx, c Batch) *refuse.Refusal {
	if r := s.host.CheckEpoch(c.Epoch); r != nil {
		return r
	}
	x, r := s.run(c.ID, c.Run)
	if r == nil {
		return runOver()
	}
	audience, pending := s.set(x, setAudience), s.set(x, setPending)
	var reply BatchReply
	if r.Status == RunWaiting {
		reply.Waiting, reply.Left = true, audience.Bits.GetCardinality()+s.held(x, r)
		tx.Reply = reply
		return nil
	}
	s.touch(r)
	r.Woken = false
	s.releaseHeld(x, r, tx.AtMs)
	budget, wait := s.testBudget(tx, x, r)
	if wait > 0 {
		reply.WaitMs, reply.Left = wait, audience.Bits.GetCardinality()+s.held(x, r)
		tx.Reply = reply
		return nil
	}
	sent, media := s.members(x, setSent), r.media(x)
	emails := int64(0) // claimed in this batch
	limit := r.allowed(x.Rate, tx.AtMs, min(uint64(r.BatchSize), budget))
	for _, o := range profile.Page(audience.Bits, 0, maxLooked) {
		if uint64(len(reply.Recipients)) >= limit {
			break
		}
		if !audience.Bits.Contains(o) {
			continue // the person was decided on with another of their profiles
		}
		audience.Remove(o)
		looked := o
		o = s.host.Root(o)
		if r.WallMs != 0 {
			if at := s.host.Local(o, r.WallMs); at > tx.AtMs {
				s.hold(x, r, o, at)
				continue
			}
		}
		reasons, merged := s.host.Reach(o, media)
		var before string // the channel on which a message may have gone out
		if len(r.Channels) > 0 {
			before = s.takeClaim(x, audience, o, looked, merged)
		}
		channel, reachable := choose(reasons, 0)
		if before != "" {
			if channel = slices.Index(media, before); channel < 0 {
				channel = len(media)
			}
			reachable = channel < len(media) && reasons[channel] == ""
		}
		reason := ""
		if reachable && (sent.Contains(o) || pending.Bits.Contains(o) || sentToPast(sent, merged)) {
			reason = AlreadySent
		} else if reachable {
			var until int64
			if channel, until, reason = s.limited(x, o, media, reasons, channel, before != ""); until != 0 {
				s.putAside(x, r, o, before, until)
				continue
			}
		}
		switch {
		case reason != "" || reachable:
		case len(r.Channels) > 0:
			reason = NoChannel
		default:
			reason = reasons[0]
		}
		isEmail := reason == "" && media[channel] == mediumEmail
		if isEmail && emails >= s.host.EmailCredits() {
			audience.Add(o)
			if before != "" {
				s.set(x, claimSet(before)).Add(o)
			}
			s.stopRun(tx, r, outOfCredits, false)
			reply.Stopped = r.Errors[len(r.Errors)-1]
			break
		}
		if len(r.Channels) > 0 && reason != AlreadySent && before == "" {
			r.skipChannels(reasons, 0, channel)
		}
		if reason != "" {
			r.skip(reason)
			continue
		}
		if isEmail {
			emails++
		}
		pending.Add(o)
		r.spend(x.Rate, tx.AtMs)
		if !x.IgnoresLimits {
			s.host.Count(o, media[channel], x.Number)
		}
		recipient := Recipient{Ordinal: o, Variant: r.variant(o)}
		if len(r.Channels) > 0 {
			s.claim(x, r, o, channel)
			recipient.Variant, recipient.Again = channel, before != ""
		}
		reply.Recipients = append(reply.Recipients, recipient)
	}
	s.host.SpendCredits(emails) // there are enough
	reply.Left = audience.Bits.GetCardinality() + s.held(x, r)
	if r.Busy() && len(reply.Recipients) == 0 && reply.Left > 0 {
		s.deferRun(tx, x, r, &reply)
	}
	tx.Reply = reply
	return nil
}

// limited finds the first of a run's channels, from one that reaches a profile on, on which the
// account's limits let it be sent to. untilMs is when they may do so, Unix ms; reason is why
// none does, and reasons get it. only says that no other channel is to be tried.
func (s *State) limited(x *Campaign, ordinal uint32, media, reasons []string, channel int, only bool) (_ int, untilMs int64, reason string) {
	if x.IgnoresLimits {
		return channel, 0, ""
	}
	for ok := true; ok; channel, ok = choose(reasons, channel+1) {
		untilMs, why := s.host.MayGo(ordinal, media[channel], x.Number)
		if why == "" {
			return channel, untilMs, ""
		}
		reason, reasons[channel] = why, why
		if only {
			break
		}
	}
	return channel, 0, reason
}

// putAside holds a recipient until an instant, with the channel on which its message may have
// gone out before, "" for none.
func (s *State) putAside(x *Campaign, r *Run, ordinal uint32, before string, untilMs int64) {
	s.hold(x, r, ordinal, untilMs)
	if before != "" {
		s.set(x, claimSet(before)).Add(ordinal)
	}
}

// deferRun has a run pause or wait that has no recipient it can send to now.
func (s *State) deferRun(tx *feature.Tx, x *Campaign, r *Run, reply *BatchReply) {
	waitMs := r.rateMs(x.Rate, tx.AtMs)
	if s.members(x, setAudience).IsEmpty() {
		waitMs = max(waitMs, r.Held[0]-tx.AtMs)
	} else if waitMs == 0 {
		return // those who were looked at were passed over
	}
	if waitMs <= maxPauseMs || !s.members(x, setPending).IsEmpty() {
		reply.PauseMs = min(waitMs, maxPauseMs)
		return
	}
	s.wait(x, r, tx.AtMs+waitMs)
	reply.Waiting = true
}

const outOfCredits = "the account is out of e-mail credits; top up and send again"

// media are the channels that a run's messages go out on, in the order of preference.
func (r *Run) media(x *Campaign) []string {
	if len(r.Channels) > 0 {
		return r.Channels
	}
	return []string{x.Medium()}
}

// takeClaim takes back the channel on which a message to a person may have gone out, "" for
// none, whichever of the person's profiles it was claimed for: the one that is left, which
// the message's id names, comes first. What becomes of it then is decided for all of these
// profiles, so they leave the audience.
func (s *State) takeClaim(x *Campaign, audience *profile.OrdinalSet, root, looked uint32, merged []profile.MergedProfile) (before string) {
	person := []uint32{root, looked}
	for _, p := range merged {
		person = append(person, p.Ordinal)
	}
	for _, o := range person {
		before = cmp.Or(before, s.claimed(x, o))
		s.unclaim(x, o)
	}
	if before != "" {
		for _, o := range person {
			audience.Remove(o)
		}
	}
	return before
}

// sentToPast reports whether a profile that was merged into another one was sent to.
func sentToPast(sent *roaring.Bitmap, merged []profile.MergedProfile) bool {
	return slices.ContainsFunc(merged, func(p profile.MergedProfile) bool { return sent.Contains(p.Ordinal) })
}

// resume notes that a run continues after a stop of the service, and
// answers the recipients that were being sent to.
func (s *State) resume(tx *feature.Tx, c Batch) *refuse.Refusal {
	if r := s.host.CheckEpoch(c.Epoch); r != nil {
		return r
	}
	x, r := s.run(c.ID, c.Run)
	if r == nil {
		return runOver()
	}
	r.Resumed++
	s.touch(r)
	var reply BatchReply
	for _, o := range profile.Page(s.members(x, setPending), 0, maxPending) {
		recipient := Recipient{Ordinal: o, Variant: r.variant(o), Again: len(r.Channels) > 0}
		if len(r.Channels) > 0 {
			recipient.Variant = s.via(x, r, o)
		}
		reply.Recipients = append(reply.Recipients, recipient)
	}
	tx.Reply = reply
	return nil
}

// maxPending is how many recipients of a campaign are being sent to at once at
// most: two batches.
const maxPending = 2 * maxBatch
