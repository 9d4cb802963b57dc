package resolver

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/automation"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment"
)

// pause stops a flow.
func (o *flowOracle) pause(f *oracleFlow, why string) {
	f.status, f.paused, f.pausedFor = automation.Paused, o.now, why
}

// outOfCredits pauses all live flows that send e-mail.
func (o *flowOracle) outOfCredits() {
	for _, f := range o.flows {
		if f.live() && f.def.SendsEmail() {
			o.pause(f, automation.PausedForCredits)
		}
	}
}

// resume lets a flow continue. It enrols who came to its segment, or left it, while
// it was paused and has not gone back.
func (o *flowOracle) resume(f *oracleFlow) (refused bool) {
	if f.def.SendsEmail() && o.credits == 0 {
		return true
	}
	f.status, f.resumed, f.pausedFor = automation.Live, o.now, ""
	f.pauses = append(f.pauses, [2]int64{f.paused, f.resumed})
	for p := range f.waiting {
		if s := o.segs[f.def.Trigger.SegmentID]; !o.there(p) || s.members[p] != (f.def.Trigger.Type == flows.TriggerSegmentEntered) {
			delete(f.waiting, p)
		}
	}
	return false
}

func (o *flowOracle) topUp(n int64) {
	o.credits += n
	for _, f := range o.flows {
		if !f.deleted && f.status == automation.Paused && f.pausedFor == automation.PausedForCredits {
			o.resume(f)
		}
	}
}

// goLive ends the publishing of a flow: the members of its segment are to be
// enrolled.
func (o *flowOracle) goLive(f *oracleFlow) {
	f.publishing = false
	if f.def.SendsEmail() && o.credits == 0 {
		return
	}
	f.status, f.published = automation.Live, o.now
	switch f.def.Trigger.Type {
	case flows.TriggerSegmentEntered:
		for p := range o.people {
			if o.segs[f.def.Trigger.SegmentID].members[p] {
				f.waiting[p] = true
			}
		}
	case flows.TriggerDate:
		f.scanning = true
	}
}

// catchUp enrols those who wait, and looks for the dates of everybody in a flow
// that went live: so many for each flow.
func (o *flowOracle) catchUp() {
	for _, f := range o.flows {
		n := 0
		for p := range o.people {
			if f.live() && f.waiting[p] && n < o.scan {
				n++
				delete(f.waiting, p)
				o.trigger(f, p, f.since(), nil)
				o.react()
			}
		}
		if f.live() && f.scanning {
			for range o.scan {
				if p := f.scanned; p < len(o.people) {
					f.scanned++
					if o.there(p) {
						o.setDate(f, p, o.nextDate(f, p, f.published))
					}
				}
			}
			f.scanning = f.scanned < len(o.people)
		}
	}
}

// dates notes that something of a person has changed that dates may depend on. A
// date that is due and not done stays due as long as the person has it.
func (o *flowOracle) dates(p int) {
	for _, f := range o.flows {
		if f.deleted || f.status == automation.Draft || f.def.Trigger.Type != flows.TriggerDate || f.scanning && p >= f.scanned {
			continue
		}
		if due := f.dates[p]; due != 0 && due <= o.at && o.nextDate(f, p, due-1) == due {
			continue
		}
		o.setDate(f, p, o.nextDate(f, p, o.at))
	}
}

func (o *flowOracle) setDate(f *oracleFlow, p int, due int64) {
	delete(f.dates, p)
	if due > 0 {
		f.dates[p] = due
	}
}

// nextDate is when a date trigger is due for a person after an instant, 0 for
// never.
func (o *flowOracle) nextDate(f *oracleFlow, p int, after int64) int64 {
	x, t := o.who.profiles[p], f.def.Trigger.Date
	var day time.Time
	local := func(ms int64) { day = time.UnixMilli(ms).In(t.Zone) }
	switch group, key, _ := strings.Cut(t.Field, "."); group {
	case "created_at":
		local(x.created)
	default:
		switch v := map[string]map[string]any{"attributes": x.attrs, "geo": x.geo}[group][key].(type) {
		case float64:
			local(int64(v))
		case string:
			var err error
			if day, err = time.Parse(time.DateOnly, v); err != nil {
				at, err := time.Parse(time.RFC3339Nano, v)
				if err != nil {
					return 0
				}
				local(at.UnixMilli())
			}
		default:
			return 0
		}
	}
	on := func(year int) int64 {
		d := time.Date(year, day.Month(), day.Day(), 0, 0, 0, 0, time.UTC)
		if d.Day() != day.Day() {
			d = time.Date(year, time.February, 28, 0, 0, 0, 0, time.UTC)
		}
		return naiveInstant(t.Zone, d.AddDate(0, 0, t.OffsetDays).Add(time.Duration(t.AtMinutes)*time.Minute))
	}
	if !t.Yearly {
		if due := on(day.Year()); due > after {
			return max(due, 0)
		}
		return 0
	}
	for year := day.Year(); year <= 9999; year++ {
		if due := on(year); due > after {
			return max(due, 0)
		}
	}
	return 0
}

// naiveInstant is the first instant at which clocks in a zone show the wall time
// (given as if it were UTC) or, where it is left out, a later one.
func naiveInstant(zone *time.Location, wall time.Time) int64 {
	shown := func(t time.Time) time.Time {
		_, offset := t.In(zone).Zone()
		return t.Add(time.Duration(offset) * time.Second)
	}
	best := int64(0)
	for _, around := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := wall.Add(around).In(zone).Zone()
		if t := wall.Add(-time.Duration(offset) * time.Second); shown(t).Equal(wall) && (best == 0 || t.UnixMilli() < best) {
			best = t.UnixMilli()
		}
	}
	if best != 0 {
		return best
	}
	from := wall.Add(-26 * time.Hour)
	n := sort.Search(52*3600, func(i int) bool { return !shown(from.Add(time.Duration(i) * time.Second)).Before(wall) })
	return from.Add(time.Duration(n) * time.Second).UnixMilli()
}

// naiveUntil is when a wait until a local time ends.
func naiveUntil(u *flows.Until, at int64) int64 {
	day := time.Unix(int64(u.Day)*86_400, 0).UTC()
	if u.Day >= 0 {
		return max(at, naiveInstant(u.Zone, day.Add(time.Duration(u.SecondOfDay)*time.Second)))
	}
	local := time.UnixMilli(at).In(u.Zone)
	today := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC)
	for n := -1; ; n++ {
		if t := naiveInstant(u.Zone, today.AddDate(0, 0, n).Add(time.Duration(u.SecondOfDay)*time.Second)); t > at {
			return t
		}
	}
}

// naivePick is the branch that random bits fall on.
func naivePick(branches []flows.Branch, bits uint64) int {
	total, sum := 0, 0
	for _, b := range branches {
		total += b.Weight
	}
	at := float64(bits) / (1 << 32) / (1 << 32) * float64(total)
	for i, b := range branches {
		if sum += b.Weight; at < float64(sum) {
			return i
		}
	}
	return len(branches) - 1
}

// mergeEnrolments makes a profile's enrolments in a flow those of the profile that it became part
// of. At most one continues.
func (o *flowOracle) mergeEnrolments(f *oracleFlow, winner, merged int) {
	won, lost := f.enrolments[winner], f.enrolments[merged]
	if f.waiting[merged] {
		delete(f.waiting, merged)
		if f.def.Reentry == flows.AfterExit || len(won)+len(lost) == 0 {
			f.waiting[winner] = true
		}
	}
	if len(lost) == 0 && f.dates[merged] == 0 {
		return
	}
	delete(f.dates, merged)
	w, l := f.current(winner), f.current(merged)
	stop := func(e *flows.Enrolment) {
		o.end(f, e, flows.Exited, flows.ByMerge, flows.Stopped, 0, o.now)
		f.counts.Exited++
	}
	switch {
	case w != nil && l != nil:
		// The further one continues; of two that are as far the one that began earlier.
		if len(l.Path) > len(w.Path) || len(l.Path) == len(w.Path) && l.StartedMs < w.StartedMs {
			stop(w)
		} else {
			stop(l)
		}
	case f.def.Reentry == flows.Once && w != nil && len(lost) > 0:
		stop(w)
	case f.def.Reentry == flows.Once && l != nil && len(won) > 0:
		stop(l)
	}
	all := append(slices.Clone(won), lost...)
	slices.SortStableFunc(all, func(x, y flows.Enrolment) int {
		return cmp.Or(-cmp.Compare(min(x.Status, 2), min(y.Status, 2)), cmp.Compare(x.StartedMs, y.StartedMs))
	})
	all = all[max(0, len(all)-11):]
	for i := range all {
		all[i].Number = uint32(i + 1)
	}
	delete(f.enrolments, merged)
	if len(all) > 0 {
		f.enrolments[winner] = all
	}
}

// done tells what became of an item of the outbox.
func (o *flowOracle) done(d outbox.Done) {
	o.ours = true
	it := o.outbox[d.Seq]
	if it == nil || it.Attempt != d.Attempt {
		return
	}
	if d.Result == outbox.ResultRetry {
		it.Attempt++
		it.Handed = it.Handed || d.Handed
		it.DueMs = o.now + d.DelayMs
		return
	}
	delete(o.outbox, d.Seq)
	p := o.who.profiles[it.Ordinal].winner
	if it.Kind == outbox.KindEmail && d.Result != outbox.ResultSent && !d.Handed && !it.Handed { // what may have gone out is paid
		o.credits++
	}
	if it.Kind == outbox.KindCall {
		o.answer(it, p, d.Result == outbox.ResultSent, d.Reason)
		return
	}
	if d.Result == outbox.ResultMoot {
		return
	}
	props := feature.Properties{"message_id": messages.OutboxSend(it.Origin, it.Ordinal).Text(testAccount), "flow_id": it.Flow, "step_id": it.Step}
	if it.Ref != "" {
		props["template_id"] = it.Ref
	}
	if emails := o.who.profiles[p].idents[IdentityEmail]; it.Kind == outbox.KindEmail && len(emails) > 0 {
		newest := emails[len(emails)-1]
		props["domain"] = strings.ToLower(newest[strings.LastIndex(newest, "@")+1:])
	}
	typ := it.Kind + "_failed"
	switch d.Result {
	case outbox.ResultSent:
		typ = it.Kind + "_sent"
	case outbox.ResultBounced:
		typ = it.Kind + "_bounced"
		x := o.people[p]
		x.suppressions[it.Kind] = max(x.suppressions[it.Kind], profile.SuppressionBounced)
	}
	if d.Result != outbox.ResultSent {
		props["reason"] = d.Reason
	}
	o.own(p, typ, props)
	o.evaluate(p, segment.CauseEvent)
	if d.Result != outbox.ResultSent {
		o.failed(it, p, d.Unreachable && !d.Handed && !it.Handed)
	}
}

// answer tells a flow what became of a call.
func (o *flowOracle) answer(it *oracleItem, p int, delivered bool, reason string) {
	for _, f := range o.flows {
		w := f.current(p)
		if f.id != it.Flow || f.deleted || w == nil || w.Phase != flows.Awaiting || w.Item != it.Seq {
			continue
		}
		if !delivered { // the enrolment is at the step: it is the last come to
			w.Path[len(w.Path)-1].Reason = reason
		}
		if !f.live() {
			// A paused flow advances no enrolment: this one continues here at the
			// resume.
			w.DueMs = o.now
			if w.Phase = flows.HeardFailed; delivered {
				w.Phase = flows.HeardDelivered
			}
			continue
		}
		o.answered(f, w, delivered, o.now)
		o.runEnrolment(f, p, w, o.now)
	}
}

// answered advances an enrolment after its call.
func (o *flowOracle) answered(f *oracleFlow, w *flows.Enrolment, delivered bool, at int64) {
	s := f.def.Steps[w.Step]
	w.Depth = 0
	switch {
	case delivered:
		o.leave(f, w, flows.Delivered, 0, s.Next, at)
	case s.Webhook.ExitOnFailure:
		o.end(f, w, flows.Exited, flows.ByFailure, flows.Failed, 0, at)
	default:
		o.leave(f, w, flows.Failed, 0, s.Next, at)
	}
}

// named finds a person by the first identifier that is on file, −1 for none.
func (o *flowOracle) named(c automation.Trigger) int {
	for kind, raw := range [identifier.Kinds]string{c.Email, c.ExternalID, c.Phone} {
		k := IdentityKind(kind)
		if p, ok := o.who.owner[k.String()+"\x00"+normal(k, raw)]; ok && raw != "" {
			return p
		}
	}
	return -1
}

// call enrols a person by name. It reports whether that is refused, or was done by
// the same key before.
func (o *flowOracle) call(f *oracleFlow, c automation.Trigger) (refused, repeated bool) {
	p := o.named(c)
	if f == nil || f.deleted || f.def.Trigger.Type != flows.TriggerAPI || p < 0 {
		return true, false
	}
	key := c.ID + "\x00" + c.Key
	if x, ok := o.keys[key]; ok && c.Key != "" && o.now-x.at < o.who.settings.IdempotencyMs() {
		same := o.who.profiles[x.profile].winner == p
		return !same, same
	}
	if !f.live() || f.current(p) != nil || len(f.enrolments[p]) > 0 && f.def.Reentry == flows.Once {
		return true, false
	}
	o.keys[key] = naiveKey{o.now, p}
	o.trigger(f, p, o.now, c.Data)
	return false, false
}
