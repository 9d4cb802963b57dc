package resolver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment"
)

// act lets something happen.
func (s *flowSim) act() {
	rng := s.rng
	switch rng.IntN(20) {
	case 0:
		s.n.now += rng.Int64N(int64(pick(rng, 60_000, 60_000, 2*86_400_000)))
	case 1:
		// A stamp of another node's clock, or a clock put back.
		s.n.now -= rng.Int64N(int64(pick(rng, 3000, 3000, 60_000, 3_600_000)))
	case 2:
		if rng.IntN(4) == 0 {
			s.n.now += rng.Int64N(400 * 86_400_000)
		}
	case 3, 4, 5, 6, 7, 8, 9:
		s.n.now += int64(rng.IntN(6)) * 1000 // windows and waits end at the same instant
	case 10, 11:
		s.n.now += rng.Int64N(20_000)
	}
	if rng.IntN(4) == 0 {
		s.n.now = max(s.n.now, s.o.now) // the clock is right again
	}
	s.w.now = s.n.now
	s.sometimesCrash(12)
	switch n := rng.IntN(100); {
	case n < 27:
		s.events()
	case n < 33:
		s.tick()
	case n < 36:
		s.continueRecord()
	case n < 44:
		s.contact()
	case n < 49:
		s.person()
	case n < 59:
		s.outcome()
	case n < 70:
		s.state()
	case n < 77:
		s.call()
	case n < 85:
		s.topUp()
	case n < 88:
		s.imports()
	case n < 90:
		s.createFlow()
	case n < 91:
		s.editFlow()
	case n < 95:
		s.publishSome()
	case n < 97:
		s.editSegment()
	case n < 98:
		s.deleteUsed()
	default:
		s.erase()
	}
}

func (s *flowSim) events() {
	var evs []eventlog.Event
	for range pick(s.rng, 1, 1, 2, 4) {
		evs = append(evs, s.w.event(s.world))
	}
	if s.rng.IntN(5) == 0 {
		s.meet(&evs[0])
	}
	s.step = fmt.Sprintf("%d events:", len(evs))
	for i := range evs {
		s.step += fmt.Sprintf(" %s props=%s geo=%s first=%s", describe(&evs[i]), evs[i].Properties, evs[i].Geo, evs[i].FirstName)
	}
	s.log()
	s.do(eventlog.KindEvents, appendEvents(nil, evs), func(out *Outcome) { s.tellEvents(evs, out) })
}

// meet lets an event show that two profiles are one person.
func (s *flowSim) meet(ev *eventlog.Event) {
	one := func(kind IdentityKind) []byte {
		var list []string
		for p, x := range s.o.who.profiles {
			if s.o.there(p) {
				list = append(list, x.idents[kind]...)
			}
		}
		if len(list) == 0 {
			return nil
		}
		return []byte(pick(s.rng, list...))
	}
	if a, b := one(IdentityExternalID), one(pick(s.rng, IdentityEmail, IdentityPhone)); a != nil && b != nil {
		ev.Email, ev.ExternalID, ev.Phone = nil, a, nil
		if b[0] == '+' {
			ev.Phone = b
		} else {
			ev.Email = b
		}
	}
}

func (s *flowSim) tellEvents(evs []eventlog.Event, out *Outcome) {
	for i := range evs {
		p, status := s.o.event(&evs[i])
		if got := out.Events[i]; got.Status != status || status != EventRefused && got.Profile.Ordinal() != uint32(p) {
			s.fatalf("event %d: status %d, the oracle says %d for profile %d", i, got.Status, status, p)
		}
	}
}

// imports brings past events, which start flows only if they are told to.
func (s *flowSim) imports() {
	evs := []eventlog.Event{s.w.event(s.world), s.w.event(s.world)}
	for i := range evs {
		evs[i].HasTime, evs[i].TimeMs = true, s.o.now-s.rng.Int64N(20_000)
	}
	head := eventlog.ImportHead{File: [32]byte{9}, FirstRow: s.file, Rows: uint32(len(evs)), TriggerFlows: s.rng.IntN(2) == 0}
	if s.file += uint64(len(evs)); s.file > 0 && s.rng.IntN(10) == 0 && head.FirstRow > 0 {
		// The same rows again.
		head.FirstRow -= 2
		s.file -= 2
	}
	again := head.FirstRow+uint64(head.Rows) <= s.n.account().Imports[head.File]
	s.step = fmt.Sprintf("import of two events, flows %v, again %v: %s %s", head.TriggerFlows, again, describe(&evs[0]), describe(&evs[1]))
	s.log()
	s.do(eventlog.KindImport, appendEvents(head.Append(nil), evs), func(out *Outcome) {
		if again {
			return
		}
		s.o.quiet = !head.TriggerFlows
		s.tellEvents(evs, out)
		s.o.react()
		s.o.quiet = false
	})
}

// refused compares whether a command was refused.
func (s *flowSim) refused(out *Outcome, want bool) {
	s.t.Helper()
	if (out.Refusal != nil) != want {
		s.fatalf("refusal %v, the oracle says %v", out.Refusal, want)
	}
}

func (s *flowSim) contact() {
	c := contacts.Create{Email: fmt.Sprintf("U%d@x.io", s.rng.IntN(s.world)), FirstName: pick(s.rng, "", "Ada")}
	if s.rng.IntN(2) == 0 {
		c.Phone = fmt.Sprintf("+49 30 %d", s.rng.IntN(s.world))
	}
	if s.rng.IntN(3) == 0 {
		s.command(contacts.CommandCreate, c, func(out *Outcome) { s.refused(out, s.o.contact(c)) })
		return
	}
	l := pick(s.rng, s.w.lists...)
	s.command(contacts.CommandListAdd, contacts.ListAdd{ListID: l, Create: c}, func(out *Outcome) {
		c.ListID = l
		s.refused(out, s.o.contact(c))
	})
}

// someone picks a profile that is there.
func (s *flowSim) someone() (p int, id string, ok bool) {
	a := s.n.account()
	if a.Profiles.Headers.Count == 0 {
		return 0, "", false
	}
	o := uint32(s.rng.IntN(int(a.Profiles.Headers.Count)))
	return int(a.Profiles.Root(o)), a.Profiles.Headers.Get(o).ID.String(), !a.Profiles.Erased(a.Profiles.Root(o))
}

// person changes consents, blocks and lists.
func (s *flowSim) person() {
	p, id, ok := s.someone()
	if !ok {
		return
	}
	switch channel := pick(s.rng, "email", "email", "sms"); s.rng.IntN(4) {
	case 0, 1:
		c := contacts.ConsentSet{ID: id, Channel: channel, Status: pick(s.rng, "subscribed", "unsubscribed"), Source: "form"}
		s.command(contacts.CommandConsentSet, c, func(*Outcome) {
			if s.o.consent(p, c.Channel, c.Status, c.Source) {
				s.o.evaluate(p, segment.CauseProfile)
			}
		})
	case 2:
		c := contacts.SuppressionSet{ID: id, Channel: channel, Reason: pick(s.rng, "bounced", "suppressed", "", "")}
		s.command(contacts.CommandSuppressionSet, c, func(*Outcome) {
			was, props := s.o.people[p].suppressions[channel], feature.Properties{"channel": channel, "reason": c.Reason, "source": ""}
			switch is := map[string]profile.SuppressionReason{"bounced": profile.SuppressionBounced, "suppressed": profile.SuppressionByAccount}[c.Reason]; {
			case is == 0 && was != 0:
				props["reason"] = was.String()
				s.o.own(p, contacts.EventUnsuppressed, props)
				s.o.people[p].suppressions[channel] = 0
			case is > was:
				s.o.own(p, contacts.EventSuppressed, props)
				s.o.people[p].suppressions[channel] = is
			}
			s.o.evaluate(p, segment.CauseEvent)
		})
	default:
		l := pick(s.rng, s.w.lists...)
		s.command(contacts.CommandListRemove, contacts.ListRemove{ListID: l, Profile: id}, func(out *Outcome) { s.refused(out, !s.o.left(p, l)) })
	}
}

// outcome reports what became of effects, also late and twice.
func (s *flowSim) outcome() {
	for range 1 + s.rng.IntN(3) {
		waiting := slices.Sorted(maps.Keys(waitingItems(s.n.m)))
		if len(waiting) == 0 {
			return
		}
		it := itemOf(s.n.account(), pick(s.rng, waiting...))
		if x := s.n.account().Flows.Step(it.Flow, it.Step); x == nil || x.Type != flows.StepOmnichannel {
			it = itemOf(s.n.account(), pick(s.rng, waiting...)) // messages that may continue are few
		}
		d := outbox.Done{Seq: it.Seq, Attempt: it.Attempt, Reason: "why", DelayMs: s.rng.Int64N(1000), Unreachable: s.rng.IntN(4) > 0, Handed: s.rng.IntN(8) == 0,
			Result: pick(s.rng, outbox.ResultSent, outbox.ResultSent, outbox.ResultRetry, outbox.ResultFailed, outbox.ResultBounced, outbox.ResultRefused, outbox.ResultMoot)}
		if it.Kind == outbox.KindCall && d.Result != outbox.ResultRetry {
			simulatedFlows.calls.Add(1)
			if f, _ := s.n.account().Flows.Get(it.Flow); f != nil && f.Status == automation.Paused {
				simulatedFlows.noted.Add(1)
			}
		}
		for range 1 + s.rng.IntN(2) {
			s.command(messages.CommandOutboxDone, d, func(*Outcome) { s.o.done(d) })
		}
	}
}

// aFlow picks a flow that is there.
func (s *flowSim) aFlow(wanted func(f *oracleFlow) bool) *oracleFlow {
	var list []*oracleFlow
	for _, f := range s.o.flows {
		if !f.deleted && wanted(f) {
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return pick(s.rng, list...)
}

// state pauses, resumes, toggles, deletes and duplicates.
func (s *flowSim) state() {
	f := s.aFlow(func(f *oracleFlow) bool { return f.status != automation.Draft || s.rng.IntN(4) == 0 })
	if f == nil {
		return
	}
	s.follow(f)
	switch n := s.rng.IntN(12); {
	case n < 5:
		s.command(automation.CommandToggle, automation.ID{ID: f.id}, func(out *Outcome) {
			if f.status == automation.Live {
				s.o.pause(f, "")
				s.refused(out, false)
				return
			}
			s.refused(out, f.status == automation.Draft || s.o.resume(f))
		})
	case n < 7:
		s.command(automation.CommandPause, automation.ID{ID: f.id}, func(out *Outcome) {
			s.refused(out, f.status == automation.Draft)
			if f.status == automation.Live {
				s.o.pause(f, "")
			}
		})
	case n < 10:
		s.command(automation.CommandResume, automation.ID{ID: f.id}, func(out *Outcome) {
			s.refused(out, f.status == automation.Draft || f.status == automation.Paused && s.o.resume(f))
		})
	case n < 11:
		s.duplicate(f)
	default:
		s.command(automation.CommandDelete, automation.ID{ID: f.id}, func(out *Outcome) {
			s.refused(out, f.status == automation.Live)
			if f.status != automation.Live {
				f.deleted = true
			}
		})
	}
}

// follow does nothing for a machine that the oracle no longer follows but keep
// the oracle's idea of a flow's status, by which flows are picked.
func (s *flowSim) follow(f *oracleFlow) {
	if x := inspect(s.n.account())[f.number]; !s.exact {
		f.status, f.deleted, f.publishing = x.Status, x.Deleted, x.Publishing
	}
}

// credited is how many flows are paused for want of credits.
func (s *flowSim) credited() (n int64) {
	for _, f := range inspect(s.n.account()) {
		if f.PausedFor == automation.PausedForCredits {
			n++
		}
	}
	return n
}

func (s *flowSim) addFlow(out *Outcome, def string) {
	var x automation.Reply
	s.n.must(json.Unmarshal(out.Reply, &x))
	d, err := flows.Parse([]byte(def))
	s.n.must(err)
	s.o.flows = append(s.o.flows, &oracleFlow{number: uint32(len(s.o.flows)), id: x.ID, status: automation.Draft, def: d,
		enrolments: map[int][]flows.Enrolment{}, dates: map[int]int64{}, waiting: map[int]bool{}, counts: automation.Counts{Steps: make([]automation.StepCount, len(d.Steps))}})
}

func (s *flowSim) createFlow() {
	def := s.w.flow(fmt.Sprintf("f%d", len(s.o.flows)))
	if len(s.o.flows) >= 8 || !s.exact {
		return
	}
	s.command(automation.CommandCreate, automation.Save{Definition: json.RawMessage(def)}, func(out *Outcome) {
		s.refused(out, false)
		s.addFlow(out, def)
	})
}

// editFlow gives a flow another definition, which only a draft may have.
func (s *flowSim) editFlow() {
	f := s.aFlow(func(f *oracleFlow) bool { return f.status == automation.Draft || s.rng.IntN(3) == 0 })
	if f == nil || !s.exact {
		return
	}
	def := s.w.flow(f.def.Name)
	s.command(automation.CommandUpdate, automation.Save{ID: f.id, Definition: json.RawMessage(def)}, func(out *Outcome) {
		s.refused(out, f.status != automation.Draft)
		if f.status == automation.Draft {
			d, err := flows.Parse([]byte(def))
			s.n.must(err)
			f.def, f.counts.Steps = d, make([]automation.StepCount, len(d.Steps))
		}
	})
}

// deleteUsed tries to delete what a flow refers to.
func (s *flowSim) deleteUsed() {
	f := s.aFlow(func(*oracleFlow) bool { return true })
	if f == nil || !s.exact {
		return
	}
	def := string(f.def.JSON())
	refused := func(out *Outcome) { s.refused(out, true) }
	for _, id := range s.w.segments {
		if strings.Contains(def, id) {
			s.command(CommandSegmentDelete, SegmentDelete{ID: id}, refused)
		}
	}
	for _, id := range s.w.lists {
		if strings.Contains(def, id) {
			s.command(contacts.CommandListDelete, contacts.ListDelete{ID: id}, refused)
		}
	}
	if strings.Contains(def, s.w.template) {
		s.command(campaigns.CommandTemplateDelete, campaigns.TemplateDelete{ID: s.w.template}, refused)
	}
}

func (s *flowSim) duplicate(f *oracleFlow) {
	if len(s.o.flows) >= 8 || !s.exact {
		return
	}
	s.command(automation.CommandDuplicate, automation.ID{ID: f.id}, func(out *Outcome) {
		d := *f.def
		d.Name = "Copy of " + d.Name
		s.addFlow(out, string(d.JSON()))
	})
}

func (s *flowSim) publishSome() {
	if f := s.aFlow(func(f *oracleFlow) bool { return f.status == automation.Draft }); f != nil {
		s.publish(f)
	}
}

func (s *flowSim) publish(f *oracleFlow) {
	s.command(automation.CommandPublish, automation.ID{ID: f.id}, func(out *Outcome) {
		refused := f.status == automation.Paused || f.status == automation.Draft && !f.publishing && f.def.SendsEmail() && s.o.credits == 0
		s.refused(out, refused)
		f.publishing = f.publishing || !refused && f.status == automation.Draft
	})
	s.build(true)
	s.follow(f)
	if x := inspect(s.n.account())[f.number]; x.Publishing {
		s.fatalf("the flow does not go live")
	}
}

func (s *flowSim) call() {
	f := s.aFlow(func(f *oracleFlow) bool { return f.def.Trigger.Type == flows.TriggerAPI || s.rng.IntN(10) == 0 })
	if f == nil {
		return
	}
	c := automation.Trigger{ID: f.id, Key: pick(s.rng, "", "", "a", "b")}
	if s.rng.IntN(3) > 0 {
		c.Email = fmt.Sprintf("u%d@X.io", s.rng.IntN(s.world))
	}
	if s.rng.IntN(3) == 0 {
		c.ExternalID = fmt.Sprintf("id-%d", s.rng.IntN(s.world))
	}
	if s.rng.IntN(3) == 0 {
		c.Phone = fmt.Sprintf("+49 30 %d", s.rng.IntN(s.world))
	}
	if s.rng.IntN(2) == 0 {
		c.Data = fmt.Appendf(nil, `{"value":%d}`, s.rng.IntN(10))
	}
	for range 1 + s.rng.IntN(2) {
		s.command(automation.CommandTrigger, c, func(out *Outcome) {
			refused, repeated := s.o.call(f, c)
			s.refused(out, refused)
			if out.Refusal == nil {
				var x automation.Triggered
				s.n.must(json.Unmarshal(out.Reply, &x))
				if x.Enrolled == repeated {
					s.fatalf("enrolled %v, the oracle says repeated %v", x.Enrolled, repeated)
				}
			}
		})
	}
}

func (s *flowSim) topUp() {
	n := int64(pick(s.rng, 1, 1, 2, 3)) // soon used up again
	s.command(CommandCreditsAdd, CreditsAdd{Amount: n}, func(*Outcome) { s.o.topUp(n) })
}

func (s *flowSim) createSegment() {
	s.tick()
	def := s.w.definition(s.w.segments)
	var x struct {
		ID string `json:"id"`
	}
	s.command(CommandSegmentCreate, SegmentSave{Name: "s", Definition: json.RawMessage(def)}, func(out *Outcome) {
		s.refused(out, false)
		s.n.must(json.Unmarshal(out.Reply, &x))
		s.w.segments = append(s.w.segments, x.ID)
		s.o.segs[x.ID] = &oracleSegment{members: map[int]bool{}, pending: map[int]bool{}, next: s.parse(def)}
	})
	s.build(true)
}

func (s *flowSim) parse(def string) *segment.Node {
	root, err := segment.Parse([]byte(def), segment.Limits{})
	s.n.must(err)
	return root
}

// editSegment gives a segment a new definition, of segments made before it.
func (s *flowSim) editSegment() {
	i := s.rng.IntN(len(s.w.segments))
	def, id := s.w.definition(s.w.segments[:i]), s.w.segments[i]
	root := s.parse(def)
	if string(root.Canonical()) == string(s.o.segs[id].live.Canonical()) {
		return // it is the one that it has
	}
	s.tick()
	s.command(CommandSegmentUpdate, SegmentSave{ID: id, Name: "t", Definition: json.RawMessage(def)}, func(out *Outcome) {
		s.refused(out, false)
		s.o.segs[id].next = root
	})
	s.build(false)
	for range s.rng.IntN(5) { // before the last transition is emitted
		s.n.now += s.rng.Int64N(2000)
		s.state()
	}
}

func (s *flowSim) erase() {
	p, id, ok := s.someone()
	if !ok || s.rng.IntN(2) == 0 {
		return
	}
	s.command(CommandContactErase, ContactErase{ID: id}, func(out *Outcome) {
		s.refused(out, false)
		s.o.erase(p)
	})
}
