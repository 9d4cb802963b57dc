package resolver

import (
	"slices"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
)

// fold merges the profile other into the document d in scratch memory, because
// an event brought them together by an identifier of the kind. A reason other
// than 0 says why they stay apart; d is then unchanged. public says that everybody may
// have sent the event.
func (m *Machine) fold(a *account, d *profile.Document, other uint32, kind IdentityKind, public bool, how identrules.Identifiers) (profile.ConflictReason, error) {
	o := &m.other
	if err := m.load(a, other, o); err != nil {
		return 0, err
	}
	// Two people: both hold a different identifier that ranks above the one that brings
	// them together. That of a device says so little that it counts for nothing where both
	// show the same value, too: a switchboard's number.
	for k := range kind {
		if d.Has(k) && o.Has(k) && (kind == IdentityAnonymous || !a.haveInCommon(m, d, o, k)) {
			return profile.ConflictHigherRank, nil
		}
	}
	if public && d.Known() > 0 && o.Known() > 0 {
		return profile.ConflictPublic, nil
	}
	if how.Yields && d.Known() > 0 && o.Known() > 0 && (a.inDoubt(m, d, o) || a.inDoubt(m, o, d)) {
		return profile.ConflictInDoubt, nil
	}
	if !fits(d, o, a.Settings.IdentifierCap, how) {
		return profile.ConflictTooMany, nil
	}
	geo, err := m.mergeTraits(d, o, d.Geo, o.Geo, profile.TraitGeo)
	if err != nil {
		return 0, err
	}
	attributes, err := m.mergeTraits(d, o, d.Attributes, o.Attributes, profile.TraitAttribute)
	if err != nil {
		return 0, err
	}
	if profile.TooLarge(geo) || profile.TooLarge(attributes) {
		return profile.ConflictTooLarge, nil
	}

	m.mergedProfiles = append(m.mergedProfiles, loser{other, slices.Clone(o.Identifiers), slices.Clone(o.Merged), slices.Clone(o.Lists), slices.Clone(o.Devices)})
	d.Geo, d.Attributes = geo, attributes
	// The winner's identifiers stay the newest, but for an address that only the other
	// profile has subscribed: its consent becomes the winner's. Where neither is subscribed
	// and calls of SDKs gave both, the latest is the newest.
	var consented [identifier.Kinds]bool
	for k := range consented {
		kind := IdentityKind(k)
		consented[k] = how.KeepMerged && subscribedAddress(o, kind) && !subscribedAddress(d, kind)
		if !consented[k] && kind != IdentityAnonymous && !subscribedAddress(d, kind) {
			consented[k] = d.Has(kind) && o.Has(kind) && d.Times.Later(&o.Times, profile.IdentifierTrait(kind), true, true)
		}
	}
	if public && how.Calls {
		claimAnonymous(o)
	}
	m.idents = a.mergeIdents(m, m.idents[:0], d, o)
	d.Identifiers = append(d.Identifiers[:0], m.idents...)
	for k, on := range consented {
		if on {
			a.bringForward(m, d, IdentityKind(k), o.Newest(IdentityKind(k)))
		}
	}
	if d.Times.Later(&o.Times, profile.TraitKey(profile.TraitFirstName, nil), len(d.FirstName) > 0, len(o.FirstName) > 0) {
		d.FirstName = o.FirstName
	}
	if d.Times.Later(&o.Times, profile.TraitKey(profile.TraitLastName, nil), len(d.LastName) > 0, len(o.LastName) > 0) {
		d.LastName = o.LastName
	}
	d.Times.Merge(&o.Times)
	d.GivenUp = append(d.GivenUp, o.GivenUp...)
	d.MergeTimes(o)
	d.MergeConsents(o)
	d.Merged = append(d.Merged, o.Merged...)
	d.Merged = append(d.Merged, profile.MergedProfile{Ordinal: other, AtMs: m.logTime, Anonymous: o.IsAnonymous()})
	for _, c := range o.Conflicts {
		d.NoteConflict(c)
	}
	m.shed = append(m.shed, d.Contact.Merge(&o.Contact)...)
	for _, c := range d.Consents {
		if c.Status == profile.ConsentUnsubscribed {
			d.Unblock(c.Channel, profile.BlockPending) // who refused is not waited for
		}
	}
	return 0, nil
}

// fits reports whether two profiles may become one. Anonymous ids, and profiles that had
// nothing else, have a limit of their own: devices must not use up what a person may have.
// Each of those profiles brought an anonymous id at least.
func fits(d, o *profile.Document, limit int, how identrules.Identifiers) bool {
	known, merged := d.Known()+o.Known(), d.MergedKnown()+o.MergedKnown()
	if !o.IsAnonymous() {
		merged++
	}
	anonymous := len(d.Identifiers) + len(o.Identifiers) - known
	if how.Calls { // the oldest anonymous ids make room, but profiles stay known
		all := len(d.Merged) + len(o.Merged) + 1
		return known <= limit && merged <= limit && all-merged <= maxMergedAnonymous
	}
	return known <= limit && merged <= limit && anonymous <= maxAnonymousIDs
}

// noteApart notes on both profiles why they did not become one. That of the other one is
// stored with the resolved document.
func (m *Machine) noteApart(d *profile.Document, winner, other uint32, kind IdentityKind, reason profile.ConflictReason, value []byte, r *resolved) {
	m.counters.Conflicts++
	if reason == profile.ConflictTooMany {
		r.notAdded.add(kind)
	}
	d.NoteConflict(profile.Conflict{Kind: kind, Reason: reason, Other: other, AtMs: m.logTime, Value: value})
	if reason == profile.ConflictClaimed {
		reason = profile.ConflictPublic // the other one is whose claim it is
	}
	m.strange = append(m.strange, strangeConflict{other, profile.Conflict{Kind: kind, Reason: reason, Other: winner, AtMs: m.logTime, Value: value}})
}

// bringForward makes an identifier that a document has the newest of its kind.
func (a *account) bringForward(m *Machine, d *profile.Document, kind IdentityKind, value []byte) {
	h, ok := a.hasher.HashIdentifier(kind, value, &m.normal)
	if !ok {
		return
	}
	if i := a.shown(m, d, kind, h); i >= 0 {
		x := d.Identifiers[i]
		d.Identifiers = append(slices.Delete(d.Identifiers, i, i+1), x)
	}
}

// noteMerged notes what conditions look at of the profile in d as it is by the
// merge alone: with the identifiers of all, without those that the event or
// command brings. The fields that it sets are not in d yet.
func (m *Machine) noteMerged(a *account, d *profile.Document, winner uint32, lastEvent int64) error {
	if winner == profile.NoOrdinal {
		m.other.Reset() // the event made it
	} else if err := m.load(a, winner, &m.other); err != nil {
		return err
	}
	m.idents = m.idents[:0]
	for i := len(m.mergedProfiles) - 1; i >= 0; i-- { // the newest stand last, see fold
		m.idents = append(m.idents, m.mergedProfiles[i].idents...)
	}
	m.idents = append(m.idents, m.other.Identifiers...)
	own := d.Identifiers
	d.Identifiers = m.idents
	d.FillFacts(&m.merged, a.contacts.ListIDs(), lastEvent)
	d.Identifiers = own
	return nil
}

// redirect makes the loser, and all that was merged into it before, aliases of
// the winner. The work is bounded by the cap on merged profiles.
func (m *Machine) redirect(a *account, l *loser, winner uint32, offset int64, index uint32, rows *query.Batch) {
	m.counters.Merges++
	for _, id := range l.idents {
		if id.Shared {
			continue // it identifies somebody else
		}
		if h, ok := a.hasher.HashIdentifier(id.Kind, id.Value, &m.normal); ok {
			a.ids.Set(h, winner)
		}
	}
	alias := func(ordinal uint32) {
		a.headers.Edit(ordinal).Winner = winner
		rows.Aliases = append(rows.Aliases, query.Alias{Account: a.number, Offset: offset, Index: index, Ordinal: ordinal, Winner: winner})
	}
	a.contacts.Merge(winner, l.ordinal, l.lists, l.devices)
	for _, f := range a.features() {
		if g, ok := f.(feature.Merger); ok {
			g.Merge(m.tx(a), winner, l.ordinal)
		}
	}
	for _, p := range l.merged {
		alias(p.Ordinal)
	}
	alias(l.ordinal)
	m.removeDocument(a, l.ordinal)
}
