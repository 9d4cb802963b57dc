package engine

import (
	"github.com/RoaringBitmap/roaring/v2"
)

// Reads are exact at any instant t not before the engine's time: they look
// ahead at what falls due up to t and change nothing. Several may run at once
// while nothing changes the engine.

// Live reports whether a segment's members are known by its newest definition,
// and those of all it refers to.
func (e *Engine) Live(id string) bool {
	s := e.segments[id]
	return s != nil && s.current
}

// Count is the number of members of a live segment at t.
func (e *Engine) Count(id string, t int64) uint64 {
	s := e.segments[id]
	n := s.members.GetCardinality()
	e.ahead(s, t, func(_ uint32, is bool) {
		if is {
			n++
		} else {
			n--
		}
	})
	return n
}

// Contains reports whether a profile is a member of a live segment at t.
func (e *Engine) Contains(id string, o uint32, t int64) bool {
	s := e.segments[id]
	if !e.universe.Contains(o) {
		return false
	}
	if e.done >= t {
		return s.members.Contains(o)
	}
	return s.live.evalAt(e.anonymous, o, t, s.memo())
}

// Members is who belongs to a live segment at t. The answer is the caller's.
func (e *Engine) Members(id string, t int64) *roaring.Bitmap {
	s := e.segments[id]
	m := s.members.Clone()
	e.ahead(s, t, func(o uint32, is bool) { put(m, o, is) })
	return m
}

// Page is the first members of a live segment at t from an ordinal on, in
// order, limit at most.
func (e *Engine) Page(id string, from uint32, limit int, t int64) []uint32 {
	s := e.segments[id]
	late := roaring.New()
	differs := map[uint32]bool{}
	e.ahead(s, t, func(o uint32, is bool) {
		differs[o] = is
		if is && o >= from {
			late.Add(o)
		}
	})
	out := make([]uint32, 0, limit)
	it, extra := s.members.Iterator(), late.Iterator()
	it.AdvanceIfNeeded(from)
	for len(out) < limit && (it.HasNext() || extra.HasNext()) {
		if !it.HasNext() || extra.HasNext() && extra.PeekNext() < it.PeekNext() {
			out = append(out, extra.Next())
			continue
		}
		o := it.Next()
		if is, known := differs[o]; !known || is {
			out = append(out, o)
		}
	}
	return out
}

// Leaf is who satisfies the positive form of a condition at t, if the engine
// knows: see [segment.Node.Key]. The answer is the caller's.
func (e *Engine) Leaf(key string, t int64) (*roaring.Bitmap, bool) {
	l := e.leaves[key]
	if l == nil || !l.ready {
		return nil, false
	}
	var m *roaring.Bitmap
	if l.base {
		m = roaring.AndNot(e.universe, l.diff)
	} else {
		m = roaring.And(e.universe, l.diff)
	}
	if l.timed() && e.done < t {
		l.wheel.UpTo(t, func(o uint32) {
			if e.universe.Contains(o) {
				put(m, o, l.holds(l.state.get(o), t))
			}
		})
	}
	return m, true
}

// Universe is all profiles that are not merged into another. It must not be
// changed and is valid until the engine is.
func (e *Engine) Universe() *roaring.Bitmap { return e.universe }

// Anonymous is the profiles of the universe of which nothing says who they are. It must not
// be changed and is valid until the engine is.
func (e *Engine) Anonymous() *roaring.Bitmap { return e.anonymous }

func put(m *roaring.Bitmap, o uint32, is bool) {
	if is {
		m.Add(o)
	} else {
		m.Remove(o)
	}
}

// ahead calls fn once for each profile whose membership at t is not what it is
// as of the engine's time.
func (e *Engine) ahead(s *seg, t int64, fn func(o uint32, is bool)) {
	if e.done >= t {
		return
	}
	var met map[uint32]struct{}
	judged := s.memo()
	for _, l := range s.timed {
		l.wheel.UpTo(t, func(o uint32) {
			if _, again := met[o]; again || !e.universe.Contains(o) {
				return
			}
			if met == nil {
				met = map[uint32]struct{}{}
			}
			met[o] = struct{}{}
			clear(judged)
			if is := s.live.evalAt(e.anonymous, o, t, judged); is != s.members.Contains(o) {
				fn(o, is)
			}
		})
	}
}

// Stats are the sizes of the engine.
type Stats struct {
	Segments, Leaves, States int
	Values                   int   // profiles' values in all states
	Bytes                    int64 // of states and bitmaps, roughly
	Due                      int   // leaves with something due
	Building                 int   // segments whose newest definition is not live
}

// Stats reads counters of states and the sizes of bitmaps, no values.
func (e *Engine) Stats() Stats {
	st := Stats{Segments: len(e.segments), Leaves: len(e.leaves), States: len(e.states), Due: len(e.timers)}
	for _, s := range e.states {
		st.Values += s.values()
		if s == s.group.live[0] {
			st.Bytes += s.group.bytes()
		}
	}
	for _, l := range e.byID {
		st.Bytes += int64(l.diff.GetSizeInBytes()) + l.wheel.Bytes()
	}
	for _, s := range e.segments {
		if s.members != nil {
			st.Bytes += int64(s.members.GetSizeInBytes())
		}
		if s.next != nil {
			st.Building++
		}
	}
	st.Bytes += int64(e.universe.GetSizeInBytes() + e.anonymous.GetSizeInBytes())
	return st
}

// Leaves is how many conditions are kept.
func (e *Engine) Leaves() int { return len(e.leaves) }

// Users lists the segments whose live definition refers to a segment.
func (e *Engine) Users(id string) []string {
	s := e.segments[id]
	if s == nil {
		return nil
	}
	var out []string
	for _, u := range s.users {
		out = append(out, u.id)
	}
	return out
}

// Looks reports whether a condition looks at one of the fields, so that
// [Engine.Profile] has something to do.
func (e *Engine) Looks(at Fields) bool { return e.looks&at != 0 }

// Has reports whether a segment is defined.
func (e *Engine) Has(id string) bool { return e.segments[id] != nil }
