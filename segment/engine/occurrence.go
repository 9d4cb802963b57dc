package engine

import (
	"cmp"
	"slices"

	"github.com/musterhq/muster/internal/jsontext"
	"github.com/musterhq/muster/segment"
)

// counts reports whether an event, of which the number is given, passes them. It
// finds out once for all states.
func (s *source) counts(properties []byte, event uint64) bool {
	if len(s.where) > 0 && s.asked != event {
		s.asked, s.held = event, s.matches(properties, event)
	}
	return len(s.where) == 0 || s.held
}

// matches reports whether the filters that do not depend on the instant hold.
func (s *source) matches(properties []byte, event uint64) bool {
	for i := range s.where {
		if p := &s.where[i]; !p.Timed() && !p.MatchValue(s.lookups[i].in(properties, event), 0) {
			return false
		}
	}
	return true
}

// read fills in what an event adds to a state.
func (st *state) read(o *occurrence, atMs int64, properties []byte, event uint64) {
	o.atMs = atMs
	o.number, o.scalar, o.micros, o.key, o.spans = false, false, 0, valueKey{}, o.spans[:0]
	if st.property != nil {
		st.property.in(properties, event)
		if st.spec.Kind == foldDistinct || st.spec.Kind == foldSpans {
			o.key, o.scalar = st.property.asKey()
		}
		if st.spec.Kind != foldDistinct {
			o.micros, o.number = st.property.asNumber()
		}
	}
	if st.spec.Kind == foldSpans {
		o.spans = st.source.spans(o.spans, atMs, st.spec.WindowMs, properties)
	}
}

// spans appends when an event counts: while it is in the window and all timed
// filters hold.
func (s *source) spans(dst []span, atMs, windowMs int64, properties []byte) []span {
	dst = append(dst, span{atMs, leaves(atMs, windowMs)})
	for i := range s.where {
		p := &s.where[i]
		if !p.Timed() {
			continue
		}
		var holds []span
		raw, _ := jsontext.Lookup(properties, p.Path)
		p.EachTime(raw, func(ms int64) { holds = append(holds, span{ms, ms + p.WindowMs}) })
		if p.Op == segment.OpNotInLastDays {
			// Cut out the spans in which the positive holds.
			for _, h := range holds {
				dst = cut(dst, h)
			}
			continue
		}
		dst = overlap(dst, join(holds))
	}
	return dst
}

// cut takes the span h out of the list.
func cut(list []span, h span) []span {
	var out []span
	for _, s := range list {
		if s.from < h.from {
			out = append(out, span{s.from, min(s.to, h.from)})
		}
		if s.to > h.to {
			out = append(out, span{max(s.from, h.to), s.to})
		}
	}
	return out
}

// join makes overlapping spans one; the result is in order.
func join(list []span) []span {
	sortSpans(list)
	var out []span
	for _, s := range list {
		if n := len(out); n > 0 && s.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// overlap is where both lists hold.
func overlap(a, b []span) []span {
	var out []span
	for _, x := range a {
		for _, y := range b {
			if from, to := max(x.from, y.from), min(x.to, y.to); from < to {
				out = append(out, span{from, to})
			}
		}
	}
	return out
}

func sortSpans(list []span) {
	slices.SortFunc(list, func(a, b span) int {
		if a.from != b.from {
			return cmp.Compare(a.from, b.from)
		}
		return cmp.Compare(a.to, b.to)
	})
}
