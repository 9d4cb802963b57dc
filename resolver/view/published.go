package view

import (
	"maps"
	"sync/atomic"

	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/segment/engine"
)

// Published is what a partition publishes of its segments after each record, so
// that counting members waits for no record that is being applied.
//
// It is written while the partition's lock is held, before the record is
// acknowledged: a count includes every event acknowledged before it (S1), and no
// reader sees less than it saw under the lock. Readers take no lock: the sequence
// is odd while it is written and another one afterwards, and what was read across
// that is read again.
type Published struct {
	sequence atomic.Uint64
	logTime  atomic.Int64
	accounts atomic.Pointer[map[uint64]*publishedAccount]
}

// publishedAccount is an account's segments. The list is replaced, not changed.
type publishedAccount struct {
	segments atomic.Pointer[publishedSegments]
}

type publishedSegments struct {
	byAge []publishedSegment
	byID  map[string]int
}

type publishedSegment struct {
	*account.Segment
	counts *engine.Published
}

// All publishes the segments of all accounts as of a log time (Unix ms); the partition's lock is
// held, or there are no readers yet.
func (p *Published) All(list []*account.State, logTimeMs int64) {
	p.sequence.Add(1)
	accounts := make(map[uint64]*publishedAccount, len(list))
	for _, a := range list { // at once: account copies the map for each
		accounts[a.Number] = new(publishedAccount)
	}
	p.accounts.Store(&accounts)
	for _, a := range list {
		p.account(a, true)
	}
	p.logTime.Store(logTimeMs)
	p.sequence.Add(1)
}

// Record publishes what a record changed in accounts. saved is the number of the one whose
// segments may have been saved, 0 for none. The partition's lock is held. Should it panic, the
// sequence stays odd, and no reader takes what is half written.
func (p *Published) Record(changed []*account.State, saved uint64, logTimeMs int64) {
	p.sequence.Add(1)
	p.logTime.Store(logTimeMs)
	for _, a := range changed {
		p.account(a, a.Number == saved)
	}
	p.sequence.Add(1)
}

// account publishes an account. saved says that segments may have been saved: a
// new name is none of the engine's business.
func (p *Published) account(a *account.State, saved bool) {
	redefined := a.Engine.Publish()
	if !redefined && !saved {
		return
	}
	accounts := p.accounts.Load()
	var to *publishedAccount
	if accounts != nil {
		to = (*accounts)[a.Number]
	}
	if to == nil {
		to = new(publishedAccount)
		more := map[uint64]*publishedAccount{a.Number: to}
		if accounts != nil {
			maps.Copy(more, *accounts)
		}
		p.accounts.Store(&more)
	}
	if have := to.segments.Load(); have == nil || redefined || !have.of(a) {
		to.segments.Store(newPublishedSegments(a))
	}
}

func newPublishedSegments(a *account.State) *publishedSegments {
	list := a.SegmentsByAge()
	s := &publishedSegments{byAge: make([]publishedSegment, len(list)), byID: make(map[string]int, len(list))}
	for i, x := range list {
		s.byAge[i] = publishedSegment{x, a.Engine.Publication(x.ID)}
		s.byID[x.ID] = i
	}
	return s
}

// of reports whether these are the account's segments. Saved ones are replaced,
// never changed.
func (s *publishedSegments) of(a *account.State) bool {
	if len(s.byAge) != len(a.Segments) {
		return false
	}
	for i := range s.byAge {
		if a.Segments[s.byAge[i].ID] != s.byAge[i].Segment {
			return false
		}
	}
	return true
}

// The bounds on reading again what was written meanwhile. Beyond them the
// partition's lock is taken, which waits its turn.
const (
	publishedTries = 16
	publishedSpins = 64
)

// read calls fn, again if something was published meanwhile, and reports whether
// fn's last call saw one state. fn is handed nil for an account that is not
// known, and must start again at each call.
func (p *Published) read(account uint64, fn func(s *publishedSegments, logTimeMs int64)) (ok bool) {
	for range publishedTries {
		before := p.sequence.Load()
		for spins := 0; before&1 == 1; spins++ {
			if spins == publishedSpins {
				return false
			}
			before = p.sequence.Load()
		}
		var s *publishedSegments
		if accounts := p.accounts.Load(); accounts != nil {
			if a := (*accounts)[account]; a != nil {
				s = a.segments.Load()
			}
		}
		fn(s, p.logTime.Load())
		if p.sequence.Load() == before {
			return true
		}
	}
	return false
}

// CountedSegment is a saved segment with its members.
type CountedSegment struct {
	*account.Segment
	Members uint64
	// Known is false when members were not published, because the segment is not
	// live or time may have changed them: a [View] has more.
	Known bool
}

func (s *publishedSegment) at(atMs int64) CountedSegment {
	n, ok := s.counts.Count(atMs)
	return CountedSegment{s.Segment, n, ok}
}

// Segment finds a saved segment and its members at nowMs, or at the log time if that is
// later, which it returns. ok is false when there is none, or what was published was
// not to be read: a [View] has more.
func (p *Published) Segment(account uint64, id string, nowMs int64) (s CountedSegment, atMs int64, ok bool) {
	found := false
	ok = p.read(account, func(list *publishedSegments, logTimeMs int64) {
		if found = false; list == nil {
			return
		}
		var i int
		if i, found = list.byID[id]; found {
			atMs = max(nowMs, logTimeMs)
			s = list.byAge[i].at(atMs)
		}
	})
	return s, atMs, ok && found
}

// Segments is [Published.Segment] for all saved segments, the oldest first, as of one
// state.
func (p *Published) Segments(account uint64, nowMs int64) (list []CountedSegment, atMs int64, ok bool) {
	found := false
	ok = p.read(account, func(s *publishedSegments, logTimeMs int64) {
		if found = s != nil; !found {
			return
		}
		if cap(list) < len(s.byAge) {
			list = make([]CountedSegment, len(s.byAge))
		}
		list, atMs = list[:len(s.byAge)], max(nowMs, logTimeMs)
		for i := range s.byAge {
			list[i] = s.byAge[i].at(atMs)
		}
	})
	return list, atMs, ok && found
}
