package resolution

import (
	"slices"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment"
)

// Merged is a profile that becomes part of another.
type Merged struct {
	Ordinal uint32
	Lists   []uint32 // numbers of those that it was on
	Devices []profile.Device

	identifiers []profile.Identifier
	merged      []profile.MergedProfile // into it, before
}

// mergeDocuments merges the profile other into the document d in scratch memory, because
// an event brought them together by an identifier of the kind. A reason other
// than 0 says why they stay apart; d is then unchanged. public says that everybody may
// have sent the event.
func (s *State) mergeDocuments(d *profile.Document, other uint32, kind identifier.Kind, public bool, how identrules.Identifiers) (profile.ConflictReason, error) {
	o := &s.other
	if err := s.Load(other, o); err != nil {
		return 0, err
	}
	// Two people: both hold a different identifier that ranks above the one that brings
	// them together. That of a device says so little that it counts for nothing where both
	// show the same value, too: a switchboard's number.
	for k := range kind {
		if d.Has(k) && o.Has(k) && (kind == identifier.Anonymous || !s.haveInCommon(d, o, k)) {
			return profile.ConflictHigherRank, nil
		}
	}
	if public && d.Known() > 0 && o.Known() > 0 {
		return profile.ConflictPublic, nil
	}
	if how.Yields && d.Known() > 0 && o.Known() > 0 && (s.inDoubt(d, o) || s.inDoubt(o, d)) {
		return profile.ConflictInDoubt, nil
	}
	if !fits(d, o, s.identifierCap, how) {
		return profile.ConflictTooMany, nil
	}
	geo, err := s.mergeTraits(d, o, d.Geo, o.Geo, profile.TraitGeo)
	if err != nil {
		return 0, err
	}
	attributes, err := s.mergeTraits(d, o, d.Attributes, o.Attributes, profile.TraitAttribute)
	if err != nil {
		return 0, err
	}
	if profile.TooLarge(geo) || profile.TooLarge(attributes) {
		return profile.ConflictTooLarge, nil
	}

	s.mergedProfiles = append(s.mergedProfiles, Merged{Ordinal: other, Lists: slices.Clone(o.Lists), Devices: slices.Clone(o.Devices), identifiers: slices.Clone(o.Identifiers), merged: slices.Clone(o.Merged)})
	d.Geo, d.Attributes = geo, attributes
	// The winner's identifiers stay the newest, but for an address that only the other
	// profile has subscribed: its consent becomes the winner's. Where neither is subscribed
	// and calls of SDKs gave both, the latest is the newest.
	var consented [identifier.Kinds]bool
	for k := range consented {
		kind := identifier.Kind(k)
		consented[k] = how.KeepMerged && subscribedAddress(o, kind) && !subscribedAddress(d, kind)
		if !consented[k] && kind != identifier.Anonymous && !subscribedAddress(d, kind) {
			consented[k] = d.Has(kind) && o.Has(kind) && d.Times.Later(&o.Times, profile.IdentifierTrait(kind), true, true)
		}
	}
	if public && how.Calls {
		claimAnonymous(o)
	}
	s.identifiers = s.mergeIdents(s.identifiers[:0], d, o)
	d.Identifiers = append(d.Identifiers[:0], s.identifiers...)
	for k, on := range consented {
		if on {
			s.bringForward(d, identifier.Kind(k), o.Newest(identifier.Kind(k)))
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
	d.Merged = append(d.Merged, profile.MergedProfile{Ordinal: other, AtMs: s.AtMs, Anonymous: o.IsAnonymous()})
	for _, c := range o.Conflicts {
		d.NoteConflict(c)
	}
	// Lists, suppressions and devices of the document; what features have moves in redirect.
	s.evicted = append(s.evicted, d.Contact.Merge(&o.Contact, s.Rules)...)
	for _, c := range d.Consents {
		if c.Status == profile.ConsentUnsubscribed {
			d.Unsuppress(c.Channel, profile.SuppressionPending) // who refused is not waited for
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
		return known <= limit && merged <= limit && all-merged <= MaxMergedAnonymous
	}
	return known <= limit && merged <= limit && anonymous <= MaxAnonymousIDs
}

// noteApart notes on both profiles why they did not become one. That of the other one is
// stored with the resolved document.
func (s *State) noteApart(d *profile.Document, winner, other uint32, kind identifier.Kind, reason profile.ConflictReason, value []byte, r *Result) {
	s.Conflicts++
	if reason == profile.ConflictTooMany {
		r.NotAdded.add(kind)
	}
	d.NoteConflict(profile.Conflict{Kind: kind, Reason: reason, Other: other, AtMs: s.AtMs, Value: value})
	if reason == profile.ConflictClaimed {
		reason = profile.ConflictPublic // the other one is whose claim it is
	}
	s.foreign = append(s.foreign, foreignConflict{other, profile.Conflict{Kind: kind, Reason: reason, Other: winner, AtMs: s.AtMs, Value: value}})
}

// bringForward makes an identifier that a document has the newest of its kind.
func (s *State) bringForward(d *profile.Document, kind identifier.Kind, value []byte) {
	h, ok := s.Hasher.HashIdentifier(kind, value, &s.normal)
	if !ok {
		return
	}
	if i := s.shown(d, kind, h); i >= 0 {
		x := d.Identifiers[i]
		d.Identifiers = append(slices.Delete(d.Identifiers, i, i+1), x)
	}
}

// ordinalsOf are the profile that an event is of and those that became part of it.
func (s *State) ordinalsOf(winner uint32) []uint32 {
	out := []uint32{winner}
	for i := range s.mergedProfiles {
		out = append(out, s.mergedProfiles[i].Ordinal)
	}
	return out
}

// MergedFacts are what conditions look at of the profile of the latest result, as it is by
// the merge alone. They are valid where the result has merged profiles.
func (w *Work) MergedFacts() *segment.Facts { return &w.merged }

// noteMerged notes what conditions look at of the profile in d as it is by the
// merge alone: with the identifiers of all, without those that the event or
// command brings. The fields that it sets are not in d yet.
func (s *State) noteMerged(d *profile.Document, winner uint32, lastEvent int64) error {
	if winner == profile.NoOrdinal {
		s.other.Reset() // the event made it
	} else if err := s.Load(winner, &s.other); err != nil {
		return err
	}
	s.identifiers = s.identifiers[:0]
	for i := len(s.mergedProfiles) - 1; i >= 0; i-- { // the newest stand last, see mergeDocuments
		s.identifiers = append(s.identifiers, s.mergedProfiles[i].identifiers...)
	}
	s.identifiers = append(s.identifiers, s.other.Identifiers...)
	own := d.Identifiers
	d.Identifiers = s.identifiers
	d.FillFacts(&s.merged, s.host.ListIDs(), lastEvent)
	d.Identifiers = own
	return nil
}

// redirect makes the merged profile, and all that was merged into it before, aliases of
// the winner. The alias given lacks the ordinal. The work is bounded by the cap on merged
// profiles.
func (s *State) redirect(l *Merged, alias query.Alias, rows *query.Batch) {
	s.Merges++
	for _, id := range l.identifiers {
		if id.Shared {
			continue // it identifies another profile
		}
		if h, ok := s.Hasher.HashIdentifier(id.Kind, id.Value, &s.normal); ok {
			s.Identifiers.Set(h, alias.Winner)
		}
	}
	add := func(ordinal uint32) {
		s.Headers.Edit(ordinal).Winner = alias.Winner
		alias.Ordinal = ordinal
		rows.Aliases = append(rows.Aliases, alias)
	}
	s.host.Merge(alias.Winner, l)
	for _, p := range l.merged {
		add(p.Ordinal)
	}
	add(l.Ordinal)
	s.Remove(l.Ordinal)
}
