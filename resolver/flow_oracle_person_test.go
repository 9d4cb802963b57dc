package resolver

import (
	"maps"
	"slices"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment"
)

// seenMs is when a person was seen, by the attribute of this name.
func seenMs(attrs map[string]any) (int64, bool) {
	text, ok := attrs["seen"].(string)
	if !ok {
		return 0, false
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	return t.UnixMilli(), err == nil
}

// meet keeps up with the profiles that the oracle of resolution has made.
func (o *flowOracle) meet() {
	for len(o.people) < len(o.who.profiles) {
		o.people = append(o.people, &person{consents: map[string]profile.Consent{}, suppressions: map[string]profile.SuppressionReason{}, loops: map[int64]int{}})
	}
}

// resolve finds or makes the profile of an event's identifiers and merges what
// belongs together. Merged people are judged as one before anything else that
// the event brings: what changes by that is the merge's doing, what changes after
// it the event's.
func (o *flowOracle) resolve(ev *eventlog.Event) (p int, status EventStatus) {
	before := make([]int, len(o.who.profiles))
	for i, x := range o.who.profiles {
		before[i] = x.winner
	}
	were := o.owners(ev)
	p, status = o.who.event(ev)
	o.meet()
	if status != EventAccepted {
		return p, status
	}
	o.people[p].facts = nil
	var mergedProfiles []int
	for _, l := range o.who.profiles[p].merged {
		if l < len(before) && before[l] == l {
			mergedProfiles = append(mergedProfiles, l)
		}
	}
	for _, l := range mergedProfiles {
		o.merge(p, l)
	}
	if len(mergedProfiles) > 0 {
		now, x := o.who.profiles[p], o.people[p]
		o.who.profiles[p], x.facts = joinedAlone(were, p, mergedProfiles), nil
		o.evaluate(p, segment.CauseMerge)
		o.who.profiles[p], x.facts = now, nil
	}
	o.dates(p)
	return p, status
}

// owners are copies of the profiles that have an event's identifiers.
func (o *flowOracle) owners(ev *eventlog.Event) map[int]*naiveProfile {
	list := map[int]*naiveProfile{}
	for k, raw := range [identifier.Kinds][]byte{ev.Email, ev.ExternalID, ev.Phone} {
		if p, ok := o.who.owner[IdentityKind(k).String()+"\x00"+normal(IdentityKind(k), string(raw))]; ok && len(raw) > 0 {
			list[p] = o.who.profiles[p].clone()
		}
	}
	return list
}

func (n *naiveProfile) clone() *naiveProfile {
	c := *n
	for k := range c.idents {
		c.idents[k] = slices.Clone(n.idents[k])
	}
	c.geo, c.attrs, c.merged = map[string]any{}, map[string]any{}, slices.Clone(n.merged)
	naiveMerge(c.geo, n.geo, false)
	naiveMerge(c.attrs, n.attrs, false)
	c.shared = maps.Clone(n.shared)
	return &c
}

// joinedAlone is what profiles make that become one, when nothing else happens.
func joinedAlone(were map[int]*naiveProfile, winner int, mergedProfiles []int) *naiveProfile {
	n := &naive{profiles: make([]*naiveProfile, slices.Max(append(mergedProfiles, winner))+1), settings: Settings{IdentifierCap: 1 << 20}}
	for i := range n.profiles {
		n.profiles[i] = &naiveProfile{winner: -1}
	}
	for i, x := range were {
		if i < len(n.profiles) {
			n.profiles[i] = x
		}
	}
	for _, l := range mergedProfiles {
		n.merge(were[winner], winner, l, IdentityEmail, false) // of the first kind: nothing keeps them apart
	}
	return were[winner]
}

// event applies one event.
func (o *flowOracle) event(ev *eventlog.Event) (int, EventStatus) {
	p, status := o.resolve(ev)
	if status != EventAccepted {
		return p, status
	}
	at := o.now
	if ev.HasTime {
		at = ev.TimeMs
	}
	o.happened(p, at, string(ev.Type), ev.Properties)
	o.evaluate(p, segment.CauseEvent)
	o.react()
	return p, status
}

// happened notes an event and looks for flows that it triggers.
func (o *flowOracle) happened(p int, at int64, typ string, props []byte) {
	x := o.people[p]
	x.events = append(x.events, segment.NaiveEvent{TimeMs: at, Type: typ, Properties: slices.Clone(props)})
	x.facts = nil
	o.rows = append(o.rows, oracleRow{p, at, typ, string(props)})
	o.eventTriggers(p, typ, props)
}

// own records an event of the service's own.
func (o *flowOracle) own(p int, typ string, props feature.Properties) {
	o.happened(p, o.at, typ, props.Encode())
}

// merge makes one profile part of another, but for what the oracle of resolution
// does.
func (o *flowOracle) merge(winner, merged int) {
	w, l := o.people[winner], o.people[merged]
	w.events = append(slices.Clone(w.events), l.events...)
	l.events = nil
	for channel, c := range l.consents {
		have, ok := w.consents[channel]
		subscribed := max(have.SubscribedMs, c.SubscribedMs)
		newer := c.SinceMs > have.SinceMs || c.SinceMs == have.SinceMs && c.Status > have.Status
		// A refusal gives way to what was said alone.
		if assumed := string(have.Source) == profile.SourceManual; assumed && c.Status == profile.ConsentUnsubscribed {
			newer = true
		} else if assumed := string(c.Source) == profile.SourceManual; assumed && have.Status == profile.ConsentUnsubscribed {
			newer = false
		}
		if !ok || newer {
			have = c
		}
		have.SubscribedMs = subscribed
		w.consents[channel] = have
	}
	for _, id := range l.lists {
		if !slices.Contains(w.lists, id) {
			w.lists = append(w.lists, id)
		}
	}
	for channel, reason := range l.suppressions {
		w.suppressions[channel] = max(w.suppressions[channel], reason)
	}
	for minute, n := range l.loops {
		w.loops[minute] = max(w.loops[minute], n)
	}
	o.subscriptions(winner)
	w.facts = nil
	for _, id := range o.ranked() {
		o.announce(id, merged)
		if o.segs[id].members[merged] {
			o.turn(id, merged, false, segment.CauseMerge)
		}
	}
	for _, f := range o.flows {
		if !f.deleted {
			o.mergeEnrolments(f, winner, merged)
		}
	}
}

// consent records an opt-in or opt-out, and reports whether it changed anything.
func (o *flowOracle) consent(p int, channel, status, source string) bool {
	x := o.people[p]
	number := byte(slices.Index(profile.ConsentStatuses, status))
	c := x.consents[channel]
	if c.Status == number {
		if number == profile.ConsentSubscribed && string(c.Source) == profile.SourceManual {
			c.SinceMs, c.Source = o.now, []byte(source)
			x.consents[channel] = c
		}
		return false
	}
	c.Status, c.SinceMs, c.Source = number, o.now, []byte(source)
	if number == profile.ConsentSubscribed {
		c.SubscribedMs = o.now
	}
	x.consents[channel], x.facts = c, nil
	o.subscriptions(p)
	typ := contacts.EventSubscribed
	if number == profile.ConsentUnsubscribed {
		typ = contacts.EventUnsubscribed
	}
	o.own(p, typ, feature.Properties{"channel": channel, "source": source})
	return true
}

// subscriptions tells the oracle of resolution which addresses of a person are subscribed:
// these stay the newest.
func (o *flowOracle) subscriptions(p int) {
	for kind, channel := range map[IdentityKind]string{IdentityEmail: "email", IdentityPhone: "sms"} {
		o.who.profiles[p].subscribed[kind] = o.people[p].consents[channel].Status == profile.ConsentSubscribed
	}
}

func (o *flowOracle) joined(p int, list string) {
	x := o.people[p]
	if !slices.Contains(x.lists, list) {
		x.lists = append(slices.Clone(x.lists), list)
		o.own(p, contacts.EventListJoined, feature.Properties{"list_id": list, "list_name": "l"})
	}
}

func (o *flowOracle) left(p int, list string) bool {
	x := o.people[p]
	i := slices.Index(x.lists, list)
	if i < 0 {
		return false
	}
	x.lists = slices.Delete(slices.Clone(x.lists), i, i+1)
	o.own(p, contacts.EventListLeft, feature.Properties{"list_id": list, "list_name": "l"})
	o.evaluate(p, segment.CauseProfile)
	return true
}

// ownerOf is the profile of an e-mail, −1 if there is none.
func (o *flowOracle) ownerOf(email string) int {
	if p, ok := o.who.owner[IdentityEmail.String()+"\x00"+normal(IdentityEmail, email)]; ok {
		return p
	}
	return -1
}

// contact makes a contact or, with a list, puts one on it. It reports whether that
// is refused.
func (o *flowOracle) contact(c contacts.Create) (refused bool) {
	p := o.ownerOf(c.Email)
	if p >= 0 {
		if c.ListID == "" {
			return true
		}
		if w := o.who.profiles[p]; w.first == "" {
			w.first = c.FirstName
		}
		o.people[p].facts = nil
		o.joined(p, c.ListID)
		o.evaluate(p, segment.CauseProfile)
		return false
	}
	phone := IdentityPhone.String() + "\x00" + normal(IdentityPhone, c.Phone)
	holder, held := o.who.owner[phone]
	if p = o.who.contact(c); p < 0 {
		return true
	}
	o.meet()
	o.dates(p)
	o.consent(p, "email", "subscribed", profile.SourceManual)
	if c.Phone != "" && !o.who.suppressed[phone] {
		// The previous holder of the number may not want SMS to it.
		refused := held && (o.people[holder].consents["sms"].Status == profile.ConsentUnsubscribed || o.people[holder].suppressions["sms"] > profile.SuppressionPending)
		if !refused {
			o.consent(p, "sms", "subscribed", profile.SourceManual)
		}
	}
	if c.ListID != "" {
		o.joined(p, c.ListID)
	}
	o.evaluate(p, segment.CauseProfile)
	return false
}

// erase erases a person.
func (o *flowOracle) erase(p int) {
	x := o.people[p]
	o.who.erase(p)
	for _, f := range o.flows {
		if f.deleted {
			continue
		}
		if w := f.current(p); w != nil {
			o.visited(f, w, flows.Stopped, 0)
			f.counts.Exited++
		}
		delete(f.enrolments, p)
		delete(f.dates, p)
		delete(f.waiting, p)
	}
	for _, id := range o.ranked() {
		o.announce(id, p)
		if o.segs[id].members[p] {
			o.turn(id, p, false, segment.CauseProfile)
		}
	}
	x.gone = true
	for seq, it := range o.outbox {
		if o.who.profiles[it.Ordinal].winner == p {
			delete(o.outbox, seq)
		}
	}
}
