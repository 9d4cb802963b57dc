package resolver

import (
	"slices"

	"github.com/musterhq/muster/query"
)

// fold merges the profile other into the document d in scratch memory, because
// an event brought them together by an identifier of the kind. A reason other
// than 0 says why they stay apart; d is then unchanged.
func (m *Machine) fold(a *account, d *document, other uint32, kind IdentityKind) (conflictReason, error) {
	o := &m.other
	if err := m.load(a, other, o); err != nil {
		return 0, err
	}
	// Two people: both hold a different identifier that ranks above the one that brings
	// them together.
	for k := range kind {
		if d.has(k) && o.has(k) && !a.haveInCommon(m, d, o, k) {
			return conflictHigherRank, nil
		}
	}
	limit := a.Settings.IdentifierCap
	if len(d.idents)+len(o.idents) > limit || len(d.merged)+len(o.merged)+1 > limit {
		return conflictTooMany, nil
	}
	geo, _, err := m.merger.merge(d.geo, o.geo, mergeFill)
	if err != nil {
		return 0, err
	}
	attributes, _, err := m.merger.merge(d.attributes, o.attributes, mergeFill)
	if err != nil {
		return 0, err
	}
	if tooLarge(geo) || tooLarge(attributes) {
		return conflictTooLarge, nil
	}

	m.losers = append(m.losers, loser{other, slices.Clone(o.idents), slices.Clone(o.merged), slices.Clone(o.lists), slices.Clone(o.devices)})
	d.geo, d.attributes = geo, attributes
	// The winner's identifiers stay the newest.
	m.idents = a.mergeIdents(m, m.idents[:0], d, o)
	d.idents = append(d.idents[:0], m.idents...)
	if len(d.firstName) == 0 {
		d.firstName = o.firstName
	}
	if len(d.lastName) == 0 {
		d.lastName = o.lastName
	}
	seen := min(d.firstSeen(), o.firstSeen())
	d.createdMs, d.earlier = min(d.createdMs, o.createdMs), earlier{}
	d.seen(seen)
	d.foldConsents(o)
	d.merged = append(d.merged, o.merged...)
	d.merged = append(d.merged, mergedProfile{other, m.logTime})
	for _, c := range o.conflicts {
		d.note(c)
	}
	m.shed = append(m.shed, d.contactExtra.fold(&o.contactExtra)...)
	for _, c := range d.consents {
		if c.status == consentUnsubscribed {
			d.unblock(c.channel, blockPending) // who refused is not waited for
		}
	}
	return 0, nil
}

// noteMerged notes what conditions look at of the profile in d as it is by the
// merge alone: with the identifiers of all, without those that the event or
// command brings. The fields that it sets are not in d yet.
func (m *Machine) noteMerged(a *account, d *document, winner uint32, lastEvent int64) error {
	if err := m.load(a, winner, &m.other); err != nil {
		return err
	}
	m.idents = m.idents[:0]
	for i := len(m.losers) - 1; i >= 0; i-- { // the newest stand last, see fold
		m.idents = append(m.idents, m.losers[i].idents...)
	}
	m.idents = append(m.idents, m.other.idents...)
	own := d.idents
	d.idents = m.idents
	d.facts(&m.merged, a.listIDs, lastEvent)
	d.idents = own
	return nil
}

// foldConsents takes over the consents of a profile that became part of this
// one. What was assumed of one does not count where the other has complained: it
// would not have been assumed of both in one.
func (d *document) foldConsents(o *document) {
	d.consents = slices.DeleteFunc(d.consents, func(c consentState) bool { return c.assumed() && o.onlyComplained(c.channel) })
	for _, c := range o.consents {
		if !c.assumed() || !d.onlyComplained(c.channel) {
			d.foldConsent(c)
		}
	}
}

// onlyComplained reports whether a complaint is all that was said of a channel.
func (d *document) onlyComplained(channel byte) bool {
	return d.blocked(channel) == blockComplained && d.consentOf(channel) == nil
}

// foldConsent takes over a channel's consent when it is newer; of two equally
// old ones the refusal stays. A refusal gives way to a newer subscription only if
// that was said: one that was assumed lifts none here either.
func (d *document) foldConsent(c consentState) {
	for i := range d.consents {
		have := &d.consents[i]
		if have.channel != c.channel {
			continue
		}
		subscribed := max(have.subscribedMs, c.subscribedMs)
		if c.over(have) {
			*have = c
		}
		have.subscribedMs = subscribed
		return
	}
	d.consents = append(d.consents, c)
}

// over reports whether c holds rather than o when two profiles become one.
func (c *consentState) over(o *consentState) bool {
	refused, other := c.status == consentUnsubscribed, o.status == consentUnsubscribed
	switch {
	case refused && o.assumed():
		return true
	case other && c.assumed():
		return false
	case c.sinceMs == o.sinceMs:
		return c.status > o.status
	}
	return c.sinceMs > o.sinceMs
}

// redirect makes the loser, and all that was merged into it before, aliases of
// the winner. The work is bounded by the cap on merged profiles.
func (m *Machine) redirect(a *account, l *loser, winner uint32, offset int64, index uint32, rows *query.Batch) {
	m.counters.Merges++
	for _, id := range l.idents {
		if id.shared {
			continue // it identifies somebody else
		}
		if h, ok := a.hasher.identityHash(id.kind, id.value, &m.normal); ok {
			a.ids.set(h, winner)
		}
	}
	alias := func(ordinal uint32) {
		a.headers.edit(ordinal).winner = winner
		rows.Aliases = append(rows.Aliases, query.Alias{Account: a.number, Offset: offset, Index: index, Ordinal: ordinal, Winner: winner})
	}
	for _, n := range l.lists {
		if members := a.set(listSet(n)); members.remove(l.ordinal) {
			members.add(winner)
		}
	}
	for _, name := range [...]string{setContacts, setDevices} {
		if s := a.sets[name]; s != nil && s.remove(l.ordinal) {
			s.add(winner)
		}
	}
	m.redirectDevices(a, l, winner)
	m.mergeFlows(a, winner, l.ordinal)
	for _, p := range l.merged {
		alias(p.ordinal)
	}
	alias(l.ordinal)
	m.removeDocument(a, l.ordinal)
}
