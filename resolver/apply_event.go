package resolver

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/reach"
	"github.com/musterhq/muster/segment/engine"
)

// applyEvent resolves one event to a profile and records it. It first works
// everything out in scratch memory and then commits: a refused event changes
// nothing.
func (m *Machine) applyEvent(a *account, p *prepared, rules identrules.Event, record eventlog.RecordID, offset int64, index uint32, rows *query.Batch, out *EventOutcome) error {
	ev := &p.ev
	refuse := func(r *Refusal) error {
		out.Status, out.Refusal = EventRefused, r
		return nil
	}
	if ev.Refused {
		return refuse(erasure.Refuse(min(IdentityKind(ev.RefusedKind), identifier.Kinds-1)))
	}
	at := m.logTime
	if ev.HasTime {
		if at = ev.TimeMs; at > m.logTime {
			return refuse(invalid("timestamp", "timestamp must not be in the future"))
		}
		if rules.Aged() && at < m.logTime-a.Settings.maxEventAgeMs() {
			return refuse(invalid("timestamp", "timestamp is more than %d hours ago, the most that max_event_age_hours of the settings allows; bring in older events by an import, and check the unit (Unix milliseconds)", a.Settings.Shown().MaxEventAgeHours))
		}
	}

	if len(ev.IdempotencyKey) > 0 {
		v, ok, err := m.keys.Get(p.key)
		if err != nil {
			return err
		}
		if ok && v.AtMs > a.keysFromMs(m.logTime) {
			out.Status, out.Profile = EventDuplicate, a.headers.Get(v.Ordinal).ID
			out.Dropped, out.Erased = m.leftOut(a, p, rules.Identifiers())
			out.Foreign = m.foreign(a, p, a.root(v.Ordinal))
			out.NotAdded, err = m.notAddedBefore(a, p, a.root(v.Ordinal))
			return err
		}
	}
	if len(a.types) >= maxEventTypes && a.types[string(ev.Type)] == nil {
		return refuse(atLimit("event_type", "event_type: this account has %d event types, the most it can have; use one of them and put the difference into properties", maxEventTypes))
	}

	if rules.Version >= identrules.VersionCalls && a.publicTypeFull(ev) {
		return refuse(&Refusal{Code: CodePublicTypes, Field: "event_type", Message: fmt.Sprintf("event_type: browser keys have brought %d event types that no server sends, the most that they may; use one of them and put the difference into properties, or send the type from a server once", maxPublicTypes)})
	}

	r, refusal, err := m.resolve(a, p, at, rules.Identifiers())
	if err != nil {
		return err
	}
	if refusal != nil {
		return refuse(refusal)
	}
	if at > r.lastEvent {
		r.lastEvent = at
		r.fields |= engine.FieldLastEvent
	}
	winner := m.commit(a, p, &r, record, offset, index, rows)
	m.trackProfile(a, &r)
	if rules.Sent() {
		a.engine.Sent(winner, at, ev.Type, ev.Properties)
	} else {
		a.engine.Event(winner, at, ev.Type, ev.Properties)
	}
	a.engine.Settle(winner)
	h := a.headers.Edit(winner)
	h.LastEvent = r.lastEvent
	out.Status, out.Profile, out.NotAdded, out.Dropped, out.Erased = EventAccepted, h.ID, r.notAdded, r.dropped, r.erased
	if err := m.storeResolved(a, &r); err != nil {
		return err
	}
	if len(ev.IdempotencyKey) > 0 {
		m.keys.Put(p.key, dedup.Answer{AtMs: m.logTime, Ordinal: winner})
	}
	typ := a.countSent(ev, at, rules)
	if typ.listener != nil {
		typ.listener.OnEvent(m.tx(a), winner, at)
	}
	if !ev.Redacted { // history and catalog are rid of those
		m.look(a, typ, winner, at, ev.Properties)
		key := ev.IdempotencyKey
		if rules.Sent() {
			m.sentKey = query.AppendSentKey(m.sentKey[:0], ev.Type, key)
			key = m.sentKey
		}
		appendRow(rows, a.number, offset, index, winner, at, ev, key)
	}
	if stale := ev.HasTime && rules.Aged() && at <= m.logTime-a.Settings.flowEventAgeMs(); a.flows.Made() {
		// Each event has its effect before the next.
		if !stale {
			a.flows.Event(winner, ev.Type, ev.Properties)
		}
		m.react()
	}
	return nil
}

// resolved says which profile identifiers lead to, and what has changed in its
// document, which is in [Machine.doc] and not stored yet.
type resolved struct {
	ordinal   uint32 // profile.NoOrdinal for a new profile
	created   bool
	changed   bool          // the document must be stored
	fields    engine.Fields // what conditions may look at and has changed
	lastEvent int64
	attach    [identifier.Kinds]bool
	// attachPrevious: the previous id of an alias becomes an anonymous id of the profile.
	attachPrevious bool
	notAdded       KindSet // beyond the cap
	dropped        KindSet // no identifiers, and left out
	erased         KindSet // of erased persons, and left out
	shared         KindSet // shown, but another profile's
}

// resolve finds the profile of the identifiers in p, or begins a new one, and
// works out in scratch memory what becomes of its document: identifiers that are
// new to it, profiles that turn out to be the same, fields and attributes. A
// refusal has changed nothing.
func (m *Machine) resolve(a *account, p *prepared, at int64, how identrules.Identifiers) (r resolved, refusal *Refusal, err error) {
	ev := &p.ev
	m.merger.Reset()
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
		if no := m.noIdentifier(a, p, k, raw[k], how); no != nil {
			if !how.Drop {
				return r, no, nil
			}
			if refusal == nil {
				refusal = no
			}
			r.dropped.add(k)
			raw[k] = nil
			continue
		}
		o := p.owner[k]
		if p.version != a.ids.Version {
			o = a.ids.Owner(p.hashes[k])
		}
		if k == IdentityAnonymous && o != profile.NoOrdinal && a.gone(o) {
			o = profile.NoOrdinal // it was given up before its person was erased
		}
		if o == profile.NoOrdinal && a.keepsOut(k, p.hashes[k], how) {
			if none || !how.DropErased {
				return r, a.refuseErased(k), nil
			}
			if !identifier.IsMasked(raw[k]) { // it came before the mark, see [partition.keepOut]
				a.erasure.NoteRefused()
			}
			r.erased.add(k)
			raw[k] = nil
			continue
		}
		if o == profile.NoOrdinal && k == IdentityExternalID && how.Calls {
			if o, err = m.calledBefore(a, raw[k]); err != nil {
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
		return r, invalid("user", "user must carry at least one of email, external_id, phone"), nil
	}
	previous, previousKind, refusal, err := m.previousProfile(a, p, winner, how, &r)
	if refusal != nil || err != nil {
		return r, refusal, err
	}
	apart, err := m.blocksAlias(a, p, &raw, owner[IdentityEmail], previous, previousKind)
	if err != nil {
		return r, nil, err
	}
	joins := previous
	if apart != 0 {
		joins = profile.NoOrdinal
	}
	if winner, by, err = m.withoutContradiction(a, &raw, winner, by, joins); err != nil {
		return r, nil, err
	}

	// weak: what led here is a browser's key, or what one has claimed.
	d, weak, changed := &m.doc, ev.Public && how.Calls, false
	for winner != profile.NoOrdinal {
		if err := m.load(a, winner, d); err != nil {
			return r, nil, err
		}
		if ev.Public || winner == joins {
			break
		}
		if weak, changed = m.claimedLink(a, d, p, &owner, winner, how); !weak {
			break
		}
		if how.Yields {
			next, nextBy, err := m.insteadOfClaim(a, p, &raw, &owner, d, winner, by, joins, how)
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
			winner, by = joins, IdentityExternalID
		} else if winner, by, err = m.nextOwner(a, &raw, &owner, winner, by); err != nil {
			return r, nil, err
		}
	}
	lastEvent := profile.NoEvent
	if winner != profile.NoOrdinal {
		lastEvent = a.headers.Get(winner).LastEvent
	}
	r.created = winner == profile.NoOrdinal
	if r.created {
		if a.headers.Count >= profile.MaxProfiles {
			return r, atLimit("user", "user: this account has %d profiles, the most it can have", profile.MaxProfiles), nil
		}
		d.Reset()
		d.CreatedMs = m.logTime
	}

	// Attach what is new and merge what belongs together, in order of rank.
	changed = changed || r.created
	var fields engine.Fields
	m.mergedProfiles, m.strange, m.shed = m.mergedProfiles[:0], m.strange[:0], m.shed[:0]
	past := ev.HasTime && at < lastEvent
	if previous != profile.NoOrdinal && previous != winner {
		reason := apart
		if apart == 0 {
			if reason, err = m.fold(a, d, previous, IdentityExternalID, weak, how); err != nil {
				return r, nil, err
			}
		}
		changed = true
		if reason != 0 {
			m.noteApart(d, winner, previous, previousKind, reason, p.previousAs(previousKind), &r)
		} else {
			lastEvent = max(lastEvent, a.headers.Get(previous).LastEvent)
			past = ev.HasTime && at < lastEvent
		}
	}
	// older reports whether an identifier says less than what is shown of its kind.
	older := func(k IdentityKind) bool {
		if !ev.Call {
			return past
		}
		ms, _ := d.Times.Of(profile.IdentifierTrait(k))
		return k != IdentityAnonymous && at < ms
	}
	claims := claiming{weak: weak, known: d.Known() > 0, created: r.created, externalID: len(raw[IdentityExternalID]) > 0 && owner[IdentityExternalID] == profile.NoOrdinal}
	attach := func(k IdentityKind) {
		if !how.Calls && d.Full(k, a.Settings.IdentifierCap, maxAnonymousIDs) || k != IdentityAnonymous && d.Full(k, a.Settings.IdentifierCap, 0) {
			changed = d.NoteConflict(profile.Conflict{Kind: k, Reason: profile.ConflictTooMany, Other: profile.NoOrdinal, AtMs: m.logTime, Value: raw[k]}) || changed
			m.counters.Conflicts++
			r.notAdded.add(k)
			return
		}
		if weak && claims.known && k != IdentityAnonymous && d.Has(k) && !(k == IdentityExternalID && calledBefore) {
			changed = d.NoteConflict(profile.Conflict{Kind: k, Reason: profile.ConflictPublic, Other: profile.NoOrdinal, AtMs: m.logTime, Value: raw[k]}) || changed
			m.counters.Conflicts++
			return
		}
		if how.NoteSecond && k < by && d.Has(k) {
			d.NoteConflict(profile.Conflict{Kind: k, Reason: profile.ConflictSecond, Other: profile.NoOrdinal, AtMs: m.logTime, Value: raw[k]})
			m.counters.Conflicts++
		}
		a.dropShared(m, d, k, p.hashes[k])
		r.attach[k] = true
		changed = true
		fields |= identifierField(k)
		id := profile.Identifier{Kind: k, Value: raw[k], Claimed: claims.claim(d, k)}
		if older(k) || m.keepsAddress(a, d, k, p.hashes[k], how) {
			d.Identifiers = slices.Insert(d.Identifiers, 0, id)
		} else {
			d.Identifiers = append(d.Identifiers, id)
			m.saidIdentifier(d, k, at, ev.Call)
		}
	}
	for k := range identifier.Kinds {
		if len(raw[k]) == 0 {
			continue
		}
		asPrevious := calledBefore && k == IdentityExternalID
		switch o := owner[k]; {
		case o == profile.NoOrdinal, asPrevious && (o == winner || m.losing(o)):
			attach(k)
		case o == winner || m.losing(o):
			if older(k) || m.keepsAddress(a, d, k, p.hashes[k], how) {
				break
			}
			renewed := m.renew(a, d, k, raw[k], p.hashes[k])
			if renewed {
				changed = true
				fields |= identifierField(k)
			}
			if renewed || ev.Call && (k == IdentityEmail || k == IdentityPhone) {
				changed = m.saidIdentifier(d, k, at, ev.Call) || changed
			}
		case how.FirstOnly:
			if a.share(m, d, k, raw[k], p.hashes[k]) {
				fields |= identifierField(k)
			}
			changed = true
			r.shared.add(k)
			m.counters.Conflicts++
			d.NoteConflict(profile.Conflict{Kind: k, Reason: profile.ConflictHeld, Other: o, AtMs: m.logTime, Value: raw[k]})
			m.strange = append(m.strange, strangeConflict{o, profile.Conflict{Kind: k, Reason: profile.ConflictHeld, Other: winner, AtMs: m.logTime, Value: raw[k]}})
		default:
			public, claimed := ev.Public, false
			if !public {
				if err := m.load(a, o, &m.other); err != nil {
					return r, nil, err
				}
				claimed, _ = m.claimedLink(a, &m.other, p, &owner, o, how)
				public = weak || claimed
			}
			reason := profile.ConflictHigherRank
			if how.Yields && claimed && !weak && k != IdentityAnonymous {
				reason = profile.ConflictClaimed
			} else if r.created && how.Calls { // the event belongs to no profile that these identifiers lead to
				if public {
					reason = profile.ConflictPublic
				}
			} else if reason, err = m.fold(a, d, o, k, public, how); err != nil {
				return r, nil, err
			}
			changed = true
			if reason != 0 {
				m.noteApart(d, winner, o, k, reason, raw[k], &r)
				continue
			}
			lastEvent = max(lastEvent, a.headers.Get(o).LastEvent)
			past = ev.HasTime && at < lastEvent
			if asPrevious {
				attach(k)
			} else if !older(k) && !m.keepsAddress(a, d, k, p.hashes[k], how) {
				m.renew(a, d, k, raw[k], p.hashes[k])
				m.saidIdentifier(d, k, at, ev.Call)
			}
		}
	}

	if r.attachPrevious {
		if !how.Calls && d.Full(IdentityAnonymous, 0, maxAnonymousIDs) {
			r.attachPrevious = false
			m.counters.Conflicts++
			d.NoteConflict(profile.Conflict{Kind: IdentityAnonymous, Reason: profile.ConflictTooMany, Other: profile.NoOrdinal, AtMs: m.logTime, Value: p.previousAs(IdentityAnonymous)})
		} else {
			d.Identifiers = append(d.Identifiers, profile.Identifier{Kind: IdentityAnonymous, Value: p.previousAs(IdentityAnonymous), Previous: how.Calls})
		}
		changed = true
	}
	if how.Calls {
		a.giveUpAnonymous(m, d)
	}
	if len(m.mergedProfiles) > 0 {
		if err := m.noteMerged(a, d, winner, lastEvent); err != nil {
			return r, nil, err
		}
	}

	if how.NoteEarlier && d.Seen(at) {
		changed = true
		fields |= engine.FieldFirstSeen
	}
	if ev.Call {
		moved, facts, refusal, err := m.sayTraits(d, ev, at)
		r.ordinal, r.changed, r.fields, r.lastEvent = winner, changed || moved, fields|facts, lastEvent
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
		merged, differs, err := m.merger.Merge(*f.dst, f.src, mode)
		if err != nil {
			return r, nil, err
		}
		if differs {
			if profile.TooLarge(merged) {
				return r, atLimit(f.name, "%s would grow past %d bytes on this profile; remove keys by sending null for them", f.name, profile.MaxObjectBytes), nil
			}
			*f.dst = merged
			changed = true
			fields |= f.field
		}
	}
	if !past {
		changed = d.SaidOtherwise(len(ev.FirstName) > 0, len(ev.LastName) > 0, ev.Geo, ev.Attributes, at) || changed
	}
	r.ordinal, r.changed, r.fields, r.lastEvent = winner, changed, fields, lastEvent
	return r, nil, nil
}

// commit makes what resolve worked out the state, but for the document. It
// returns the profile's ordinal.
func (m *Machine) commit(a *account, p *prepared, r *resolved, record eventlog.RecordID, offset int64, index uint32, rows *query.Batch) uint32 {
	if r.created {
		r.ordinal = m.create(a, record, index)
	}
	for k, on := range r.attach {
		if on {
			a.ids.Set(p.hashes[k], r.ordinal)
			if IdentityKind(k) == IdentityEmail {
				m.addCaseFold(a, p.ev.Email, p.hashes[k])
			}
			if a.erasure.Restore(m.tx(a), &m.doc, p.hashes[k]) {
				r.fields |= engine.FieldConsents
			}
		}
	}
	if r.attachPrevious {
		a.ids.Set(p.previous.Anonymous, r.ordinal)
		a.erasure.Restore(m.tx(a), &m.doc, p.previous.Anonymous)
	}
	for i := range m.mergedProfiles {
		m.redirect(a, &m.mergedProfiles[i], r.ordinal, offset, index, rows)
	}
	a.contacts.Evict(m.shed)
	m.shed = m.shed[:0]
	return r.ordinal
}

// storeResolved stores the resolved document, and the conflicts noted on others.
func (m *Machine) storeResolved(a *account, r *resolved) error {
	switch {
	case r.created:
		m.saveNew(a, r.ordinal, &m.doc)
	case r.changed:
		m.save(a, r.ordinal, &m.doc)
	}
	for _, s := range m.strange {
		if m.losing(s.ordinal) {
			continue // another identifier of the event has joined it after all
		}
		s.Other = r.ordinal
		if err := m.load(a, s.ordinal, &m.other); err != nil {
			return err
		}
		if m.other.NoteConflict(s.Conflict) {
			m.save(a, s.ordinal, &m.other)
		}
	}
	return nil
}

// subscribedAddress reports whether a profile has an e-mail or phone and is subscribed to a
// channel that goes there.
func subscribedAddress(d *profile.Document, k IdentityKind) bool {
	return d.Has(k) && slices.ContainsFunc(reach.AddressedBy[k], d.Subscribed)
}

// keepsAddress reports whether an identifier is another e-mail or phone than the one that
// a profile has subscribed, which stays its newest.
func (m *Machine) keepsAddress(a *account, d *profile.Document, k IdentityKind, h identifier.Hash, how identrules.Identifiers) bool {
	if !how.KeepAddress || !subscribedAddress(d, k) {
		return false
	}
	have, _ := a.hasher.HashIdentifier(k, d.Newest(k), &m.normal)
	return have != h
}

func emptyIdentifier(k IdentityKind) *Refusal {
	if k == IdentityPhone {
		return invalid("user.phone", "user.phone has no digits; send the number with its country code, such as +4930123456")
	}
	return invalid("user."+k.String(), "user.%s is blank; leave it out", k)
}

func appendRow(rows *query.Batch, account uint64, offset int64, index, ordinal uint32, atMs int64, ev *eventlog.Event, key []byte) {
	rows.Account = append(rows.Account, account)
	rows.Offset = append(rows.Offset, offset)
	rows.Index = append(rows.Index, index)
	rows.Ordinal = append(rows.Ordinal, ordinal)
	rows.TimeMs = append(rows.TimeMs, atMs)
	rows.EventType.Append(ev.Type)
	rows.Properties.Append(ev.Properties)
	rows.IdempotencyKey.Append(key)
}

// create makes the header of a new profile. Its id derives from the record and
// the index of the event in it; the last four bytes carry the ordinal under a
// mask, so that an id leads to its profile without an index.
func (m *Machine) create(a *account, record eventlog.RecordID, index uint32) uint32 {
	m.normal = append(m.normal[:0], 0xfe)
	m.normal = append(m.normal, record[:]...)
	m.normal = binary.LittleEndian.AppendUint32(m.normal, index)
	o, h := a.headers.Add()
	h.ID = profile.NewID(a.hasher.Sum(m.normal), o)
	m.counters.ProfilesCreated++
	return o
}

// load decodes a profile's document.
func (m *Machine) load(a *account, ordinal uint32, d *profile.Document) error {
	b, err := m.store.Document(a.name(), ordinal)
	if err != nil {
		return err
	}
	return d.Decode(b)
}

// save stores the document of a profile that has one, and what the index of profiles
// has of it.
func (m *Machine) save(a *account, ordinal uint32, d *profile.Document) {
	old, err := m.store.Document(a.name(), ordinal)
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	m.replaceDocument(a, ordinal, old, d)
}

// saveNew is save for a profile of this record.
func (m *Machine) saveNew(a *account, ordinal uint32, d *profile.Document) {
	old, _ := m.store.Changed(a.name().DocKey(ordinal)) // if the record has stored it before
	m.replaceDocument(a, ordinal, old, d)
}

func (m *Machine) replaceDocument(a *account, ordinal uint32, old []byte, d *profile.Document) {
	m.normal = d.Append(m.normal[:0])
	now := append([]byte(nil), m.normal...)
	m.store.PutDocument(a.name(), ordinal, now)
	m.index.Update(a.number, ordinal, old, now)
	a.reach.Keep(ordinal, d)
}

func (m *Machine) losing(ordinal uint32) bool {
	for i := range m.mergedProfiles {
		if m.mergedProfiles[i].ordinal == ordinal {
			return true
		}
	}
	return false
}

// renew makes a known identifier the newest of its kind, as given now; what is shared
// stays so. It returns whether that changed anything.
func (m *Machine) renew(a *account, d *profile.Document, kind IdentityKind, raw []byte, h identifier.Hash) bool {
	newest := -1
	at := -1
	for i := len(d.Identifiers) - 1; i >= 0; i-- {
		id := d.Identifiers[i]
		if id.Kind != kind {
			continue
		}
		if newest < 0 {
			newest = i
			if string(id.Value) == string(raw) {
				return false
			}
		}
		if have, _ := a.hasher.HashIdentifier(kind, id.Value, &m.normal); have == h {
			at = i
			break
		}
	}
	if at < 0 {
		return false
	}
	id := d.Identifiers[at]
	id.Value = raw
	copy(d.Identifiers[at:], d.Identifiers[at+1:])
	d.Identifiers[len(d.Identifiers)-1] = id
	return true
}
