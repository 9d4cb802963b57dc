package resolver

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment"
)

// trigger queues the enrolment of a person for when the record at hand is processed
// in full.
func (o *flowOracle) trigger(f *oracleFlow, p int, at int64, event []byte) {
	o.queue = append(o.queue, oracleEntry{f, p, at, o.depth, o.ours, slices.Clone(event)})
}

// eventTriggers looks for live flows that an event triggers: those on events,
// then those on lists.
func (o *flowOracle) eventTriggers(p int, typ string, props []byte) {
	if o.quiet {
		return
	}
	for _, kind := range []string{flows.TriggerEvent, flows.TriggerListJoined} {
		for _, f := range o.flows {
			if t := f.def.Trigger; f.live() && t.Type == kind {
				matches := kind == flows.TriggerEvent && t.Event.Event == typ || kind == flows.TriggerListJoined && typ == contacts.EventListJoined && decodeObject(props)["list_id"] == t.ListID
				if t.Event != nil {
					for _, w := range t.Event.Where {
						matches = matches && w.Match(props, o.at)
					}
				}
				if matches {
					o.trigger(f, p, o.at, props)
				}
			}
		}
	}
}

// publish tells entries and exits and looks for flows that they trigger: neither
// merges nor silent imports do.
func (o *flowOracle) publish() {
	list := o.untold
	o.untold = nil
	o.moves = append(o.moves, list...)
	for _, t := range list {
		for _, f := range o.flows {
			if f.deleted || f.status == automation.Draft || f.def.Trigger.SegmentID != t.Segment {
				continue
			}
			p, into := int(t.Ordinal), t.Entered == (f.def.Trigger.Type == flows.TriggerSegmentEntered)
			silent := o.quiet || t.Cause == segment.CauseMerge || o.people[p].gone
			switch {
			case f.status == automation.Paused && !into:
				delete(f.waiting, p)
			case silent:
			case f.status == automation.Paused:
				f.waiting[o.who.profiles[p].winner] = true
			default:
				if f.waiting[p] {
					delete(f.waiting, p)
					o.trigger(f, p, f.since(), nil)
				}
				if into {
					o.trigger(f, p, max(t.AtMs, f.since()), nil)
				}
			}
		}
	}
}

// react enrols those for whom something has triggered a flow, until nothing new
// follows.
func (o *flowOracle) react() {
	o.publish()
	for len(o.queue) > 0 {
		e := o.queue[0]
		o.queue = o.queue[1:]
		o.enrol(e)
		o.publish()
	}
	o.depth, o.ours = 0, false
}

func (o *flowOracle) enrol(e oracleEntry) {
	f, p := e.f, o.who.profiles[e.p].winner
	enrolments := f.enrolments[p]
	switch {
	case f.status == automation.Paused && f.def.Trigger.SegmentID != "" && !o.people[p].gone:
		// Credits have paused it a moment ago: as if it had come during the pause.
		f.waiting[p] = true
		return
	case !f.live() || o.people[p].gone || f.current(p) != nil || len(enrolments) > 0 && f.def.Reentry == flows.Once:
		return
	case e.depth > 16:
		f.counts.LoopsCut++
		return
	}
	if e.ours {
		// The service may cause 64 enrolments of a person in a minute.
		minute := time.UnixMilli(o.at).Truncate(time.Minute).UnixMilli()
		if o.people[p].loops[minute] == 64 {
			f.counts.LoopsCut++
			return
		}
		if o.people[p].loops[minute]++; o.people[p].loops[minute] == 64 {
			simulatedFlows.caused.Add(1)
		}
	}
	o.ours = true
	o.begun++
	w := flows.Enrolment{Number: 1, Status: flows.InProgress, Depth: e.depth, StartedMs: e.at, Event: e.event}
	if n := len(enrolments); n > 0 {
		w.Number = enrolments[n-1].Number + 1
		enrolments = enrolments[max(0, n-10):] // of those that ended ten are kept
	}
	f.enrolments[p] = append(slices.Clone(enrolments), w)
	f.counts.Entered++
	x := f.current(p)
	o.arrive(f, x, 0, e.at)
	o.depth = e.depth + 1
	o.flowEvent(f, p, automation.EventEntered, "")
	o.runEnrolment(f, p, x, e.at)
}

func (o *flowOracle) flowEvent(f *oracleFlow, p int, typ, reason string) {
	props := feature.Properties{"flow_id": f.id, "flow_name": f.def.Name}
	if reason != "" {
		props["reason"] = reason
	}
	o.own(p, typ, props)
	o.evaluate(p, segment.CauseEvent)
}

// runDue does what is due in a live flow: a date, or a step.
func (o *flowOracle) runDue(f *oracleFlow, p int, due int64, date bool) {
	at := max(due, f.since())
	if !date {
		o.runEnrolment(f, p, f.current(p), at)
		return
	}
	o.setDate(f, p, o.nextDate(f, p, due))
	for _, p := range f.pauses {
		if due > p[0] && due < p[1] {
			return // it was missed, however late that turns out
		}
	}
	o.trigger(f, p, at, nil)
}

// runEnrolment runs an enrolment until it must wait or ends.
func (o *flowOracle) runEnrolment(f *oracleFlow, p int, w *flows.Enrolment, at int64) {
	o.ours, o.until = true, 0
	if w.Status == flows.InProgress && w.Phase == flows.Ready && f.live() && at > w.SinceMs {
		o.lookAgain(f, p, w, at)
	}
	if w.Phase == flows.Sleeping && f.live() {
		if w.DueMs > w.SinceMs {
			w.Depth = 0
		}
		o.leave(f, w, flows.Done, 0, f.def.Steps[w.Step].Next, at)
	}
	if (w.Phase == flows.HeardDelivered || w.Phase == flows.HeardFailed) && f.live() {
		o.answered(f, w, w.Phase == flows.HeardDelivered, at)
	}
	for w.Status == flows.InProgress && w.Phase == flows.Ready && f.live() && o.step(f, p, w, at) {
	}
	o.depth = w.Depth + 1
	switch {
	case w.Status == flows.Completed:
		f.counts.Completed++
		o.flowEvent(f, p, automation.EventCompleted, "")
	case w.Status == flows.Exited:
		f.counts.Exited++
		o.flowEvent(f, p, automation.EventExited, w.Reason.String())
	case w.Phase == flows.Ready:
		w.DueMs = max(at, o.until) // it continues as soon as it can
	}
}

// lookAgain takes an enrolment that was held up at a step back to the first condition that would let
// it go elsewhere now, of those that nothing was done behind.
func (o *flowOracle) lookAgain(f *oracleFlow, p int, w *flows.Enrolment, at int64) {
	asked := func(v flows.Visit) bool {
		typ := f.def.Steps[v.Step].Type
		return typ == flows.StepCondition || typ == flows.StepSplit
	}
	back := -1
	for i := len(w.Path) - 2; i >= 0 && asked(w.Path[i]); i-- {
		if c := f.def.Steps[w.Path[i].Step].Condition; c != nil && o.member(c.Root, p, o.at) != (w.Path[i].Result == flows.Yes) {
			back = i
		}
	}
	if back < 0 {
		return
	}
	simulatedFlows.again.Add(1)
	to := w.Path[back].Step
	for len(w.Path) > back {
		v := w.Path[len(w.Path)-1]
		w.Path = w.Path[:len(w.Path)-1]
		c := &f.counts.Steps[v.Step]
		c.Arrived--
		if v.Result == flows.Pending {
			c.At--
		} else if c.Results[v.Result]--; c.Results[v.Result] == 0 {
			delete(c.Results, v.Result)
		}
	}
	o.arrive(f, w, to, at)
}

// step carries out the step that an enrolment is at, and reports whether it may go
// on.
func (o *flowOracle) step(f *oracleFlow, p int, w *flows.Enrolment, at int64) bool {
	s := &f.def.Steps[w.Step]
	switch s.Type {
	case flows.StepWait:
		due := at + s.Wait.Seconds*1000
		if s.Wait.Until != nil {
			due = naiveUntil(s.Wait.Until, at)
		}
		if due <= at {
			break
		}
		w.Phase, w.DueMs = flows.Sleeping, due
		return false
	case flows.StepCondition:
		if o.member(s.Condition.Root, p, o.at) {
			o.leave(f, w, flows.Yes, 0, s.Condition.Yes, at)
		} else {
			o.leave(f, w, flows.No, 0, s.Condition.No, at)
		}
		return true
	case flows.StepSplit:
		branch := naivePick(s.Split.Branches, o.bits(f, p, w.Step, w.Number))
		o.leave(f, w, flows.Branched, branch, s.Split.Branches[branch].Next, at)
		return true
	case flows.StepEmail, flows.StepSMS, flows.StepOmnichannel:
		r, place := flows.Queued, 0
		var skipped []flows.Result
		for place = range s.Messages {
			if r = o.reaches(p, s.Messages[place].Channel); r == flows.Queued {
				if o.until = o.quietUntil(); o.until != 0 {
					w.Depth = 0
					simulatedFlows.held.Add(1)
					return false
				}
				if s.Messages[place].Email != nil && o.credits == 0 {
					o.outOfCredits()
					return false
				}
				break
			}
			skipped = append(skipped, r)
		}
		o.onChannels(f, w.Step, 0, skipped, r == flows.Queued)
		if r != flows.Queued {
			place = 0
		} else {
			o.putMessage(f, p, s, &s.Messages[place], w.Event)
		}
		o.leave(f, w, r, place, s.Next, at)
		return true
	case flows.StepTag:
		o.tag(p, s.Tag)
	case flows.StepUpdate:
		o.update(p, w, s.Update)
	case flows.StepWebhook:
		o.put(f, p, s, outbox.KindCall, "", "", w.Event)
		w.Phase, w.Item, w.DueMs = flows.Awaiting, o.last, flows.Never
		return false
	case flows.StepExit:
		o.end(f, w, flows.Exited, flows.ByStep, flows.Done, 0, at)
		return false
	}
	o.leave(f, w, flows.Done, 0, s.Next, at)
	return true
}

// quietUntil is when the quiet hours end, 0 outside of them. Here all people have the clocks of
// UTC, and no night goes past midnight.
func (o *flowOracle) quietUntil() int64 {
	if o.limits == nil {
		return 0
	}
	day := time.UnixMilli(o.now).UTC().Format(time.DateOnly)
	clock := func(hhmm string) int64 {
		at, err := time.Parse("2006-01-02 15:04", day+" "+hhmm)
		if err != nil {
			o.t.Fatal(err)
		}
		return at.UnixMilli()
	}
	if to := clock(o.limits.QuietHours.To); o.now >= clock(o.limits.QuietHours.From) && o.now < to {
		return to
	}
	return 0
}

// reaches says why a message does not reach a person on a channel, flows.Queued if it does.
func (o *flowOracle) reaches(p int, channel string) flows.Result {
	x := o.people[p]
	kind := IdentityEmail
	if channel == "sms" {
		kind = IdentityPhone
	}
	consent := x.consents[channel].Status
	switch {
	case channel == "push", len(o.who.profiles[p].idents[kind]) == 0: // no person has a device here
		return flows.NoAddress
	case x.suppressions[channel] != 0:
		return flows.Suppressed
	case consent == profile.ConsentUnsubscribed || (o.optIn || channel == "sms") && consent != profile.ConsentSubscribed:
		return flows.NotSubscribed
	}
	return flows.Queued
}

// onChannels counts a person on the channels of an omnichannel step from one on.
func (o *flowOracle) onChannels(f *oracleFlow, step, from int, skipped []flows.Result, queued bool) {
	if f.def.Steps[step].Type != flows.StepOmnichannel {
		return
	}
	for i, r := range skipped {
		c := o.channel(f, step, from+i)
		if c.Skipped == nil {
			c.Skipped = map[flows.Result]uint64{}
		}
		c.Skipped[r]++
	}
	if queued {
		o.channel(f, step, from+len(skipped)).Queued++
	}
}

func (o *flowOracle) channel(f *oracleFlow, step, i int) *automation.ChannelCount {
	c := &f.counts.Steps[step]
	for len(c.Channels) < len(f.def.Steps[step].Messages) {
		c.Channels = append(c.Channels, automation.ChannelCount{})
	}
	return &c.Channels[i]
}

// putMessage queues a message that reaches its person.
func (o *flowOracle) putMessage(f *oracleFlow, p int, s *flows.Step, m *flows.Message, event []byte) {
	if m.Email == nil {
		o.put(f, p, s, m.Channel, "", "", event)
		return
	}
	list := o.who.profiles[p].idents[IdentityEmail]
	o.put(f, p, s, outbox.KindEmail, list[len(list)-1], m.Email.TemplateID, event)
	if o.credits--; o.credits == 0 {
		o.outOfCredits()
	}
}

// failed counts a message that failed, and tries its further channels if it did not go out.
func (o *flowOracle) failed(it *oracleItem, p int, further bool) {
	for _, f := range o.flows {
		if f.id != it.Flow || f.deleted || o.people[p].gone {
			continue
		}
		step := slices.IndexFunc(f.def.Steps, func(s flows.Step) bool { return s.ID == it.Step })
		s := &f.def.Steps[step]
		if s.Type != flows.StepOmnichannel {
			return
		}
		tried := slices.IndexFunc(s.Messages, func(m flows.Message) bool { return m.Channel == it.Kind })
		o.channel(f, step, tried).Failed++
		if !further {
			simulatedFlows.lost.Add(1)
			return
		}
		var skipped []flows.Result
		for i := tried + 1; i < len(s.Messages); i++ {
			r := o.reaches(p, s.Messages[i].Channel)
			if r == flows.Queued && o.quietUntil() != 0 {
				r = flows.QuietHours
			}
			if r == flows.Queued && s.Messages[i].Email != nil && o.credits == 0 {
				r = flows.Refused
			}
			if r == flows.Queued {
				o.onChannels(f, step, tried+1, skipped, true)
				o.putMessage(f, p, s, &s.Messages[i], it.event)
				simulatedFlows.next.Add(1)
				return
			}
			skipped = append(skipped, r)
		}
		o.onChannels(f, step, tried+1, skipped, false)
	}
}

func (o *flowOracle) put(f *oracleFlow, p int, s *flows.Step, kind, to, ref string, event []byte) {
	o.last++
	it := outbox.Item{Seq: o.last, Origin: o.last, Kind: kind, Ordinal: uint32(p), DueMs: o.now, CreatedMs: o.now, Flow: f.id, Step: s.ID, Ref: ref}
	o.outbox[o.last] = &oracleItem{it, to, slices.Clone(event)}
}

func (o *flowOracle) arrive(f *oracleFlow, w *flows.Enrolment, step int, at int64) {
	w.Phase, w.Step, w.SinceMs, w.DueMs, w.Item = flows.Ready, step, at, at, 0
	w.Path = append(w.Path, flows.Visit{Step: step, AtMs: at})
	f.counts.Steps[step].Arrived++
	f.counts.Steps[step].At++
}

func (o *flowOracle) leave(f *oracleFlow, w *flows.Enrolment, r flows.Result, branch, next int, at int64) {
	if next == flows.End {
		o.end(f, w, flows.Completed, 0, r, branch, at)
		return
	}
	o.visited(f, w, r, branch)
	o.arrive(f, w, next, at)
}

func (o *flowOracle) end(f *oracleFlow, w *flows.Enrolment, s flows.Status, why flows.Reason, r flows.Result, branch int, at int64) {
	o.visited(f, w, r, branch)
	w.Status, w.Reason, w.Phase, w.Step, w.Item, w.DueMs, w.EndedMs = s, why, flows.Ready, flows.End, 0, flows.Never, at
}

func (o *flowOracle) visited(f *oracleFlow, w *flows.Enrolment, r flows.Result, branch int) {
	v := &w.Path[len(w.Path)-1]
	v.Result, v.Branch = r, branch
	if r != flows.Failed {
		v.Reason = ""
	}
	c := &f.counts.Steps[v.Step]
	c.At--
	if c.Results == nil {
		c.Results = map[flows.Result]uint64{}
	}
	c.Results[r]++
}

// tag changes tags, which are an attribute.
func (o *flowOracle) tag(p int, x *flows.Tag) {
	attrs := o.who.profiles[p].attrs
	have, isList := attrs[automation.TagsField].([]any)
	if v := attrs[automation.TagsField]; v != nil && !isList {
		have = []any{v} // one, which stays what it is unless something changes
	}
	list := []any{}
	for _, v := range have {
		text, isText := v.(string)
		if !isText || !slices.Contains(list, v) && (!slices.Contains(x.Remove, text) || slices.Contains(x.Add, text)) {
			list = append(list, v)
		}
	}
	for _, text := range x.Add {
		if !slices.Contains(list, any(text)) {
			list = append(list, text)
		}
	}
	if reflect.DeepEqual(append([]any{}, have...), list) {
		return
	}
	attrs[automation.TagsField] = list
	o.amended(p)
}

// update sets fields. Of merge tags it knows those that the test uses.
func (o *flowOracle) update(p int, w *flows.Enrolment, x *flows.Update) {
	who := o.who.profiles[p]
	event, first := decodeObject(w.Event), who.first
	for _, a := range x.Set {
		var v any
		if err := json.Unmarshal(a.Value, &v); err != nil {
			panic(err)
		}
		switch v {
		case "{{event.value}}":
			v = ""
			if event["value"] != nil {
				v = string(must.JSON(event["value"]))
			}
		case "{{first_name}}":
			v = first
		}
		group, path, _ := strings.Cut(a.Field, ".")
		switch group {
		case "first_name":
			who.first, _ = v.(string)
		case "attributes":
			naiveMerge(who.attrs, map[string]any{path: v}, false)
		case "geo":
			naiveMerge(who.geo, map[string]any{path: v}, false)
		}
	}
	o.amended(p)
}

func (o *flowOracle) amended(p int) {
	o.people[p].facts = nil
	o.dates(p)
	o.evaluate(p, segment.CauseProfile)
}
