package resolver

import (
	"bytes"
	"encoding/json"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment/engine"
)

// formHost is what forms see of their account, see [forms.Host].
type formHost struct {
	m *Machine
	a *account.State
}

func (h formHost) HasList(id string) bool { return h.a.Contacts.List(id) != nil }

func (h formHost) BeginConsentLog() { h.m.beginConsentLog(h.a) }

func (h formHost) HashPhone(phone string) identifier.Hash {
	x, _ := h.a.Profiles.Hasher.HashIdentifier(IdentityPhone, []byte(phone), &h.m.normal)
	return x
}

// submitForm takes a submission of a form. Anybody can send one with the address of anybody,
// and is told the same whatever becomes of it: what concerns a person on file is held until
// that person confirms it, and what cannot be confirmed changes nothing.
func (m *Machine) submitForm(cmd *command, c forms.Submit) *Refusal {
	a := cmd.account
	f, ok := a.Forms.Get(c.ID)
	if !ok || !f.Published {
		return forms.NoForm()
	}
	if r := c.Check(cmd.redacted); r != nil {
		return r
	}
	if !cmd.redacted || !bytes.Contains(c.Attributes, []byte(profile.MaskedKey)) {
		if r := contacts.CanonicalObject("attributes", &c.Attributes); r != nil {
			return r
		}
	}
	if m.sentForm(a, &c) {
		cmd.reply(forms.Reply{Repeated: true})
		return nil
	}
	tx := m.tx(a)
	a.Forms.Submitted(tx, f.ID)
	cmd.reply(forms.Reply{})
	o, made := m.formProfile(cmd, &c)
	if o == profile.NoOrdinal {
		a.Forms.Unconfirmable(tx, f.ID)
		return nil
	}
	d := &m.resolution.Doc
	if err := a.Profiles.Load(o, d); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	// A profile that was made may have refusals of before an erasure that was lifted.
	made = made && len(d.Consents) == 0 && len(d.Blocks) == 0
	x := forms.Submission{ID: forms.NewSubmissionID(tx), Form: f.ID, Email: m.ownEmail(a, d, c.Email), AtMs: m.logTime, Channels: f.Consents(&c), Lists: f.Lists, Values: c.Values}
	if made && (c.Email == "" || !f.DoubleOptIn && !a.Settings.DoubleOptIn) {
		m.takeSubmission(cmd, o, d, &x, false)
		return nil
	}
	m.holdSubmission(cmd, o, d, &x, made)
	return nil
}

// ownEmail is an e-mail address as the profile in d has it. A message goes there, and not to
// the spelling that somebody sent: the two may be delivered to different people, as mail to
// ẞ in a domain is, though one is the other's normal form.
func (m *Machine) ownEmail(a *account.State, d *profile.Document, sent string) string {
	h, ok := a.Profiles.Hasher.HashIdentifier(IdentityEmail, []byte(sent), &m.normal)
	if !ok {
		return sent
	}
	for i := range d.Identifiers {
		id := &d.Identifiers[i]
		if have, ok := a.Profiles.Hasher.HashIdentifier(IdentityEmail, id.Value, &m.normal); id.Kind == IdentityEmail && !id.Shared && ok && have == h {
			return string(id.Value)
		}
	}
	return sent
}

// sentForm reports whether a submission repeats one. It remembers one that does not.
func (m *Machine) sentForm(a *account.State, c *forms.Submit) bool {
	hash := func(key string) identifier.Hash {
		return a.Profiles.Hasher.HashIdempotencyKey([]byte("form\x00"+c.ID+"\x00"+key), &m.normal)
	}
	for _, key := range c.Keys {
		switch v, ok, err := m.keys.Get(hash(key)); {
		case err != nil:
			panic(err) // the store is at fault; the record is named
		case ok && v.AtMs > a.KeysFromMs(m.logTime):
			return true
		}
	}
	m.keys.Put(hash(c.Keys[0]), dedup.Answer{AtMs: m.logTime})
	return false
}

// formProfile finds the profile that a submission concerns, or makes one: that of its e-mail,
// of its phone only where no e-mail is given. It is none where an identifier is not taken, such
// as one of an erased person.
func (m *Machine) formProfile(cmd *command, c *forms.Submit) (o uint32, made bool) {
	a := cmd.account
	ev := eventlog.Event{Email: []byte(c.Email)}
	if c.Email == "" {
		ev = eventlog.Event{Phone: []byte(c.Phone)}
	}
	for k, value := range identrules.Of(&ev) {
		if h, ok := a.Profiles.Hasher.HashIdentifier(IdentityKind(k), value, &m.normal); ok && len(value) > 0 {
			if o := a.Profiles.Identifiers.Owner(h); o != profile.NoOrdinal {
				return o, false
			}
		}
	}
	p := a.Profiles.LookUp(ev)
	r, refusal, err := a.Profiles.Resolve(p, m.logTime, identrules.Identifiers{})
	if err != nil {
		panic(err) // the store is at fault; the record is named
	}
	if refusal != nil {
		return profile.NoOrdinal, false
	}
	a.Profiles.Commit(m.tx(a), 0, p, &r, cmd.rows)
	m.trackProfile(a, &r)
	a.Engine.Settle(r.Ordinal)
	if err := a.Profiles.Store(&r); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return r.Ordinal, true
}

// holdSubmission has a person asked to confirm a submission. A profile that was made for it
// gets the consent to e-mail, which is pending.
func (m *Machine) holdSubmission(cmd *command, o uint32, d *profile.Document, x *forms.Submission, made bool) {
	a, tx := cmd.account, m.tx(cmd.account)
	if h, ok := a.Profiles.Hasher.HashIdentifier(IdentityPhone, []byte(x.Phone), &m.normal); ok {
		if owner := a.Profiles.Identifiers.Owner(h); owner != o && owner != profile.NoOrdinal {
			x.Phone = "" // somebody else's, which would be left out later
		}
	}
	list := a.Forms.Held(tx, o)
	hold := a.Forms.MayHold(m.logTime, list, x.Form)
	switch {
	case hold == forms.HoldAgain:
		return
	case hold == forms.HoldNot, x.Email == "", d.Blocked(profile.ChannelEmail) > profile.BlockPending,
		a.Sending.QueueConfirmation(tx, o, x.Email, x.ID) != nil:
		a.Forms.Unconfirmable(tx, x.Form)
		if made && x.Email != "" && d.Block(profile.Block{Channel: profile.ChannelEmail, Reason: profile.BlockPending, SinceMs: m.logTime}) {
			m.updateProfile(cmd, o, d, engine.FieldConsents) // nobody has confirmed it
		}
		return
	}
	a.Forms.Hold(tx, o, list, *x)
	if !made {
		return
	}
	d.Evidence = &profile.Evidence{Form: x.Form, Client: x.Client, Wording: x.Wording}
	var events []feature.Event
	for _, channel := range x.Channels {
		if channel == profile.Channels[profile.ChannelEmail] {
			_, events = a.Contacts.GiveConsent(tx, o, d, channel, forms.Source)
		}
	}
	d.Block(profile.Block{Channel: profile.ChannelEmail, Reason: profile.BlockPending, SinceMs: m.logTime})
	m.updateProfile(cmd, o, d, engine.FieldConsents, events...)
}

// confirmForm carries out a submission that was held: the owner of its e-mail confirms it.
func (m *Machine) confirmForm(cmd *command, c forms.Confirm) *Refusal {
	a, tx := cmd.account, m.tx(cmd.account)
	o, d, refusal := m.profileOf(a, c.Profile)
	if refusal != nil {
		return refusal
	}
	list := a.Forms.Held(tx, o)
	for i := range list {
		x := list[i]
		if x.ID != c.Submission {
			continue
		}
		if !x.Done {
			list[i] = forms.Submission{ID: x.ID, Form: x.Form, AtMs: x.AtMs, Done: true}
			a.Forms.PutHeld(tx, o, list)
			m.takeSubmission(cmd, o, d, &x, true)
		}
		return nil
	}
	return notFound("submission", "this submission is not waiting to be confirmed; it may be older than a week")
}

// takeSubmission makes a submission part of a profile, whose document is d. confirmed says that
// the owner of the e-mail has confirmed it. What has no room is left out: there is nobody left
// to tell.
func (m *Machine) takeSubmission(cmd *command, o uint32, d *profile.Document, x *forms.Submission, confirmed bool) {
	a, tx := cmd.account, m.tx(cmd.account)
	fields := m.takeValues(a, o, d, x)
	name := ""
	if f, ok := a.Forms.Get(x.Form); ok {
		name = f.Name
	}
	a.Forms.Converted(tx, x.Form)
	events := []feature.Event{feature.NewEvent(forms.EventSubmitted, feature.Properties{"form_id": x.Form, "form_name": name, "confirmed": confirmed})}
	evidence := profile.Evidence{Form: x.Form, Client: x.Client, Wording: x.Wording}
	if confirmed {
		evidence.SubmittedMs = x.AtMs
	}
	d.Evidence = &evidence
	toEmail := false
	for _, channel := range x.Channels {
		number, refusal := contacts.ChannelOf(channel)
		if refusal != nil || number != profile.ChannelEmail && !m.hasPhone(a, d, x.Phone) {
			continue
		}
		toEmail = toEmail || number == profile.ChannelEmail
		said, more := a.Contacts.GiveConsent(tx, o, d, channel, forms.Source)
		fields, events = fields|said, append(events, more...)
	}
	// Of a form that asks for no consent to e-mail, the address was pending by it alone.
	if confirmed && !toEmail && d.ConsentOf(profile.ChannelEmail) == nil && d.Unblock(profile.ChannelEmail, profile.BlockPending) {
		fields |= engine.FieldConsents
	}
	for _, id := range x.Lists {
		l := a.Contacts.List(id)
		if l == nil {
			continue
		}
		join := a.Contacts.Join
		if l.Topic != nil {
			join = func(o uint32, d *profile.Document, l *contacts.List) ([]feature.Event, *Refusal) {
				return a.Contacts.JoinTopic(m.logTime, o, d, l, forms.Source)
			}
		}
		if joined, refusal := join(o, d, l); refusal == nil && len(joined) > 0 {
			fields, events = fields|engine.FieldLists, append(events, joined...)
		}
	}
	hook := webhookevent.ContactUpdated
	if !d.IsContact {
		hook = webhookevent.ContactCreated
	}
	fields |= a.Contacts.TakeOn(o, d)
	m.updateProfile(cmd, o, d, fields, events...)
	m.notifyContact(a, o, hook)
}

// takeValues makes the values of a submission part of a document.
func (m *Machine) takeValues(a *account.State, o uint32, d *profile.Document, x *forms.Submission) (fields engine.Fields) {
	var merger profile.JSONMerger
	attributes := json.RawMessage(nil)
	if len(x.Attributes) > 0 {
		merged, differs, err := merger.Merge(d.Attributes, x.Attributes, profile.Overwrite)
		if err == nil && !profile.TooLarge(merged) {
			attributes = x.Attributes
			if differs {
				d.Attributes = bytes.Clone(merged)
				fields |= engine.FieldAttributes
			}
		}
	}
	d.SaidOtherwise(x.FirstName != "", x.LastName != "", nil, attributes, m.logTime)
	for _, f := range [...]struct {
		have  *[]byte
		given string
		field engine.Fields
	}{{&d.FirstName, x.FirstName, engine.FieldFirstName}, {&d.LastName, x.LastName, engine.FieldLastName}} {
		if f.given != "" && string(*f.have) != f.given {
			*f.have = []byte(f.given)
			fields |= f.field
		}
	}
	fields |= m.takeIdentifier(a, o, d, IdentityEmail, x.Email)
	return fields | m.takeIdentifier(a, o, d, IdentityPhone, x.Phone)
}

// takeIdentifier makes an identifier of a submission the newest of its kind. One that is
// somebody else's, or of an erased person, is left out.
func (m *Machine) takeIdentifier(a *account.State, o uint32, d *profile.Document, kind IdentityKind, value string) engine.Fields {
	if value == "" {
		return 0
	}
	h, ok := a.Profiles.Hasher.HashIdentifier(kind, []byte(value), &m.normal)
	if !ok {
		return 0
	}
	switch owner := a.Profiles.Identifiers.Owner(h); {
	case owner == o:
		if !a.Profiles.Renew(d, kind, []byte(value), h) {
			return 0
		}
		return engine.FieldEmail << kind
	case owner != profile.NoOrdinal, a.Profiles.Placeholder(kind, []byte(value), h) != nil, d.Known()+1 > a.Settings.IdentifierCap:
		return 0
	case a.Erasure.Erased(h):
		a.Erasure.NoteRefused()
		return 0
	}
	a.Profiles.Attach(o, d, kind, []byte(value), h)
	fields := engine.FieldEmail << kind
	if a.Erasure.Restore(m.tx(a), d, h) {
		fields |= engine.FieldConsents
	}
	return fields
}

// hasPhone reports whether a phone identifies the profile of a document.
func (m *Machine) hasPhone(a *account.State, d *profile.Document, phone string) bool {
	h, ok := a.Profiles.Hasher.HashIdentifier(IdentityPhone, []byte(phone), &m.normal)
	if !ok {
		return false
	}
	for i := range d.Identifiers {
		id := &d.Identifiers[i]
		if id.Kind != IdentityPhone || id.Shared {
			continue
		}
		if have, ok := a.Profiles.Hasher.HashIdentifier(IdentityPhone, id.Value, &m.normal); ok && have == h {
			return true
		}
	}
	return false
}
