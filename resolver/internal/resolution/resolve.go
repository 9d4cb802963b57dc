package resolution

import (
	"slices"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/segment/engine"
)

// Result says which profile an event belongs to, and what has changed in its document,
// which is in [Work.Doc] and not stored yet, unless it is Unread.
type Result struct {
	Ordinal uint32 // profile.NoOrdinal for a new profile before Commit
	Created bool
	Changed bool          // the document must be stored
	Unread  bool          // nothing of the document has changed, and it has not been read; see Read
	Fields  engine.Fields // what conditions may look at and has changed
	// LastEvent is the time of the profile's newest event without this one (Unix ms).
	LastEvent int64
	// Merged are the profiles that become part of this one, see [Work.MergedFacts].
	Merged []Merged

	NotAdded KindSet // beyond the cap
	Dropped  KindSet // no identifiers, and left out
	Erased   KindSet // of erased persons, and left out
	Shared   KindSet // shown, but another profile's

	attach [identifier.Kinds]bool
	// attachPrevious: the previous id of an alias becomes an anonymous id of the profile.
	attachPrevious bool
}

// Resolve finds the profile of the identifiers in p, or begins a new one, and
// works out in scratch memory what becomes of its document: identifiers that are
// new to it, profiles that turn out to be the same, fields and attributes. A
// refusal has changed nothing.
func (s *State) Resolve(p *Lookup, at int64, how identrules.Identifiers) (r Result, refusal *refuse.Refusal, err error) {
	ev := &p.Event
	s.mergedProfiles, s.foreign, s.evicted = s.mergedProfiles[:0], s.foreign[:0], s.evicted[:0]
	if o := s.unchangedBy(p, at, how); o != profile.NoOrdinal {
		return Result{Ordinal: o, Unread: true, LastEvent: s.Headers.Get(o).LastEvent}, nil, nil
	}
	s.merger.Reset()
	// Which profiles hold the event's identifiers?
	raw := identrules.Of(ev)
	owner := [identifier.Kinds]uint32{profile.NoOrdinal, profile.NoOrdinal, profile.NoOrdinal, profile.NoOrdinal}
	winner := profile.NoOrdinal
	by := identifier.Kinds // the kind that led to the winner
	none := true
	calledBefore := false // the external id is known as the previous id of an alias
	for k := range identifier.Kinds {
		if len(raw[k]) == 0 {
			continue
		}
		if no := s.noIdentifier(p, k, raw[k], how); no != nil {
			if !how.Drop {
				return r, no, nil
			}
			if refusal == nil {
				refusal = no
			}
			r.Dropped.add(k)
			raw[k] = nil
			continue
		}
		o := s.owner(p, k)
		if k == identifier.Anonymous && o != profile.NoOrdinal && s.Erased(o) {
			o = profile.NoOrdinal // it was given up before its person was erased
		}
		if o == profile.NoOrdinal && s.keepsOut(k, p.hashes[k], how) {
			if none || !how.DropErased {
				return r, s.host.RefuseErased(k), nil
			}
			if !identifier.IsMasked(raw[k]) { // it came before the mark, see KeepOut of the machine
				s.host.NoteRefused()
			}
			r.Erased.add(k)
			raw[k] = nil
			continue
		}
		if o == profile.NoOrdinal && k == identifier.ExternalID && how.Calls {
			if o, err = s.calledBefore(raw[k]); err != nil {
				return r, nil, err
			}
			calledBefore = o != profile.NoOrdinal
		}
		owner[k] = o
		if winner == profile.NoOrdinal && (none || !how.FirstOnly) {
			winner, by = o, k
		}
		none = false
	}
	switch {
	case none && refusal != nil:
		return r, refusal, nil
	case none && !how.Optional:
		return r, refuse.Invalid("user", "user must carry at least one of email, external_id, phone"), nil
	}
	previous, previousKind, refusal, err := s.previousProfile(p, winner, how, &r)
	if refusal != nil || err != nil {
		return r, refusal, err
	}
	apart, err := s.blocksAlias(p, &raw, owner[identifier.Email], previous, previousKind)
	if err != nil {
		return r, nil, err
	}
	joins := previous
	if apart != 0 {
		joins = profile.NoOrdinal
	}
	if winner, by, err = s.withoutContradiction(&raw, winner, by, joins); err != nil {
		return r, nil, err
	}

	// weak: what led here is a browser's key, or what one has claimed.
	d, weak, changed := &s.Doc, ev.Public && how.Calls, false
	for winner != profile.NoOrdinal {
		if err := s.Load(winner, d); err != nil {
			return r, nil, err
		}
		if ev.Public || winner == joins {
			break
		}
		if weak, changed = s.claimedLink(d, p, &owner, winner, how); !weak {
			break
		}
		if how.Yields {
			next, nextBy, err := s.insteadOfClaim(p, &raw, &owner, d, winner, by, joins, how)
			if err != nil {
				return r, nil, err
			}
			if next != winner {
				winner, by, weak = next, nextBy, false
				continue
			}
			break
		}
		if !brings(&raw, &owner, d, by) {
			break
		}
		// The claim was wrong: the event is whose the next identifier is.
		weak = false
		if joins != profile.NoOrdinal {
			winner, by = joins, identifier.ExternalID
		} else if winner, by, err = s.nextOwner(&raw, &owner, winner, by); err != nil {
			return r, nil, err
		}
	}
	lastEvent := profile.NoEvent
	if winner != profile.NoOrdinal {
		lastEvent = s.Headers.Get(winner).LastEvent
	}
	r.Created = winner == profile.NoOrdinal
	if r.Created {
		if s.Headers.Count >= profile.MaxProfiles {
			return r, refuse.AtLimit("user", "user: this account has %d profiles, the most it can have", profile.MaxProfiles), nil
		}
		d.Reset()
		d.CreatedMs = s.AtMs
	}

	// Attach what is new and merge what belongs together, in order of rank.
	changed = changed || r.Created
	var fields engine.Fields
	past := ev.HasTime && at < lastEvent
	if previous != profile.NoOrdinal && previous != winner {
		reason := apart
		if apart == 0 {
			if reason, err = s.mergeDocuments(d, previous, identifier.ExternalID, weak, how); err != nil {
				return r, nil, err
			}
		}
		changed = true
		if reason != 0 {
			s.noteApart(d, winner, previous, previousKind, reason, p.previousAs(previousKind), &r)
		} else {
			lastEvent = max(lastEvent, s.Headers.Get(previous).LastEvent)
			past = ev.HasTime && at < lastEvent
		}
	}
	// older reports whether an identifier says less than what is shown of its kind.
	older := func(k identifier.Kind) bool {
		if !ev.Call {
			return past
		}
		ms, _ := d.Times.Of(profile.IdentifierTrait(k))
		return k != identifier.Anonymous && at < ms
	}
	claims := claiming{weak: weak, known: d.Known() > 0, created: r.Created, externalID: len(raw[identifier.ExternalID]) > 0 && owner[identifier.ExternalID] == profile.NoOrdinal}
	attach := func(k identifier.Kind) {
		if !how.Calls && d.Full(k, s.identifierCap, MaxAnonymousIDs) || k != identifier.Anonymous && d.Full(k, s.identifierCap, 0) {
			changed = d.NoteConflict(profile.Conflict{Kind: k, Reason: profile.ConflictTooMany, Other: profile.NoOrdinal, AtMs: s.AtMs, Value: raw[k]}) || changed
			s.Conflicts++
			r.NotAdded.add(k)
			return
		}
		if weak && claims.known && k != identifier.Anonymous && d.Has(k) && !(k == identifier.ExternalID && calledBefore) {
			changed = d.NoteConflict(profile.Conflict{Kind: k, Reason: profile.ConflictPublic, Other: profile.NoOrdinal, AtMs: s.AtMs, Value: raw[k]}) || changed
			s.Conflicts++
			return
		}
		if how.NoteSecond && k < by && d.Has(k) {
			d.NoteConflict(profile.Conflict{Kind: k, Reason: profile.ConflictSecond, Other: profile.NoOrdinal, AtMs: s.AtMs, Value: raw[k]})
			s.Conflicts++
		}
		s.dropShared(d, k, p.hashes[k])
		r.attach[k] = true
		changed = true
		fields |= identifierField(k)
		id := profile.Identifier{Kind: k, Value: raw[k], Claimed: claims.claim(d, k)}
		if older(k) || s.keepsAddress(d, k, p.hashes[k], how) {
			d.Identifiers = slices.Insert(d.Identifiers, 0, id)
		} else {
			d.Identifiers = append(d.Identifiers, id)
			s.saidIdentifier(d, k, at, ev.Call)
		}
	}
	for k := range identifier.Kinds {
		if len(raw[k]) == 0 {
			continue
		}
		asPrevious := calledBefore && k == identifier.ExternalID
		switch o := owner[k]; {
		case o == profile.NoOrdinal, asPrevious && (o == winner || s.isMerged(o)):
			attach(k)
		case o == winner || s.isMerged(o):
			if older(k) || s.keepsAddress(d, k, p.hashes[k], how) {
				break
			}
			renewed := s.renew(d, k, raw[k], p.hashes[k])
			if renewed {
				changed = true
				fields |= identifierField(k)
			}
			if renewed || ev.Call && (k == identifier.Email || k == identifier.Phone) {
				changed = s.saidIdentifier(d, k, at, ev.Call) || changed
			}
		case how.FirstOnly:
			if s.share(d, k, raw[k], p.hashes[k]) {
				fields |= identifierField(k)
			}
			changed = true
			r.Shared.add(k)
			s.Conflicts++
			d.NoteConflict(profile.Conflict{Kind: k, Reason: profile.ConflictHeld, Other: o, AtMs: s.AtMs, Value: raw[k]})
			s.foreign = append(s.foreign, foreignConflict{o, profile.Conflict{Kind: k, Reason: profile.ConflictHeld, Other: winner, AtMs: s.AtMs, Value: raw[k]}})
		default:
			public, claimed := ev.Public, false
			if !public {
				if err := s.Load(o, &s.other); err != nil {
					return r, nil, err
				}
				claimed, _ = s.claimedLink(&s.other, p, &owner, o, how)
				public = weak || claimed
			}
			reason := profile.ConflictHigherRank
			if how.Yields && claimed && !weak && k != identifier.Anonymous {
				reason = profile.ConflictClaimed
			} else if r.Created && how.Calls { // the event belongs to no profile that these identifiers lead to
				if public {
					reason = profile.ConflictPublic
				}
			} else if reason, err = s.mergeDocuments(d, o, k, public, how); err != nil {
				return r, nil, err
			}
			changed = true
			if reason != 0 {
				s.noteApart(d, winner, o, k, reason, raw[k], &r)
				continue
			}
			lastEvent = max(lastEvent, s.Headers.Get(o).LastEvent)
			past = ev.HasTime && at < lastEvent
			if asPrevious {
				attach(k)
			} else if !older(k) && !s.keepsAddress(d, k, p.hashes[k], how) {
				s.renew(d, k, raw[k], p.hashes[k])
				s.saidIdentifier(d, k, at, ev.Call)
			}
		}
	}

	if r.attachPrevious {
		if !how.Calls && d.Full(identifier.Anonymous, 0, MaxAnonymousIDs) {
			r.attachPrevious = false
			s.Conflicts++
			d.NoteConflict(profile.Conflict{Kind: identifier.Anonymous, Reason: profile.ConflictTooMany, Other: profile.NoOrdinal, AtMs: s.AtMs, Value: p.previousAs(identifier.Anonymous)})
		} else {
			d.Identifiers = append(d.Identifiers, profile.Identifier{Kind: identifier.Anonymous, Value: p.previousAs(identifier.Anonymous), Previous: how.Calls})
		}
		changed = true
	}
	if how.Calls {
		s.giveUpAnonymous(d)
	}
	if len(s.mergedProfiles) > 0 {
		s.host.LeaveMerged(d, s.ordinalsOf(winner))
		if err := s.noteMerged(d, winner, lastEvent); err != nil {
			return r, nil, err
		}
	}

	if how.NoteEarlier && d.Seen(at) {
		changed = true
		fields |= engine.FieldFirstSeen
	}
	if ev.Call {
		moved, facts, refusal, err := s.sayTraits(d, ev, at)
		r.Ordinal, r.Changed, r.Fields, r.LastEvent = winner, changed || moved, fields|facts, lastEvent
		r.Merged = s.mergedProfiles
		return r, refusal, err
	}
	// Fields and attributes: the latest event wins; an older one fills gaps.
	mode := profile.Overwrite
	if past {
		mode = profile.Fill
	}
	for _, f := range [...]struct {
		dst   *[]byte
		src   []byte
		field engine.Fields
	}{{&d.FirstName, ev.FirstName, engine.FieldFirstName}, {&d.LastName, ev.LastName, engine.FieldLastName}} {
		if len(f.src) > 0 && string(*f.dst) != string(f.src) && (!past || len(*f.dst) == 0) {
			*f.dst = f.src
			changed = true
			fields |= f.field
		}
	}
	for _, f := range [...]struct {
		dst   *[]byte
		src   []byte
		name  string
		field engine.Fields
	}{{&d.Geo, ev.Geo, "user.geo", engine.FieldGeo}, {&d.Attributes, ev.Attributes, "user.attributes", engine.FieldAttributes}} {
		merged, differs, err := s.merger.Merge(*f.dst, f.src, mode)
		if err != nil {
			return r, nil, err
		}
		if differs {
			if profile.TooLarge(merged) {
				return r, refuse.AtLimit(f.name, "%s would grow past %d bytes on this profile; remove keys by sending null for them", f.name, profile.MaxObjectBytes), nil
			}
			*f.dst = merged
			changed = true
			fields |= f.field
		}
	}
	if !past {
		changed = d.SaidOtherwise(len(ev.FirstName) > 0, len(ev.LastName) > 0, ev.Geo, ev.Attributes, at) || changed
	}
	r.Ordinal, r.Changed, r.Fields, r.LastEvent = winner, changed, fields, lastEvent
	r.Merged = s.mergedProfiles
	// Nothing is kept of an event with an identifier that did not count or was not the
	// profile's, of one that only claims lead to, or of a profile whose traits have times.
	if p.fingerprint != 0 && !changed && fields == 0 && r.NotAdded|r.Dropped|r.Erased|r.Shared == 0 && !weak && !past && !d.Times.Any() {
		s.unchanged.remember(winner, p.fingerprint, how)
	}
	return r, nil, nil
}

// Read reads the document of a result that is Unread.
func (s *State) Read(r *Result) error {
	if !r.Unread {
		return nil
	}
	r.Unread = false
	return s.Load(r.Ordinal, &s.Doc)
}

// Commit makes the result the state, but for the document, and sets its Ordinal. index is
// that of the event in the record of tx. The rows get an alias for each merged profile.
func (s *State) Commit(tx *feature.Tx, index uint32, p *Lookup, r *Result, rows *query.Batch) {
	if r.Created {
		r.Ordinal = s.create(tx.Record, index)
	}
	for k, on := range r.attach {
		if on {
			s.Identifiers.Set(p.hashes[k], r.Ordinal)
			if identifier.Kind(k) == identifier.Email {
				s.addCaseFold(p.Event.Email, p.hashes[k])
			}
			if s.host.Restore(&s.Doc, p.hashes[k]) {
				r.Fields |= engine.FieldConsents
			}
		}
	}
	if r.attachPrevious {
		s.Identifiers.Set(p.previous.Anonymous, r.Ordinal)
		s.host.Restore(&s.Doc, p.previous.Anonymous)
	}
	for i := range s.mergedProfiles {
		s.redirect(&s.mergedProfiles[i], query.Alias{Account: s.account.Number, Offset: tx.Offset, Index: index, Winner: r.Ordinal}, rows)
	}
	s.host.Evict(s.evicted)
	s.evicted = s.evicted[:0]
}

// Store stores the result's document, and the conflicts noted on other profiles.
func (s *State) Store(r *Result) error {
	switch {
	case r.Created:
		s.saveNew(r.Ordinal, &s.Doc)
	case r.Changed:
		s.Save(r.Ordinal, &s.Doc)
	}
	for _, c := range s.foreign {
		if s.isMerged(c.ordinal) {
			continue // another identifier of the event has joined it after all
		}
		c.Other = r.Ordinal
		if err := s.Load(c.ordinal, &s.other); err != nil {
			return err
		}
		if s.other.NoteConflict(c.Conflict) {
			s.Save(c.ordinal, &s.other)
		}
	}
	return nil
}

// Empty refuses an identifier of which nothing is left.
func Empty(k identifier.Kind) *refuse.Refusal {
	if k == identifier.Phone {
		return refuse.Invalid("user.phone", "user.phone has no digits; send the number with its country code, such as +4930123456")
	}
	return refuse.Invalid("user."+k.String(), "user.%s is blank; leave it out", k)
}

// isMerged reports whether the record that is resolved merges a profile into another.
func (s *State) isMerged(ordinal uint32) bool {
	for i := range s.mergedProfiles {
		if s.mergedProfiles[i].Ordinal == ordinal {
			return true
		}
	}
	return false
}
