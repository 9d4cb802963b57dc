package engine

import (
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/segment"
	"github.com/musterhq/muster/segment/engine/internal/fold"
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
func (st *state) read(o *fold.Occurrence, atMs int64, properties []byte, event uint64) {
	o.AtMs = atMs
	o.Number, o.Scalar, o.Micros, o.Key, o.Spans = false, false, 0, fold.Key{}, o.Spans[:0]
	if st.property != nil {
		st.property.in(properties, event)
		if st.spec.Kind == fold.KindDistinct || st.spec.Kind == fold.KindSpans {
			o.Key, o.Scalar = st.property.asKey()
		}
		if st.spec.Kind != fold.KindDistinct {
			o.Micros, o.Number = st.property.asNumber()
		}
	}
	if st.spec.Kind == fold.KindSpans {
		o.Spans = st.source.spans(o.Spans, atMs, st.spec.WindowMs, properties)
	}
}

// spans appends when an event counts: while it is in the window and all timed
// filters hold.
func (s *source) spans(dst []fold.Span, atMs, windowMs int64, properties []byte) []fold.Span {
	dst = append(dst, fold.Span{From: atMs, To: fold.LeavesAt(atMs, windowMs)})
	for i := range s.where {
		p := &s.where[i]
		if !p.Timed() {
			continue
		}
		var holds []fold.Span
		raw, _ := rawjson.Lookup(properties, p.Path)
		p.EachTime(raw, func(ms int64) { holds = append(holds, fold.Span{From: ms, To: ms + p.WindowMs}) })
		if p.Op == segment.OpNotInLastDays {
			// Cut out the spans in which the positive holds.
			for _, h := range holds {
				dst = fold.Cut(dst, h)
			}
			continue
		}
		dst = fold.Overlap(dst, fold.Join(holds))
	}
	return dst
}
