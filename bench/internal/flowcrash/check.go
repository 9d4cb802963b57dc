package flowcrash

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/musterhq/muster/bench/internal/ledger"
	"github.com/musterhq/muster/bench/internal/surface"
)

// oracle says what must have happened, by the definitions, what was acknowledged
// and the events in history.
type oracle struct {
	world       *world
	found       *gathered
	pauses      map[string][]pauseTime
	publishedMs int64 // of flowGold
	disturbed   []Disturbance
	report      *Work
	past        map[string]*passed

	ledger.Faults
}

// Check compares everything that the server and the receivers tell with what must
// have happened to the people who acted since the last check. It is called when
// the load is idle; stop, unless it is nil, stops the server once that has
// told everything. After a check that passed, other people act.
func (l *Load) Check(ctx context.Context, disturbed []Disturbance, stop func() error) error {
	found, err := l.gather(ctx)
	if err != nil {
		return err
	}
	o := &oracle{world: l.world, found: found, pauses: map[string][]pauseTime{}, disturbed: disturbed, report: &l.work, past: l.past}
	for _, p := range l.pauses {
		o.pauses[p.flow.name] = p.mu.times
	}
	states := map[*flow]surface.Flow{}
	for _, f := range l.world.flows {
		if states[f], err = l.client.Flow(ctx, f.id); err != nil {
			return err
		}
	}
	o.publishedMs = int64(*states[l.world.flow(flowGold)].PublishedAt)
	left, err := l.readCredits(ctx)
	if err != nil {
		return err
	}
	if err := l.noStrangers(ctx, found); err != nil {
		return err
	}
	// Nothing may arrive any more.
	if stop != nil {
		if err := stop(); err != nil {
			return err
		}
	}
	hooks, mails := l.hooks.desk.all(), l.relay.desk.all()
	o.events(l.workers)
	calls, letters := o.checkEnrolments(l.workers, keysOf(hooks, flowCall))
	o.effects(hooks, "call", calls)
	o.effects(mails, "e-mail", letters)
	for f, s := range states {
		o.counts(f, &s)
	}
	for _, h := range found.humans {
		o.profile(h)
	}
	o.spent(l.credits-left, mails)
	if err := o.Err(); err != nil {
		return err
	}
	l.tally()
	l.credits = left
	l.work.Calls, l.work.Mails = len(hooks), len(mails)
	l.hooks.desk.pass(hooks)
	l.relay.desk.pass(mails)
	l.others()
	return nil
}

// tally adds up what was done.
func (l *Load) tally() {
	x := &l.work
	for _, w := range l.workers {
		x.People += len(w.book.people)
		x.Merges += w.book.merges
		for _, e := range w.book.events {
			if e.Acked {
				x.Acked++
			}
		}
		for _, t := range w.book.triggers {
			if t.acked {
				x.Triggers++
			}
		}
	}
}

// noStrangers lists the enrolments of all flows: they are those of the people there
// are, each once.
func (l *Load) noStrangers(ctx context.Context, g *gathered) error {
	for _, f := range l.world.flows {
		listed := map[enrolmentID]int{}
		if err := f.eachEnrolment(ctx, l.client, func(e *surface.Enrolment) { listed[enrolmentID{e.ProfileID, e.Number}]++ }); err != nil {
			return err
		}
		n := 0
		for _, h := range g.humans {
			for i := range h.enrolments[f.name] {
				n++
				if times := listed[enrolmentID{h.profile, h.enrolments[f.name][i].Number}]; times != 1 {
					return fmt.Errorf("flow %s lists enrolment %d of profile %s %d times", f.name, i+1, h.profile, times)
				}
			}
		}
		if n += l.past[f.name].entered(); n != len(listed) {
			return fmt.Errorf("flow %s lists %d enrolments, its people have %d", f.name, len(listed), n)
		}
	}
	return nil
}

// events checks that each acknowledged event is on its person's profile once, one
// that was given up at most once, and no other (L1, L2).
func (o *oracle) events(workers []*worker) {
	type place struct {
		human *human
		key   string
	}
	senders := map[string]*person{}
	for _, w := range workers {
		for n, e := range w.book.events {
			senders[w.book.eventKey(n)] = e.who
		}
	}
	times := map[place]int{}
	for _, h := range o.found.humans {
		for i := range h.facts {
			if key := h.facts[i].Key; key != "" {
				times[place{h, key}]++
				h.facts[i].who = senders[key]
			}
		}
	}
	for _, w := range workers {
		for n, e := range w.book.events {
			h := o.found.byProfile[e.who.profile]
			key := w.book.eventKey(n)
			p := place{h, key}
			if got := times[p]; got > 1 || e.Acked && got != 1 {
				o.Add("event %s (acknowledged: %v) is %d times on profile %s", key, e.Acked, got, h.profile)
			}
			delete(times, p)
		}
	}
	for p, n := range times {
		o.Add("an event with key %s, which was not sent there, is %d times on profile %s", p.key, n, p.human.profile)
	}
}

// checkEnrolments checks each enrolment of everybody, and returns what they intended to send;
// arrived are the keys of calls of which effects came.
func (o *oracle) checkEnrolments(workers []*worker, arrived map[string]bool) (hooks, mails []intention) {
	calls := map[*person][]call{}
	for _, w := range workers {
		for n, t := range w.book.triggers {
			key := w.book.triggerKey(n)
			calls[t.who] = append(calls[t.who], call{t, key, arrived[key]})
		}
	}
	for _, h := range o.found.humans {
		for _, f := range o.world.flows {
			enrolments := h.enrolments[f.name]
			var began []cause
			var err error
			if f.name == flowCall {
				var late int
				began, late, err = called(enrolments, calls[h.people[0]])
				o.report.Late += late
			} else {
				began, err = enrolled(f, h, enrolments, o.causes(f, h))
			}
			if err != nil {
				o.Add("flow %s, profile %s (%s): %w", f.name, h.profile, h.people[0].external, err)
				continue
			}
			o.told(f, h, enrolments)
			for i := range enrolments {
				o.report.Enrolments++
				o.report.ByFlow[f.name]++
				o.report.Steps += len(enrolments[i].Path)
				if err := o.walk(f, h, &enrolments[i]); err != nil {
					o.Add("flow %s, profile %s, enrolment %d: %w", f.name, h.profile, i+1, err)
				}
				key := ""
				if f.keyed {
					key = began[i].key
				}
				for _, v := range enrolments[i].Path {
					x := intention{flow: f.name, step: v.ID, human: h, key: key, needed: true}
					switch s := f.step(v.ID); {
					case s == nil:
					case s.Type == "webhook":
						// A merge ends an enrolment that awaits its call, which
						// continues.
						x.judged, x.fine = v.Result != "pending" && v.Result != "exited", v.Result == "delivered"
						hooks = append(hooks, x)
					case s.Type == "email" && v.Result == "queued":
						x.needed = !h.people[0].left
						mails = append(mails, x)
					}
				}
			}
		}
	}
	return hooks, mails
}

// told checks the events that a flow records of a person's enrolments: each once.
func (o *oracle) told(f *flow, h *human, enrolments []enrolment) {
	want := map[string]int{"flow_entered": len(enrolments)}
	for i := range enrolments {
		if !enrolments[i].merged() {
			want["flow_"+enrolments[i].Status]++
		}
	}
	got := map[string]int{}
	for i := range h.facts {
		x := &h.facts[i]
		switch x.Type {
		case "flow_entered", "flow_completed", "flow_exited":
			if x.property("flow_id") == f.id {
				got[x.Type]++
			}
		}
	}
	for _, typ := range []string{"flow_entered", "flow_completed", "flow_exited"} {
		if got[typ] != want[typ] {
			o.Add("flow %s, profile %s: %d events %s, its enrolments say %d", f.name, h.profile, got[typ], typ, want[typ])
		}
	}
}

// passed is what the enrolments of a flow that were checked add up to.
type passed struct {
	completed, exited int
	arrived           map[string]int            // by step
	results           map[string]map[string]int // by step and result
}

func (p *passed) entered() int { return p.completed + p.exited }

func (f *flow) nothingPassed() *passed {
	p := &passed{arrived: map[string]int{}, results: map[string]map[string]int{}}
	for i := range f.steps {
		p.results[f.steps[i].ID] = map[string]int{}
	}
	return p
}

// counts compares what a flow counts with what the enrolments say, and adds them to
// those that were checked before.
func (o *oracle) counts(f *flow, s *surface.Flow) {
	p := o.past[f.name]
	for _, h := range o.found.humans {
		for i := range h.enrolments[f.name] {
			w := &h.enrolments[f.name][i]
			switch w.Status {
			case "completed":
				p.completed++
			case "exited":
				p.exited++
			default:
				o.Add("flow %s, profile %s: enrolment %d is %s in the end", f.name, h.profile, w.Number, w.Status)
			}
			for _, v := range w.Path {
				p.arrived[v.ID]++
				p.results[v.ID][v.Result]++
			}
		}
	}
	if got, want := [4]uint64{s.Counts.Entered, s.Counts.Completed, s.Counts.Exited, s.Counts.LoopsCut}, [4]uint64{uint64(p.entered()), uint64(p.completed), uint64(p.exited), 0}; got != want {
		o.Add("flow %s counts %v entered, completed, exited and cut, its enrolments are %v", f.name, got, want)
	}
	for _, x := range s.StepCounts {
		if x.Arrived != p.arrived[x.ID] || x.At != 0 || !maps.Equal(x.Results, p.results[x.ID]) {
			o.Add("flow %s, step %s counts %d arrived, %d there, %v; its enrolments say %d and %v", f.name, x.ID, x.Arrived, x.At, x.Results, p.arrived[x.ID], p.results[x.ID])
		}
	}
}

// profile checks what the enrolments have left on a profile that was not merged.
func (o *oracle) profile(h *human) {
	if h.merged() {
		return
	}
	var tags []string
	attributes := map[string]any{"tier": h.people[0].tier}
	for _, f := range o.world.flows {
		enrolments := h.enrolments[f.name]
		causes := o.causes(f, h)
		for i := range enrolments {
			for _, v := range enrolments[i].Path {
				s := f.step(v.ID)
				if s == nil {
					continue
				}
				tags = slices.DeleteFunc(tags, func(t string) bool { return slices.Contains(s.Remove, t) })
				for _, t := range s.Add {
					if !slices.Contains(tags, t) {
						tags = append(tags, t)
					}
				}
				for field := range s.Set {
					at := slices.IndexFunc(causes, func(c cause) bool { return c.atMs == int64(enrolments[i].StartedAt) })
					if at >= 0 {
						attributes[field[len("attributes."):]] = causes[at].key
					}
				}
			}
		}
	}
	slices.Sort(tags)
	if got := slices.Sorted(slices.Values(h.tags)); !slices.Equal(got, tags) {
		o.Add("profile %s has the tags %v, its enrolments say %v", h.profile, got, tags)
	}
	for name, want := range attributes {
		if h.attributes[name] != want {
			o.Add("profile %s has %s %v, its enrolments say %v", h.profile, name, h.attributes[name], want)
		}
	}
	for _, name := range []string{"order_key", "visit_key", "signup_key"} {
		if _, is := h.attributes[name]; is && attributes[name] == nil {
			o.Add("profile %s has %s, which no enrolment has set", h.profile, name)
		}
	}
}
