package resolver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/segment/engine"
)

// rulesAsksAnew is the first version of the rules under which a contact whose e-mail is
// replaced while its confirmation is pending is asked at the new address.
const rulesAsksAnew = 25

func (m *Machine) createContact(tx *transaction, c contacts.Create) *Refusal {
	a := tx.account
	if r := c.Check(tx.redacted); r != nil {
		return r
	}
	if m.hasEmail(a, c.Email, profile.NoOrdinal) {
		return contacts.DuplicateEmail()
	}
	if r := m.mayHold(a, c.Email, c.Grant); r != nil {
		return r
	}
	var l *contacts.List
	if c.ListID != "" {
		if l = a.Contacts.List(c.ListID); l == nil {
			return contacts.NoList()
		}
	}
	return m.makeContact(tx, &c, l)
}

// makeContact makes a contact whose e-mail is not on file, and puts it on a
// list if one is given.
func (m *Machine) makeContact(tx *transaction, c *contacts.Create, l *contacts.List) *Refusal {
	a := tx.account
	ev := eventlog.Event{Email: []byte(c.Email), ExternalID: []byte(c.ExternalID), Phone: []byte(c.Phone), FirstName: []byte(c.FirstName), LastName: []byte(c.LastName)}
	if identifier.IsBlank([]byte(c.Email + " ")) {
		ev.Email = nil
	}
	p := a.Profiles.LookUp(ev)
	r, refusal, err := a.Profiles.Resolve(p, m.logTime, identrules.OfContact(tx.name))
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	if refusal != nil {
		return contacts.OwnField(refusal)
	}
	d := &tx.profiles.Doc
	if l != nil && a.Contacts.Live(d) >= contacts.MaxProfileLists {
		return contacts.FullLists()
	}
	if l != nil && !r.Created && a.Contacts.HasLeft(r.Ordinal, l) {
		return contacts.LeftTopic()
	}
	a.Profiles.Commit(tx.on(a), 0, p, &r, tx.rows)
	o := r.Ordinal
	a.Profiles.Headers.Edit(o).LastEvent = r.LastEvent
	r.Fields |= a.Contacts.TakeOn(o, d)
	r.Changed = true
	said, events := a.Contacts.ChangeConsents(tx.on(a), o, d, c.Refusals())
	r.Fields |= said
	assume := func(channel byte) {
		if contacts.Assume(d, m.logTime, channel, profile.SourceManual) {
			r.Fields |= engine.FieldConsents
			events = append(events, feature.NewEvent(contacts.EventSubscribed, feature.Properties{"channel": profile.Channels[channel], "source": profile.SourceManual}))
		}
	}
	if ev.Email != nil {
		m.reserve(a, c.Email, c.Grant)
		assume(profile.ChannelEmail)
		if a.Settings.DoubleOptIn && d.Subscribed(profile.ChannelEmail) && d.Suppress(profile.Suppression{Channel: profile.ChannelEmail, Reason: profile.SuppressionPending, SinceMs: m.logTime}, m.rules) {
			r.Fields |= engine.FieldConsents
			if d.GravestSuppression(profile.ChannelEmail) == profile.SuppressionPending {
				events = append(events, a.Sending.AskToConfirm(tx.on(a), o, d)...)
			}
		}
	}
	if c.Phone != "" && !r.Erased.Has(IdentityPhone) && !(r.Shared.Has(IdentityPhone) && m.refusesSMS(a, p.Hash(IdentityPhone))) {
		assume(profile.ChannelSMS)
	}
	if l != nil {
		// Not refused: the bound was judged above.
		if joined, _ := a.Contacts.Join(o, d, l); len(joined) > 0 {
			r.Fields |= engine.FieldLists
			events = append(events, joined...)
		}
	}
	m.trackProfile(a, &r)
	for _, x := range events {
		m.appendEvent(tx, o, x)
	}
	m.notifyContact(a, o, webhookevent.ContactCreated)
	a.Engine.Evaluate(o)
	if err := a.Profiles.Store(&r); err != nil {
		panic(err)
	}
	tx.reply(contacts.Reply{ID: a.Profiles.Headers.Get(o).ID.String(), Created: r.Created, Warning: strings.ReplaceAll(resolution.Warning(r.NotAdded, r.Dropped, r.Erased), "user.", "")})
	return nil
}

// refusesSMS reports whether the profile that a phone identifies wants no SMS, or is to
// get none: then no other profile with the number is assumed to want them.
func (m *Machine) refusesSMS(a *account.State, phone identifier.Hash) bool {
	if err := a.Profiles.Load(a.Profiles.Identifiers.Owner(phone), &m.tx.other); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return slices.ContainsFunc(erasure.RefusedBy(&m.tx.other), func(x erasure.Refused) bool { return x.Channel == profile.ChannelSMS })
}

// addToList puts a contact on a list; it is made if its e-mail is not on file.
func (m *Machine) addToList(tx *transaction, c contacts.ListAdd) *Refusal {
	a := tx.account
	l := a.Contacts.List(c.ListID)
	if l == nil {
		return contacts.NoList()
	}
	if r := c.Create.Check(tx.redacted); r != nil {
		return r
	}
	o := profile.NoOrdinal
	if h, ok := a.Profiles.Hasher.HashIdentifier(IdentityEmail, []byte(c.Create.Email), &tx.normal); ok {
		o = a.Profiles.Identifiers.Owner(h)
	}
	if o == profile.NoOrdinal {
		if m.hasEmail(a, c.Create.Email, profile.NoOrdinal) {
			return contacts.DuplicateEmail()
		}
		if r := m.mayHold(a, c.Create.Email, c.Create.Grant); r != nil {
			return r
		}
		return m.makeContact(tx, &c.Create, l)
	}
	d := &tx.profiles.Doc
	if err := a.Profiles.Load(o, d); err != nil {
		panic(err)
	}
	// What is on file stays; what is missing is filled in.
	fields := engine.Fields(0)
	for _, f := range [...]struct {
		have  *[]byte
		given string
		field engine.Fields
	}{{&d.FirstName, c.Create.FirstName, engine.FieldFirstName}, {&d.LastName, c.Create.LastName, engine.FieldLastName}} {
		if len(*f.have) == 0 && f.given != "" {
			*f.have = []byte(f.given)
			fields |= f.field
		}
	}
	joined, refusal := a.Contacts.Join(o, d, l)
	if refusal != nil {
		return refusal
	}
	if len(joined) > 0 {
		fields |= engine.FieldLists
	}
	taken := a.Contacts.TakeOn(o, d)
	m.updateProfile(tx, o, d, fields|taken, joined...)
	if taken != 0 {
		m.notifyContact(a, o, webhookevent.ContactCreated)
	}
	tx.reply(contacts.Reply{ID: a.Profiles.Headers.Get(o).ID.String()})
	return nil
}

// updateContact changes a contact. A new identifier must not be on file with
// another profile: people are merged by events, not by a form.
func (m *Machine) updateContact(tx *transaction, c contacts.Update) *Refusal {
	a := tx.account
	o, d, refusal := m.profileOf(a, c.ID)
	if refusal != nil {
		return refusal
	}
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	x := contacts.Create{Email: text(c.Email), Phone: text(c.Phone), ExternalID: text(c.ExternalID), FirstName: text(c.FirstName), LastName: text(c.LastName)}
	if r := x.Check(tx.redacted); r != nil {
		return r
	}
	// Judge everything before anything is changed.
	var hashes [identifier.Kinds]identifier.Hash
	var attach, renew [identifier.Kinds]bool
	for k, v := range [identifier.Kinds]string{x.Email, x.ExternalID, x.Phone} {
		if v == "" {
			continue
		}
		kind := IdentityKind(k)
		h, ok := a.Profiles.Hasher.HashIdentifier(kind, []byte(v), &tx.normal)
		if !ok {
			return contacts.OwnField(resolution.Empty(kind))
		}
		var notGiven *Refusal
		if kind == IdentityEmail {
			notGiven = m.mayHold(a, v, c.Grant)
		}
		switch owner := a.Profiles.Identifiers.Owner(h); {
		case owner == o:
			renew[k] = true
		case owner != profile.NoOrdinal, kind == IdentityEmail && m.hasEmail(a, v, o):
			if kind == IdentityEmail {
				return contacts.DuplicateEmail()
			}
			if a.Profiles.Shows(d, kind, h) {
				renew[k] = true // shared, and it stays so
				break
			}
			return &Refusal{Code: "conflict", Field: kind.String(), Message: kind.String() + ": another contact has this value"}
		case notGiven != nil:
			return notGiven
		case a.Erasure.Erased(h):
			if a.Profiles.Shows(d, kind, h) {
				renew[k] = true // the erased person's, too
				break
			}
			return contacts.OwnField(a.RefuseErased(kind))
		default:
			if kind != IdentityEmail {
				if r := a.Profiles.Placeholder(kind, []byte(v), h); r != nil {
					return r
				}
			}
			if d.Known()+1 > a.Settings.IdentifierCap {
				return atLimit(kind.String(), "%s: the contact has %d identifiers, the most it can have", kind, d.Known())
			}
			attach[k] = true
		}
		hashes[k] = h
	}
	for _, f := range [...]struct {
		name string
		raw  *json.RawMessage
	}{{"geo", &c.Geo}, {"attributes", &c.Attributes}} {
		if tx.redacted && bytes.HasPrefix(*f.raw, []byte("{")) {
			continue // it was canonical before it was masked
		}
		if refusal = contacts.CanonicalObject(f.name, f.raw); refusal != nil {
			return refusal
		}
	}
	if refusal = contacts.CheckConsents(d, c.Consents); refusal != nil {
		return refusal
	}
	geo, attributes := d.Geo, d.Attributes
	fields := engine.Fields(0)
	var merger profile.JSONMerger
	for _, f := range [...]struct {
		name  string
		dst   *[]byte
		src   []byte
		field engine.Fields
	}{{"geo", &geo, c.Geo, engine.FieldGeo}, {"attributes", &attributes, c.Attributes, engine.FieldAttributes}} {
		merged, differs, err := merger.Merge(*f.dst, f.src, profile.Overwrite)
		switch {
		case err != nil:
			return invalid(f.name, "%s: %s", f.name, err)
		case profile.TooLarge(merged):
			return atLimit(f.name, "%s would grow past %d bytes; remove keys by sending null for them", f.name, profile.MaxObjectBytes)
		case differs:
			*f.dst = bytes.Clone(merged)
			fields |= f.field
		}
	}

	d.SaidOtherwise(c.FirstName != nil, c.LastName != nil, c.Geo, c.Attributes, m.logTime)
	d.Geo, d.Attributes = geo, attributes
	for _, f := range [...]struct {
		dst   *[]byte
		src   *string
		field engine.Fields
	}{{&d.FirstName, c.FirstName, engine.FieldFirstName}, {&d.LastName, c.LastName, engine.FieldLastName}} {
		if f.src != nil && string(*f.dst) != *f.src {
			*f.dst = []byte(*f.src)
			fields |= f.field
		}
	}
	for k, v := range [identifier.Kinds]string{x.Email, x.ExternalID, x.Phone} {
		switch {
		case attach[k]:
			a.Profiles.Attach(o, d, IdentityKind(k), []byte(v), hashes[k])
			fields |= engine.FieldEmail << k
			if a.Erasure.Restore(tx.on(a), d, hashes[k]) {
				fields |= engine.FieldConsents
			}
			if IdentityKind(k) == IdentityEmail {
				m.reserve(a, v, c.Grant)
			}
		case renew[k] && a.Profiles.Renew(d, IdentityKind(k), []byte(v), hashes[k]):
			fields |= engine.FieldEmail << k
		}
	}
	said, events := a.Contacts.ChangeConsents(tx.on(a), o, d, c.Consents)
	fields |= said
	// A phone that is added to a contact is a consent, as it is at creation.
	if attach[IdentityPhone] && contacts.Assume(d, m.logTime, profile.ChannelSMS, profile.SourceManual) {
		fields |= engine.FieldConsents
		events = append(events, feature.NewEvent(contacts.EventSubscribed, feature.Properties{"channel": "sms", "source": profile.SourceManual}))
	}
	if m.rules >= rulesAsksAnew && fields&engine.FieldEmail != 0 && d.Subscribed(profile.ChannelEmail) && d.GravestSuppression(profile.ChannelEmail) == profile.SuppressionPending {
		events = append(events, a.Sending.AskToConfirm(tx.on(a), o, d)...)
	}
	fields |= a.Contacts.TakeOn(o, d)
	m.updateProfile(tx, o, d, fields, events...)
	m.notifyContact(a, o, webhookevent.ContactUpdated)
	tx.reply(contacts.Reply{ID: a.Profiles.Headers.Get(o).ID.String()})
	return nil
}
