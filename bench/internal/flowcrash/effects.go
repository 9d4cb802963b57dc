package flowcrash

import (
	"slices"
	"time"
)

// intention is that an enrolment came to a step that sends something.
type intention struct {
	flow, step string
	human      *human
	key        string // that it carries, empty for none
	needed     bool   // it must have arrived
	fine       bool   // the enrolment says that it was taken
	judged     bool   // the enrolment says so
}

// effects compares what the enrolments intended with what arrived: each intention
// under one id of its own, and no other (F1).
func (o *oracle) effects(all map[string]*delivery, what string, wanted []intention) {
	type place struct {
		flow, step string
		human      *human
		key        string
	}
	arrived := map[place][]*delivery{}
	for id, x := range all {
		if x.checked > 0 {
			continue
		}
		h := o.found.byProfile[x.effect.profile]
		if id == "" || h == nil {
			o.Add("%s %q of flow %s, step %s is about profile %q, which does not exist", what, id, x.effect.flow, x.effect.step, x.effect.profile)
			continue
		}
		for _, s := range x.strange {
			// A merge may fall between two attempts.
			if s.flow != x.effect.flow || s.step != x.effect.step || s.key != x.effect.key || o.found.byProfile[s.profile] != h {
				o.Add("%s %q said %+v at first and %+v later", what, id, x.effect, s)
			}
		}
		p := place{x.effect.flow, x.effect.step, h, x.effect.key}
		arrived[p] = append(arrived[p], x)
	}
	expected := map[place][]intention{}
	for _, w := range wanted {
		p := place{w.flow, w.step, w.human, w.key}
		expected[p] = append(expected[p], w)
	}
	for p, list := range expected {
		least, taken, untold := 0, 0, 0
		for _, w := range list {
			if w.needed {
				least++
			}
			switch {
			case !w.judged:
				untold++
			case w.fine:
				taken++
			}
		}
		got := arrived[p]
		delete(arrived, p)
		if len(got) < least || len(got) > len(list) {
			o.Add("flow %s, step %s, profile %s, key %q: %d different %ss arrived, %d to %d were intended", p.flow, p.step, p.human.profile, p.key, len(got), what, least, len(list))
			continue
		}
		fine := 0
		for _, x := range got {
			if x.manner.fine() {
				fine++
			}
		}
		if fine < taken || fine > taken+untold {
			o.Add("flow %s, step %s, profile %s: %d %ss were taken, %d are said to have been", p.flow, p.step, p.human.profile, fine, what, taken)
		}
	}
	for p, got := range arrived {
		o.Add("flow %s, step %s, profile %s, key %q: %d %ss arrived that were never intended", p.flow, p.step, p.human.profile, p.key, len(got), what)
	}
	o.repeats(all, what)
}

// Disturbance is a time in which the server, or what it needs, was killed, frozen
// or cut off, until it was well again; at a kill without more both are the same.
type Disturbance struct{ From, To time.Time }

// soonAfter is how long after an answer a disturbance may still cost its record:
// the outcome is in the log long before.
const soonAfter = 5 * time.Second

// repeats checks that whatever came again under its id did so for a reason: it was
// not taken, or there was a disturbance as it was, or just after.
func (o *oracle) repeats(all map[string]*delivery, what string) {
	for id, x := range all {
		for i := max(1, x.checked); i < len(x.arrivals); i++ {
			before, again := x.arrivals[i-1], x.arrivals[i]
			switch {
			case !before.ok:
				o.report.AfterError++
			case o.disturbedSoonAfter(before.at, again.at):
				o.report.AfterKill++
			default:
				o.Add("%s %q (%+v) was taken at %v and came again at %v, undisturbed in between", what, id, x.effect, before.at, again.at)
			}
		}
		if x.checked == 0 && x.manner.fine() && !x.taken() && !o.left(x) {
			o.Add("%s %q (%+v) came %d times and was never taken", what, id, x.effect, len(x.arrivals))
		}
	}
}

// disturbedSoonAfter reports whether a disturbance may have cost the record of what
// was answered at one instant, seen from another.
func (o *oracle) disturbedSoonAfter(at, seen time.Time) bool {
	return slices.ContainsFunc(o.disturbed, func(d Disturbance) bool {
		return !d.To.Before(at) && d.From.Before(seen) && d.From.Sub(at) < soonAfter
	})
}

// left reports whether a delivery is to a person who unsubscribed at some time:
// retries are then given up.
func (o *oracle) left(x *delivery) bool {
	h := o.found.byProfile[x.effect.profile]
	return h != nil && h.people[0].left
}

// spent compares the credits spent with the e-mails that cost one: those that were taken, and
// those that may have been, since they arrived whole and the answer was lost.
func (o *oracle) spent(credits int, mails map[string]*delivery) {
	cost, uncertain := 0, 0
	for _, x := range mails {
		if x.checked > 0 || !x.taken() && !(x.manner == dropsFirst && o.left(x)) {
			continue
		}
		cost++
		// A person who unsubscribed before the retry does not get it, and the credit is
		// given back.
		if o.left(x) && o.disturbedSoonAfter(x.arrivals[len(x.arrivals)-1].at, time.Now()) {
			uncertain++
		}
	}
	if credits > cost || credits < cost-uncertain {
		o.Add("%d e-mail credits were spent on %d e-mails", credits, cost)
	}
}
