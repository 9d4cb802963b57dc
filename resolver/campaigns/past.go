package campaigns

import (
	"maps"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"
)

const (
	maxPastRuns   = 50 // of a campaign: the first, and the newest of the others
	maxPastErrors = 5  // of a run that is over
)

// RunNumbers are a run's record and what its recipients did, each counted once. People who
// became one with others since are counted in the campaign's numbers alone.
type RunNumbers struct {
	PastRun
	Delivered, Opened, Clicked, Complained, Unsubscribed uint64
}

// runSet names the set of those whom a run was sent to; run 0 stands for those of runs
// that are not on record any more.
func runSet(run int) string { return "run/" + strconv.Itoa(run) }

// record is the part of a past run that is kept.
func (s *State) record(x *Campaign, r *Run) PastRun {
	p := PastRun{
		Run: r.Run, Status: r.Status, ListIDs: r.ListIDs, SegmentIDs: r.SegmentIDs, TemplateSource: r.TemplateSource, TemplateID: r.TemplateID,
		StartedMs: r.StartedMs, FinishedMs: r.FinishedMs, RunCounts: r.RunCounts.clone(maxPastErrors),
	}
	failed := roaring.And(s.members(x, setFailed), s.members(x, Bounced))
	failed.AndNot(s.members(x, setSent))
	p.Bounced = failed.GetCardinality()
	for _, before := range r.Past {
		p.Bounced -= min(p.Bounced, before.Bounced)
	}
	return p
}

// sentBy are the recipients of the present run: those sent to that are in no set of
// another run. Of runs before each had a set of its own, these are of the first that has.
func (s *State) sentBy(x *Campaign, r *Run) *roaring.Bitmap {
	out := s.members(x, setSent).Clone()
	out.AndNot(s.members(x, runSet(0)))
	for _, p := range r.Past {
		out.AndNot(s.members(x, runSet(p.Run)))
	}
	return out
}

// keepRun puts the run that is over on record, behind those before it. The first stays,
// and of the others the newest.
func (s *State) keepRun(x *Campaign, old *Run) []PastRun {
	s.set(x, runSet(old.Run)).Assign(s.sentBy(x, old))
	past := append(slices.Clone(old.Past), s.record(x, old))
	for len(past) > maxPastRuns {
		gone := runSet(past[1].Run)
		s.set(x, runSet(0)).Assign(roaring.Or(s.members(x, runSet(0)), s.members(x, gone)))
		s.dropSet(x, gone)
		past = slices.Delete(past, 1, 2)
	}
	return past
}

// ForgetErrors removes the errors that names holds of from what is known of runs.
func (s *State) ForgetErrors(names func(text string) bool) {
	for _, id := range slices.Sorted(maps.Keys(s.runs)) {
		r := s.runs[id]
		if kept, changed := r.forget(names); changed {
			r.RunCounts = kept
			s.touch(r)
		}
		past := slices.Clone(r.Past) // views may have the others
		for i := range past {
			if kept, changed := past[i].forget(names); changed {
				past[i].RunCounts, r.Past = kept, past
				s.touch(r)
			}
		}
	}
}

// dropRunSets removes the sets of a campaign's runs.
func (s *State) dropRunSets(x *Campaign, r *Run) {
	s.dropSet(x, runSet(0))
	for _, p := range r.Past {
		s.dropSet(x, runSet(p.Run))
	}
}

// Runs lists the runs of a campaign that are on record, the oldest first, the
// present or last one at the end.
func (s *State) Runs(x Campaign) (out []RunNumbers) {
	r := s.runs[x.ID]
	if r == nil {
		return nil
	}
	add := func(p PastRun, sent *roaring.Bitmap) {
		of := func(which string) uint64 { return sent.AndCardinality(s.members(&x, which)) }
		p.Bounced += of(Bounced)
		out = append(out, RunNumbers{p, of(Delivered), of(Opened), of(Clicked), of(Complained), of(Unsubscribed)})
	}
	for _, p := range r.Past {
		p.Skipped = maps.Clone(p.Skipped)
		add(p, s.members(&x, runSet(p.Run)))
	}
	add(s.record(&x, r), s.sentBy(&x, r))
	return out
}
