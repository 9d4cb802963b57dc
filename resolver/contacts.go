package resolver

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment/engine"
)

// The commands of contacts. A contact is a profile that was made, or taken on,
// by name and not by an event.
const (
	CommandContactCreate = "contact.create.2"
	CommandContactUpdate = "contact.update"

	// commandContactCreate1 is [CommandContactCreate] in logs of before version 8 of the
	// rules. Its phone and external id lead to a profile as those of an event do, and
	// merge.
	commandContactCreate1 = "contact.create"
)

// contactRules are the rules for the identifiers of a command that makes a contact.
func contactRules(command string) identifierRules {
	now := command != commandContactCreate1 && command != commandListAdd1
	return identifierRules{optional: true, firstOnly: now, dropErased: now}
}

// MessageDuplicateEmail is the refusal of an e-mail that is on file already.
const MessageDuplicateEmail = "Contact with this email already exists"

// The bounds of what a contact is made of, those of events.
const (
	maxIdentifierBytes = 512
	maxPersonNameBytes = 512
)

// ContactCreate makes a contact. All fields are optional.
type ContactCreate struct {
	Email      string `json:"email,omitempty"`
	FirstName  string `json:"first_name,omitempty"`
	LastName   string `json:"last_name,omitempty"`
	Phone      string `json:"phone,omitempty"`
	ExternalID string `json:"external_id,omitempty"`
	ListID     string `json:"list_id,omitempty"`
	// Unsubscribed are channels of which the person wants nothing, such as email and sms.
	// A known contact that is put on a list keeps its consents.
	Unsubscribed []string `json:"unsubscribed,omitempty"`
	// Grant is the node's to set.
	Grant *emaildir.Grant `json:"grant,omitempty"`
}

// ContactUpdate changes what is set of a contact. An empty name is removed;
// identifiers are added, never removed.
type ContactUpdate struct {
	ID         string          `json:"id"`
	Email      *string         `json:"email,omitempty"`
	FirstName  *string         `json:"first_name,omitempty"`
	LastName   *string         `json:"last_name,omitempty"`
	Phone      *string         `json:"phone,omitempty"`
	ExternalID *string         `json:"external_id,omitempty"`
	Geo        json.RawMessage `json:"geo,omitempty"`        // object; null values remove
	Attributes json.RawMessage `json:"attributes,omitempty"` // likewise
	Consents   []ConsentChange `json:"consents,omitempty"`
	Grant      *emaildir.Grant `json:"grant,omitempty"` // the node's to set
}

// Blank is the first identifier that is given as an empty text, "" for none. It changes
// nothing: whoever sends it means to remove one, and identifiers are never removed.
func (c *ContactUpdate) Blank() string {
	for k, v := range [identifier.Kinds]*string{c.Email, c.ExternalID, c.Phone} {
		if v != nil && *v == "" {
			return IdentityKind(k).String()
		}
	}
	return ""
}

// ContactReply answers commands that make or change a contact.
type ContactReply struct {
	ID      string `json:"id"`
	Created bool   `json:"created"` // the profile was made by this command
	// Warning names identifiers that were not added because the profile may have no
	// more; "" when all were.
	Warning string `json:"warning,omitempty"`
}

func (m *Machine) createContact(cmd *command, c ContactCreate) *Refusal {
	a := cmd.account
	if r := checkContact(cmd, &c); r != nil {
		return r
	}
	if a.hasEmail(m, c.Email, profile.NoOrdinal) {
		return duplicateEmail()
	}
	if r := m.mayHold(a, c.Email, c.Grant); r != nil {
		return r
	}
	var l *List
	if c.ListID != "" {
		if l = a.list(c.ListID); l == nil {
			return noList()
		}
	}
	return m.makeContact(cmd, &c, l)
}

func duplicateEmail() *Refusal {
	return &Refusal{Code: "conflict", Field: "email", Message: MessageDuplicateEmail}
}

// checkContact says what cannot be stored of a contact. The e-mail is taken as
// it is.
func checkContact(cmd *command, c *ContactCreate) *Refusal {
	for _, f := range [...]struct {
		name  string
		value *string
		limit int
	}{
		{"email", &c.Email, maxIdentifierBytes}, {"phone", &c.Phone, maxIdentifierBytes}, {"external_id", &c.ExternalID, maxIdentifierBytes},
		{"first_name", &c.FirstName, maxPersonNameBytes}, {"last_name", &c.LastName, maxPersonNameBytes},
	} {
		if cmd.redacted && identifier.IsMasked(*f.value) {
			continue
		}
		if len(*f.value) > f.limit {
			return invalid(f.name, "%s must have at most %d bytes", f.name, f.limit)
		}
		if !utf8.ValidString(*f.value) || strings.ContainsRune(*f.value, 0) {
			return invalid(f.name, "%s must be UTF-8 text without NUL characters", f.name)
		}
	}
	return checkConsents(&profile.Document{}, c.refusals())
}

// refusals are the consents that the contact is made without.
func (c *ContactCreate) refusals() (out []ConsentChange) {
	for _, channel := range c.Unsubscribed {
		out = append(out, ConsentChange{Channel: channel, Status: profile.ConsentStatuses[profile.ConsentUnsubscribed], Source: SourceImport})
	}
	return out
}

// makeContact makes a contact whose e-mail is not on file, and puts it on a
// list if one is given.
func (m *Machine) makeContact(cmd *command, c *ContactCreate, l *List) *Refusal {
	a := cmd.account
	p := &m.window[0]
	// Nothing of the event that was here before.
	p.ev = eventlog.Event{Email: []byte(c.Email), ExternalID: []byte(c.ExternalID), Phone: []byte(c.Phone), FirstName: []byte(c.FirstName), LastName: []byte(c.LastName)}
	if identifier.IsBlank([]byte(c.Email + " ")) {
		p.ev.Email = nil
	}
	m.lookUp(a, p)
	r, refusal, err := m.resolve(a, p, m.logTime, contactRules(cmd.name))
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	if refusal != nil {
		return ownField(refusal)
	}
	d := &m.doc
	if l != nil && a.liveLists(d) >= maxProfileLists {
		return atLimit("list_id", "list_id: the contact is on %d lists, the most it can be on", maxProfileLists)
	}
	o := m.commit(a, p, &r, cmd.env.ID, cmd.out.Offset, 0, cmd.rows)
	a.headers.Edit(o).LastEvent = r.lastEvent
	r.fields |= a.takeOn(o, d)
	r.changed = true
	said, events := m.changeConsents(cmd, o, d, c.refusals())
	r.fields |= said
	assume := func(channel byte) {
		if m.assume(d, channel, profile.SourceManual) {
			r.fields |= engine.FieldConsents
			events = append(events, feature.NewEvent(typeSubscribed, feature.Properties{"channel": profile.Channels[channel], "source": profile.SourceManual}))
		}
	}
	if p.ev.Email != nil {
		m.reserve(a, c.Email, c.Grant)
		assume(profile.ChannelEmail)
		if a.Settings.DoubleOptIn && d.Subscribed(profile.ChannelEmail) && d.Block(profile.Block{Channel: profile.ChannelEmail, Reason: profile.BlockPending, SinceMs: m.logTime}) {
			r.fields |= engine.FieldConsents
			events = append(events, m.askToConfirm(cmd, o, d)...)
		}
	}
	if c.Phone != "" && !r.erased.Has(IdentityPhone) && !(r.shared.Has(IdentityPhone) && m.refusesSMS(a, p.hashes[IdentityPhone])) {
		assume(profile.ChannelSMS)
	}
	if l != nil {
		// Not refused: the bound was judged above.
		if joined, _ := a.join(o, d, l); joined {
			r.fields |= engine.FieldLists
			events = append(events, feature.NewEvent(typeListJoined, feature.Properties{"list_id": l.ID, "list_name": l.Name}))
		}
	}
	m.trackProfile(a, &r)
	for _, x := range events {
		m.appendEvent(cmd, o, x)
	}
	m.notifyContact(a, o, webhookevent.ContactCreated)
	a.engine.Settle(o)
	if err := m.storeResolved(a, &r); err != nil {
		panic(err)
	}
	cmd.reply(ContactReply{ID: a.headers.Get(o).ID.String(), Created: r.created, Warning: strings.ReplaceAll(warnings[r.notAdded][r.dropped][r.erased], "user.", "")})
	return nil
}

// refusesSMS reports whether the profile that a phone identifies wants no SMS, or is to
// get none: then nobody else who shows the number is taken to want them.
func (m *Machine) refusesSMS(a *account, phone identifier.Hash) bool {
	if err := m.load(a, a.ids.Owner(phone), &m.other); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return slices.ContainsFunc(erasure.RefusedBy(&m.other), func(x erasure.Refused) bool { return x.Channel == profile.ChannelSMS })
}

// takeOn makes a profile a contact; it returns which fields that changed.
func (a *account) takeOn(o uint32, d *profile.Document) (changed engine.Fields) {
	if !d.IsContact {
		changed = engine.FieldContact
	}
	d.IsContact = true
	a.set(setContacts).Add(o)
	return changed
}

// ownField names fields as a contact has them: an event has them in user.
func ownField(r *Refusal) *Refusal {
	r.Field = strings.TrimPrefix(r.Field, "user.")
	r.Message = strings.ReplaceAll(r.Message, "user.", "")
	return r
}

// addToList puts a contact on a list; it is made if its e-mail is not on file.
func (m *Machine) addToList(cmd *command, c ListAdd) *Refusal {
	a := cmd.account
	l := a.list(c.ListID)
	if l == nil {
		return noList()
	}
	if r := checkContact(cmd, &c.Create); r != nil {
		return r
	}
	o := profile.NoOrdinal
	if h, ok := a.hasher.HashIdentifier(IdentityEmail, []byte(c.Create.Email), &m.normal); ok {
		o = a.ids.Owner(h)
	}
	if o == profile.NoOrdinal {
		if a.hasEmail(m, c.Create.Email, profile.NoOrdinal) {
			return duplicateEmail()
		}
		if r := m.mayHold(a, c.Create.Email, c.Create.Grant); r != nil {
			return r
		}
		return m.makeContact(cmd, &c.Create, l)
	}
	d := &m.doc
	if err := m.load(a, o, d); err != nil {
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
	joined, refusal := a.join(o, d, l)
	if refusal != nil {
		return refusal
	}
	var events []feature.Event
	if joined {
		fields |= engine.FieldLists
		events = append(events, feature.NewEvent(typeListJoined, feature.Properties{"list_id": l.ID, "list_name": l.Name}))
	}
	taken := a.takeOn(o, d)
	m.updateProfile(cmd, o, d, fields|taken, events...)
	if taken != 0 {
		m.notifyContact(a, o, webhookevent.ContactCreated)
	}
	cmd.reply(ContactReply{ID: a.headers.Get(o).ID.String()})
	return nil
}

// updateContact changes a contact. A new identifier must not be on file with
// another profile: people are merged by events, not by a form.
func (m *Machine) updateContact(cmd *command, c ContactUpdate) *Refusal {
	a := cmd.account
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
	x := ContactCreate{Email: text(c.Email), Phone: text(c.Phone), ExternalID: text(c.ExternalID), FirstName: text(c.FirstName), LastName: text(c.LastName)}
	if r := checkContact(cmd, &x); r != nil {
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
		h, ok := a.hasher.HashIdentifier(kind, []byte(v), &m.normal)
		if !ok {
			return ownField(emptyIdentifier(kind))
		}
		var notGiven *Refusal
		if kind == IdentityEmail {
			notGiven = m.mayHold(a, v, c.Grant)
		}
		switch owner := a.ids.Owner(h); {
		case owner == o:
			renew[k] = true
		case owner != profile.NoOrdinal, kind == IdentityEmail && a.hasEmail(m, v, o):
			if kind == IdentityEmail {
				return duplicateEmail()
			}
			if a.shown(m, d, kind, h) >= 0 {
				renew[k] = true // shared, and it stays so
				break
			}
			return &Refusal{Code: "conflict", Field: kind.String(), Message: kind.String() + ": another contact has this value"}
		case notGiven != nil:
			return notGiven
		case a.erasure.Erased(h):
			if a.shown(m, d, kind, h) >= 0 {
				renew[k] = true // the erased person's, too
				break
			}
			return ownField(a.refuseErased(kind))
		default:
			if kind != IdentityEmail && m.isPlaceholder(a, kind, []byte(v), h) {
				return invalid(kind.String(), "%s %q is a placeholder, not an identifier; leave it out when the person is not known", kind, v)
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
		if cmd.redacted && bytes.HasPrefix(*f.raw, []byte("{")) {
			continue // it was canonical before it was masked
		}
		if refusal = canonicalObject(f.name, f.raw); refusal != nil {
			return refusal
		}
	}
	if refusal = checkConsents(d, c.Consents); refusal != nil {
		return refusal
	}
	geo, attributes := d.Geo, d.Attributes
	fields := engine.Fields(0)
	m.merger.Reset()
	for _, f := range [...]struct {
		name  string
		dst   *[]byte
		src   []byte
		field engine.Fields
	}{{"geo", &geo, c.Geo, engine.FieldGeo}, {"attributes", &attributes, c.Attributes, engine.FieldAttributes}} {
		merged, differs, err := m.merger.Merge(*f.dst, f.src, profile.Overwrite)
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
			a.ids.Set(hashes[k], o)
			a.dropShared(m, d, IdentityKind(k), hashes[k])
			d.Identifiers = append(d.Identifiers, profile.Identifier{Kind: IdentityKind(k), Value: []byte(v)})
			m.saidIdentifier(d, IdentityKind(k), m.logTime, false)
			fields |= engine.FieldEmail << k
			if a.erasure.Restore(m.tx(a), d, hashes[k]) {
				fields |= engine.FieldConsents
			}
			if IdentityKind(k) == IdentityEmail {
				m.addCaseFold(a, []byte(v), hashes[k])
				m.reserve(a, v, c.Grant)
			}
		case renew[k] && a.confirm(m, d, IdentityKind(k), hashes[k]) && m.renew(a, d, IdentityKind(k), []byte(v), hashes[k]):
			m.saidIdentifier(d, IdentityKind(k), m.logTime, false)
			fields |= engine.FieldEmail << k
		}
	}
	said, events := m.changeConsents(cmd, o, d, c.Consents)
	fields |= said
	// A phone that is added to a contact is a consent, as it is at creation.
	if attach[IdentityPhone] && m.assume(d, profile.ChannelSMS, profile.SourceManual) {
		fields |= engine.FieldConsents
		events = append(events, feature.NewEvent(typeSubscribed, feature.Properties{"channel": "sms", "source": profile.SourceManual}))
	}
	fields |= a.takeOn(o, d)
	m.updateProfile(cmd, o, d, fields, events...)
	m.notifyContact(a, o, webhookevent.ContactUpdated)
	cmd.reply(ContactReply{ID: a.headers.Get(o).ID.String()})
	return nil
}
