package resolver

import (
	"slices"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/segment"
)

// seenMs is when somebody was seen, by the attribute of this name.
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
		o.people = append(o.people, &person{consents: map[string]consentState{}, blocks: map[string]blockReason{}})
	}
}

// resolve finds or makes the profile of an event's identifiers and merges what
// belongs together.
func (o *flowOracle) resolve(ev *eventlog.Event) (p int, cause segment.Cause, status EventStatus) {
	for k, raw := range [identityKinds][]byte{ev.Email, ev.ExternalID, ev.Phone} {
		key := IdentityKind(k).String() + "\x00" + normal(IdentityKind(k), string(raw))
		if _, known := o.who.owner[key]; len(raw) > 0 && !known && o.erased[key] {
			if x, ok := o.who.keys[string(ev.IdempotencyKey)]; ok && len(ev.IdempotencyKey) > 0 && o.now-x.at < o.who.settings.idempotencyMs() {
				return x.profile, 0, EventDuplicate
			}
			return -1, 0, EventRefused
		}
	}
	before := make([]int, len(o.who.profiles))
	for i, x := range o.who.profiles {
		before[i] = x.winner
	}
	p, status = o.who.event(ev)
	o.meet()
	if status != EventAccepted {
		return p, 0, status
	}
	o.people[p].facts = nil
	cause = segment.CauseEvent
	var losers []int
	for _, l := range o.who.profiles[p].merged {
		if l < len(before) && before[l] == l {
			losers = append(losers, l)
		}
	}
	for _, l := range losers {
		o.merge(p, l)
		cause = segment.CauseMerge
	}
	o.dates(p)
	return p, cause, status
}

// event applies one event.
func (o *flowOracle) event(ev *eventlog.Event) (int, EventStatus) {
	p, cause, status := o.resolve(ev)
	if status != EventAccepted {
		return p, status
	}
	at := o.now
	if ev.HasTime {
		at = ev.TimeMs
	}
	o.happened(p, at, string(ev.Type), ev.Properties)
	o.settle(p, cause)
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
func (o *flowOracle) own(p int, typ string, props properties) {
	o.happened(p, o.at, typ, props.encode())
}

// merge makes one profile part of another, but for what the oracle of resolution
// does.
func (o *flowOracle) merge(winner, loser int) {
	w, l := o.people[winner], o.people[loser]
	w.events = append(slices.Clone(w.events), l.events...)
	l.events = nil
	for channel, c := range l.consents {
		have, ok := w.consents[channel]
		subscribed := max(have.subscribedMs, c.subscribedMs)
		newer := c.sinceMs > have.sinceMs || c.sinceMs == have.sinceMs && c.status > have.status
		// A refusal gives way to what was said alone.
		if assumed := string(have.source) == sourceManual; assumed && c.status == consentUnsubscribed {
			newer = true
		} else if assumed := string(c.source) == sourceManual; assumed && have.status == consentUnsubscribed {
			newer = false
		}
		if !ok || newer {
			have = c
		}
		have.subscribedMs = subscribed
		w.consents[channel] = have
	}
	for _, id := range l.lists {
		if !slices.Contains(w.lists, id) {
			w.lists = append(w.lists, id)
		}
	}
	for channel, reason := range l.blocks {
		w.blocks[channel] = max(w.blocks[channel], reason)
	}
	w.facts = nil
	for _, id := range o.ranked() {
		if o.segs[id].members[loser] {
			o.turn(id, loser, false, segment.CauseMerge)
		}
	}
	for _, f := range o.flows {
		if !f.deleted {
			o.mergeWays(f, winner, loser)
		}
	}
}

// consent records an opt-in or opt-out, and tells whether it changed anything.
func (o *flowOracle) consent(p int, channel, status, source string) bool {
	x := o.people[p]
	number := byte(slices.Index(consentStatuses, status))
	c := x.consents[channel]
	if c.status == number {
		if number == consentSubscribed && string(c.source) == sourceManual {
			c.sinceMs, c.source = o.now, []byte(source)
			x.consents[channel] = c
		}
		return false
	}
	c.status, c.sinceMs, c.source = number, o.now, []byte(source)
	if number == consentSubscribed {
		c.subscribedMs = o.now
	}
	x.consents[channel], x.facts = c, nil
	typ := typeSubscribed
	if number == consentUnsubscribed {
		typ = typeUnsubscribed
	}
	o.own(p, typ, properties{"channel": channel, "source": source})
	return true
}

func (o *flowOracle) joined(p int, list string) {
	x := o.people[p]
	if !slices.Contains(x.lists, list) {
		x.lists = append(slices.Clone(x.lists), list)
		o.own(p, typeListJoined, properties{"list_id": list, "list_name": "l"})
	}
}

func (o *flowOracle) left(p int, list string) bool {
	x := o.people[p]
	i := slices.Index(x.lists, list)
	if i < 0 {
		return false
	}
	x.lists = slices.Delete(slices.Clone(x.lists), i, i+1)
	o.own(p, typeListLeft, properties{"list_id": list, "list_name": "l"})
	o.settle(p, segment.CauseProfile)
	return true
}

// ownerOf is the profile of an e-mail, −1 if there is none.
func (o *flowOracle) ownerOf(email string) int {
	if p, ok := o.who.owner[IdentityEmail.String()+"\x00"+normal(IdentityEmail, email)]; ok {
		return p
	}
	return -1
}

// contact makes a contact or, with a list, puts one on it. It tells whether that
// is refused.
func (o *flowOracle) contact(c ContactCreate) (refused bool) {
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
		o.settle(p, segment.CauseProfile)
		return false
	}
	ev := eventlog.Event{Email: []byte(c.Email), Phone: []byte(c.Phone), FirstName: []byte(c.FirstName)}
	known := -1
	if x, ok := o.who.owner[IdentityPhone.String()+"\x00"+normal(IdentityPhone, c.Phone)]; ok && c.Phone != "" {
		known = x
	}
	last := int64(0)
	if known >= 0 {
		last = o.who.profiles[known].lastEvent
	}
	p, cause, status := o.resolve(&ev)
	if status != EventAccepted {
		return true
	}
	// It is no event.
	o.who.rows = o.who.rows[:len(o.who.rows)-1]
	o.who.counts[""]--
	o.who.profiles[p].lastEvent = -1 << 63
	if known >= 0 {
		o.who.profiles[p].lastEvent = last
	}
	if cause == segment.CauseEvent {
		cause = segment.CauseProfile
	}
	for _, channel := range []string{"email", "sms"} {
		if (channel == "email" || c.Phone != "") && o.people[p].consents[channel].status == 0 { // only who has said nothing
			o.consent(p, channel, "subscribed", sourceManual)
		}
	}
	if c.ListID != "" {
		o.joined(p, c.ListID)
	}
	o.settle(p, cause)
	return false
}

// erase forgets somebody.
func (o *flowOracle) erase(p int) {
	x := o.people[p]
	for key, owner := range o.who.owner {
		if owner == p {
			delete(o.who.owner, key)
			o.erased[key] = true
		}
	}
	for _, f := range o.flows {
		if f.deleted {
			continue
		}
		if w := f.current(p); w != nil {
			f.counts.Steps[w.Step].At--
		}
		delete(f.ways, p)
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
