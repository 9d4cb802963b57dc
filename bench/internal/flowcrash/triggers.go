package flowcrash

import (
	"encoding/json"
	"fmt"
	"slices"
)

// cause is something that enrols a person, as far as the flow's re-entry allows.
type cause struct {
	atMs int64
	key  string // that effects carry, if any
	// who sent the event, one of the two people whom a merge made one; nil for an event of the
	// service's own.
	who *person
	// maybe marks one that falls on the very millisecond of something else, so that
	// a client cannot know their order.
	maybe bool
}

// causes are what enrols a person in a flow, in order, by the definition and the
// events of the person alone. Calls are checked elsewhere.
func (o *oracle) causes(f *flow, h *human) []cause {
	switch f.name {
	case flowOrder:
		return onFacts(h, "order_placed", func(x *fact) bool { return number(x, "total") >= orderTotal })
	case flowAfter:
		return keyless(onFacts(h, eventEnd, func(x *fact) bool { return x.property("flow_id") == o.world.flow(flowOrder).id }))
	case flowVisit:
		return onFacts(h, "visit", func(x *fact) bool { return x.property("page") == pagePricing })
	case flowList:
		return keyless(onFacts(h, eventJoin, func(x *fact) bool { return x.property("list_id") == o.world.places.list }))
	case flowSignup:
		return o.unpaused(f, onFacts(h, "signed_up", func(*fact) bool { return true }))
	case flowCart:
		return entries(stays(h, "cart_filled", o.world.places.windows.Cart))
	case flowGone:
		var out []cause
		for _, s := range stays(h, "cart_filled", o.world.places.windows.Cart) {
			out = append(out, cause{atMs: s.toMs})
		}
		return out
	case flowBrowse:
		return o.caughtUp(f, stays(h, "browsed", o.world.places.windows.Browse))
	case flowGold:
		for _, x := range h.facts {
			if x.Type == "hello" && h.people[0].tier == tierGold {
				return []cause{{atMs: max(int64(x.At), o.publishedMs)}}
			}
		}
	}
	return nil
}

func number(x *fact, name string) float64 {
	var all map[string]any
	if json.Unmarshal(x.Properties, &all) != nil {
		return 0
	}
	n, _ := all[name].(float64)
	return n
}

func onFacts(h *human, typ string, takes func(*fact) bool) (out []cause) {
	for i := range h.facts {
		if x := &h.facts[i]; x.Type == typ && takes(x) {
			out = append(out, cause{atMs: int64(x.At), key: x.Key, who: x.who})
		}
	}
	return out
}

func keyless(of []cause) []cause {
	for i := range of {
		of[i].key = ""
	}
	return of
}

// stay is a time in a segment of people who did something in a window.
type stay struct{ fromMs, toMs int64 }

// stays are a person's times in such a segment: an event counts for as long as the
// window, without its last millisecond.
func stays(h *human, typ string, windowMs int64) (out []stay) {
	for i := range h.facts {
		x := &h.facts[i]
		if x.Type != typ {
			continue
		}
		at := int64(x.At)
		if n := len(out); n > 0 && at < out[n-1].toMs {
			out[n-1].toMs = at + windowMs
			continue
		}
		out = append(out, stay{at, at + windowMs})
	}
	return out
}

func entries(of []stay) (out []cause) {
	for _, s := range of {
		out = append(out, cause{atMs: s.fromMs})
	}
	return out
}

// unpaused leaves out what happened while a flow was paused: it is missed.
func (o *oracle) unpaused(f *flow, of []cause) (out []cause) {
	for _, c := range of {
		in, edge := o.pausedAt(f, c.atMs)
		if c.maybe = edge; edge || in == nil {
			out = append(out, c)
		}
	}
	return out
}

// caughtUp are the entries of a segment's stays into a flow: a stay that began
// while it was paused and lasts enters when it is resumed.
func (o *oracle) caughtUp(f *flow, of []stay) (out []cause) {
	for _, s := range of {
		in, edge := o.pausedAt(f, s.fromMs)
		if in == nil || edge {
			out = append(out, cause{atMs: s.fromMs, maybe: edge})
		}
		if in != nil && s.toMs >= in.toMs && in.toMs != s.fromMs {
			out = append(out, cause{atMs: in.toMs, maybe: edge || s.toMs == in.toMs})
		}
	}
	return out
}

// pausedAt is the pause of a flow that an instant falls into; edge says that it is
// its first or last millisecond.
func (o *oracle) pausedAt(f *flow, atMs int64) (in *pauseTime, edge bool) {
	for i := range o.pauses[f.name] {
		p := &o.pauses[f.name][i]
		if p.fromMs <= atMs && atMs <= p.toMs {
			return p, atMs == p.fromMs || atMs == p.toMs
		}
	}
	return nil, false
}

// enrolled compares a person's enrolments in a flow with what should have begun
// them (F1). It returns the cause of each enrolment.
func enrolled(f *flow, h *human, enrolments []enrolment, causes []cause) ([]cause, error) {
	if h.merged() {
		return enrolledMerged(enrolments, causes)
	}
	slices.SortStableFunc(causes, func(x, y cause) int { return int(min(max(x.atMs-y.atMs, -1), 1)) })
	// explained reports whether a cause needed to begin nothing, with so many enrolments begun.
	explained := func(c cause, begun int) bool {
		switch {
		case c.maybe:
			return true
		case begun == 0:
			return false
		case !f.again:
			return true
		}
		last := &enrolments[begun-1]
		return int64(last.StartedAt) <= c.atMs && (last.EndedAt == nil || c.atMs <= int64(*last.EndedAt))
	}
	began := make([]cause, 0, len(enrolments))
	next := 0
	for i := range enrolments {
		w := &enrolments[i]
		switch {
		case i > 0 && !f.again:
			return nil, fmt.Errorf("it is in the flow %d times, once is all there may be", len(enrolments))
		case i > 0 && (enrolments[i-1].EndedAt == nil || *enrolments[i-1].EndedAt > w.StartedAt):
			return nil, fmt.Errorf("enrolment %d began while enrolment %d was in progress", w.Number, enrolments[i-1].Number)
		case w.Number != i+1:
			return nil, fmt.Errorf("enrolment %d has number %d", i+1, w.Number)
		}
		for ; next < len(causes) && causes[next].atMs < int64(w.StartedAt); next++ {
			if !explained(causes[next], i) {
				return nil, fmt.Errorf("what happened at %d did not enrol", causes[next].atMs)
			}
		}
		if next == len(causes) || causes[next].atMs != int64(w.StartedAt) {
			return nil, fmt.Errorf("enrolment %d began at %d, when nothing happened that enrols", w.Number, w.StartedAt)
		}
		began = append(began, causes[next])
		next++
	}
	for ; next < len(causes); next++ {
		if !explained(causes[next], len(enrolments)) {
			return nil, fmt.Errorf("what happened at %d did not enrol", causes[next].atMs)
		}
	}
	return began, nil
}

// enrolledMerged compares the enrolments of two merged people: each half has
// entered once at most, one enrolment at least has continued, and which did is the
// server's choice.
func enrolledMerged(enrolments []enrolment, causes []cause) ([]cause, error) {
	if len(enrolments) > 2 {
		return nil, fmt.Errorf("two people who became one are in the flow %d times", len(enrolments))
	}
	began := make([]cause, 0, len(enrolments))
	taken := map[int]bool{}
	on := 0
	for i := range enrolments {
		at := 0
		for at < len(causes) && (taken[at] || causes[at].atMs != int64(enrolments[i].StartedAt) || entered(causes[:at], causes[at].who)) {
			at++
		}
		if at == len(causes) {
			return nil, fmt.Errorf("enrolment %d began at %d, when nothing happened that enrols", enrolments[i].Number, enrolments[i].StartedAt)
		}
		taken[at] = true
		began = append(began, causes[at])
		if !enrolments[i].merged() {
			on++
		}
	}
	if on == 0 && len(causes) > 0 {
		return nil, fmt.Errorf("of two people who became one no enrolment has continued")
	}
	return began, nil
}

// entered reports whether one of these causes has certainly enrolled this one of two merged people.
func entered(causes []cause, who *person) bool {
	return who != nil && slices.ContainsFunc(causes, func(c cause) bool { return c.who == who && !c.maybe })
}
