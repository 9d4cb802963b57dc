package signup

import (
	"bytes"
	"encoding/json"

	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/segment/engine"
)

// rulesOwnAddress is the first version of the rules under which a confirmation is of the
// address that it was sent to, and of no other that the profile has by then.
const rulesOwnAddress = 25

// take makes a submission part of a profile, whose document is d. confirmed says that
// the owner of the e-mail has confirmed it. What has no room is left out: the
// submission was answered already.
func (s *State) take(tx *feature.Tx, o uint32, d *profile.Document, x *forms.Submission, confirmed bool) {
	fields := s.takeValues(tx, o, d, x)
	name := ""
	if f, ok := s.forms.Get(x.Form); ok {
		name = f.Name
	}
	s.forms.Converted(tx, x.Form)
	events := []feature.Event{feature.NewEvent(forms.EventSubmitted, feature.Properties{"form_id": x.Form, "form_name": name, "confirmed": confirmed})}
	evidence := profile.Evidence{Form: x.Form, Client: x.Client, Wording: x.Wording}
	if confirmed {
		evidence.SubmittedMs = x.AtMs
	}
	d.Evidence = &evidence
	toEmail := false
	for _, channel := range x.Channels {
		number, refusal := contacts.ChannelOf(channel)
		if refusal != nil || number != profile.ChannelEmail && !s.hasPhone(d, x.Phone) {
			continue
		}
		if number == profile.ChannelEmail && confirmed && tx.Rules >= rulesOwnAddress && !s.isNewestEmail(d, x.Email) {
			continue // what was confirmed is the address of another profile by now
		}
		toEmail = toEmail || number == profile.ChannelEmail
		said, more := s.contacts.GiveConsent(tx, o, d, channel, forms.Source)
		fields, events = fields|said, append(events, more...)
	}
	// Of a form that asks for no consent to e-mail, the address was pending by it alone.
	if confirmed && !toEmail && (tx.Rules < rulesOwnAddress || s.isNewestEmail(d, x.Email)) && d.ConsentOf(profile.ChannelEmail) == nil && d.Unsuppress(profile.ChannelEmail, profile.SuppressionPending) {
		fields |= engine.FieldConsents
	}
	for _, id := range x.Lists {
		l := s.contacts.List(id)
		if l == nil {
			continue
		}
		join := s.contacts.Join
		if l.Topic != nil {
			join = func(o uint32, d *profile.Document, l *contacts.List) ([]feature.Event, *refuse.Refusal) {
				return s.contacts.JoinTopic(tx.AtMs, o, d, l, forms.Source)
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
	fields |= s.contacts.TakeOn(o, d)
	s.host.Update(o, d, fields, events...)
	s.host.NotifyContact(o, hook)
}

// takeValues makes the values of a submission part of a document.
func (s *State) takeValues(tx *feature.Tx, o uint32, d *profile.Document, x *forms.Submission) (fields engine.Fields) {
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
	d.SaidOtherwise(x.FirstName != "", x.LastName != "", nil, attributes, tx.AtMs)
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
	fields |= s.takeIdentifier(tx, o, d, identifier.Email, x.Email)
	return fields | s.takeIdentifier(tx, o, d, identifier.Phone, x.Phone)
}

// takeIdentifier makes an identifier of a submission the newest of its kind. One that
// another profile has, or that is of an erased person, is left out.
func (s *State) takeIdentifier(tx *feature.Tx, o uint32, d *profile.Document, kind identifier.Kind, value string) engine.Fields {
	if value == "" {
		return 0
	}
	h, ok := s.profiles.Hasher.HashIdentifier(kind, []byte(value), &s.normal)
	if !ok {
		return 0
	}
	switch owner := s.profiles.Identifiers.Owner(h); {
	case owner == o:
		if !s.profiles.Renew(d, kind, []byte(value), h) {
			return 0
		}
		return engine.FieldEmail << kind
	case owner != profile.NoOrdinal, s.profiles.Placeholder(kind, []byte(value), h) != nil, d.Known()+1 > s.host.IdentifierCap():
		return 0
	case s.erasure.Erased(h):
		s.erasure.NoteRefused()
		return 0
	}
	s.profiles.Attach(o, d, kind, []byte(value), h)
	fields := engine.FieldEmail << kind
	if s.erasure.Restore(tx, d, h) {
		fields |= engine.FieldConsents
	}
	return fields
}

// isNewestEmail reports whether an e-mail is the newest of the profile of a document.
func (s *State) isNewestEmail(d *profile.Document, email string) bool {
	want, ok := s.profiles.Hasher.HashIdentifier(identifier.Email, []byte(email), &s.normal)
	if !ok {
		return false
	}
	have, ok := s.profiles.Hasher.HashIdentifier(identifier.Email, d.Newest(identifier.Email), &s.normal)
	return ok && have == want
}

// hasPhone reports whether a phone identifies the profile of a document.
func (s *State) hasPhone(d *profile.Document, phone string) bool {
	h, ok := s.profiles.Hasher.HashIdentifier(identifier.Phone, []byte(phone), &s.normal)
	if !ok {
		return false
	}
	for i := range d.Identifiers {
		id := &d.Identifiers[i]
		if id.Kind != identifier.Phone || id.Shared {
			continue
		}
		if have, ok := s.profiles.Hasher.HashIdentifier(identifier.Phone, id.Value, &s.normal); ok && have == h {
			return true
		}
	}
	return false
}
