package engine

import "github.com/musterhq/muster/segment"

// Erase removes a profile: it leaves every segment, and nothing is kept of it.
// [Engine.Touch] comes before. All transitions of the profile are emitted at once,
// also those pending after new definitions, so that none comes later.
func (e *Engine) Erase(o uint32) {
	for _, s := range e.byRank {
		e.announce(s, o)
		if s.live != nil && s.members.Contains(o) {
			e.turn(s, o, false, segment.CauseProfile, e.now)
		}
	}
	for _, st := range e.byState {
		st.remove(&e.edit, o)
	}
	for _, l := range e.byID {
		l.diff.Remove(o)
	}
	e.universe.Remove(o)
	e.anonymous.Remove(o)
}
