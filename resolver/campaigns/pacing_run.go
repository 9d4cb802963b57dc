package campaigns

import (
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/dueset"
	"github.com/musterhq/muster/resolver/internal/feature"
)

// startsLocally is when a campaign starts whose date is a local time: when the first clocks show
// it. It does not start by itself where those of the account have shown it.
func (s *State) startsLocally(c *Campaign, nowMs int64) (atMs int64, ok bool) {
	wall, ok := WallMs(c.Date)
	if !ok || s.host.AccountLocal(wall) <= nowMs {
		return 0, false
	}
	return max(wall-easternmostMs, nowMs+1), true
}

// heldSet names the set of a campaign's recipients who are looked at again at an instant.
func heldSet(untilMs int64) string { return "held/" + strconv.FormatInt(untilMs, 10) }

// hold puts a person aside until an instant.
func (s *State) hold(x *Campaign, r *Run, ordinal uint32, untilMs int64) {
	s.set(x, heldSet(untilMs)).Add(ordinal)
	r.hold(untilMs)
}

// releaseHeld makes those part of the audience again whose time has come.
func (s *State) releaseHeld(x *Campaign, r *Run, nowMs int64) {
	for at, ok := r.release(nowMs); ok; at, ok = r.release(nowMs) {
		which := heldSet(at)
		audience := s.set(x, setAudience)
		audience.Assign(roaring.Or(audience.Bits, s.members(x, which)))
		s.dropSet(x, which)
	}
}

// dropHeld removes the recipients of a run that were put aside.
func (s *State) dropHeld(x *Campaign, r *Run) {
	for _, ms := range r.Held {
		s.dropSet(x, heldSet(ms))
	}
	r.Held = nil
}

// held is how many people of a run were put aside.
func (s *State) held(x *Campaign, r *Run) (n uint64) {
	for _, ms := range r.Held {
		n += s.members(x, heldSet(ms)).GetCardinality()
	}
	return n
}

// wait lets a run wait until an instant.
func (s *State) wait(x *Campaign, r *Run, untilMs int64) {
	r.Status, r.WakeMs = RunWaiting, untilMs
	s.wakes.Add(dueset.Item{Due: untilMs, Ordinal: x.Number})
}

// leaveWait ends the wait of a run, if it waits.
func (s *State) leaveWait(x *Campaign, r *Run) {
	if r != nil && r.Status == RunWaiting {
		s.wakes.Remove(dueset.Item{Due: r.WakeMs, Ordinal: x.Number})
		r.Status, r.WakeMs = RunSending, 0
	}
}

// wake has runs continue whose wait is over, a bounded number.
func (s *State) wake(tx *feature.Tx) {
	for range maxDueAtOnce {
		it, ok := s.wakes.Min()
		if !ok || it.Due > tx.AtMs {
			return
		}
		x := s.campaigns[s.ids[it.Ordinal]]
		r := s.runs[x.ID]
		s.leaveWait(x, r)
		r.Woken = s.members(x, setPending).IsEmpty()
		s.touch(r)
		s.shared.Changed = true
	}
}

// paced reports whether a run may be cancelled: it waits, or may have to.
func (r *Run) paced(x *Campaign) bool {
	return r.Busy() && (r.Status == RunWaiting || x.Rate != nil || r.WallMs != 0)
}

const cancelled = "the rest of the run was cancelled"
