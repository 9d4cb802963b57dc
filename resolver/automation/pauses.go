package automation

import "slices"

// wasPaused reports whether the flow was paused at an instant. What is due with the
// record that pauses comes before the pause, what is due with the one that resumes
// after it.
func (f *flow) wasPaused(ms int64) bool {
	in := func(p Pause) bool { return p.FromMs < ms && ms < p.UntilMs }
	return in(f.lastPause()) || slices.ContainsFunc(f.Pauses, in)
}

// lastPause is the newest pause that is over.
func (f *Flow) lastPause() Pause { return Pause{f.PausedMs, f.ResumedMs} }

// pausesKept are the pauses that a live flow that is about to be paused again
// remembers: those in which something was due that is still to be worked off. They
// take in the last.
func (f *flow) pausesKept() []Pause {
	kept := slices.Clone(f.Pauses)
	if p := f.lastPause(); p.FromMs < p.UntilMs {
		kept = append(kept, p)
	}
	if !f.Scanning { // else anything since the flow was published may turn out to be due
		first, ok := f.dates.Min()
		kept = slices.DeleteFunc(kept, func(p Pause) bool { return !ok || p.UntilMs <= first.Due })
	}
	if len(kept) <= MaxPauses {
		return kept
	}
	// Two with nothing due between them are one as well. If something is due between
	// all of them it is missed between the newest.
	i := 1
	for ; i < len(kept)-1; i++ {
		if next, ok := f.dates.From(kept[i-1].UntilMs); !f.Scanning && (!ok || next.Due > kept[i].FromMs) {
			break
		}
	}
	kept[i-1].UntilMs = kept[i].UntilMs
	return slices.Delete(kept, i, i+1)
}
