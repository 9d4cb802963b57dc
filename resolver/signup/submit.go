package signup

import (
	"bytes"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/identrules"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/segment/engine"
)

// submit takes a submission of a form. Anybody can send one with any address, and gets the
// same answer whatever becomes of it: what concerns a person on file is held until that
// person confirms it, and what cannot be confirmed changes nothing.
func (s *State) submit(tx *feature.Tx, c forms.Submit) *refuse.Refusal {
	f, ok := s.forms.Get(c.ID)
	if !ok || !f.Published {
		return forms.NoForm()
	}
	redacted := s.host.Redacted()
	if r := c.Check(redacted); r != nil {
		return r
	}
	if !redacted || !bytes.Contains(c.Attributes, []byte(profile.MaskedKey)) {
		if r := contacts.CanonicalObject("attributes", &c.Attributes); r != nil {
			return r
		}
	}
	if c.ConsentVersion != "" && c.ConsentVersion != f.ConsentVersion() {
		return refuse.Conflicts("consent_version", "the form has asked for another consent since the person read it")
	}
	if s.repeats(tx, &c) {
		tx.Reply = forms.Reply{Repeated: true}
		return nil
	}
	s.forms.Submitted(tx, f.ID)
	tx.Reply = forms.Reply{}
	o, made := s.find(&c)
	if o == profile.NoOrdinal {
		s.forms.Unconfirmable(tx, f.ID)
		return nil
	}
	d := s.host.Load(o)
	// A profile that was made may have refusals of before an erasure that was lifted.
	made = made && len(d.Consents) == 0 && len(d.Suppressions) == 0
	x := forms.Submission{ID: forms.NewSubmissionID(tx), Form: f.ID, Email: s.ownEmail(d, c.Email), AtMs: tx.AtMs, Channels: f.Consents(&c), Lists: f.Lists, Values: c.Values}
	if made && (c.Email == "" || !f.DoubleOptIn && !s.host.DoubleOptIn()) {
		s.take(tx, o, d, &x, false)
		return nil
	}
	s.hold(tx, o, d, &x, made)
	return nil
}

// ownEmail is an e-mail address as the profile in d has it. A message goes there, and not to
// the spelling of the submission: the two may be delivered to different people, as mail to
// ẞ in a domain is, though one is the other's normal form.
func (s *State) ownEmail(d *profile.Document, sent string) string {
	h, ok := s.profiles.Hasher.HashIdentifier(identifier.Email, []byte(sent), &s.normal)
	if !ok {
		return sent
	}
	for i := range d.Identifiers {
		id := &d.Identifiers[i]
		if have, ok := s.profiles.Hasher.HashIdentifier(identifier.Email, id.Value, &s.normal); id.Kind == identifier.Email && !id.Shared && ok && have == h {
			return string(id.Value)
		}
	}
	return sent
}

// repeats reports whether a submission repeats one. It remembers one that does not.
func (s *State) repeats(tx *feature.Tx, c *forms.Submit) bool {
	hash := func(key string) identifier.Hash {
		return s.profiles.Hasher.HashIdempotencyKey([]byte("form\x00"+c.ID+"\x00"+key), &s.normal)
	}
	for _, key := range c.Keys {
		switch v, ok, err := s.keys.Get(hash(key)); {
		case err != nil:
			panic(err) // the store is at fault; the record is named
		case ok && v.AtMs > s.host.KeysFromMs():
			return true
		}
	}
	s.keys.Put(hash(c.Keys[0]), dedup.Answer{AtMs: tx.AtMs})
	return false
}

// find finds the profile that a submission concerns, or makes one: that of its e-mail,
// of its phone only where no e-mail is given. It is none where an identifier is not taken, such
// as one of an erased person.
func (s *State) find(c *forms.Submit) (o uint32, made bool) {
	ev := eventlog.Event{Email: []byte(c.Email)}
	if c.Email == "" {
		ev = eventlog.Event{Phone: []byte(c.Phone)}
	}
	for k, value := range identrules.Of(&ev) {
		if h, ok := s.profiles.Hasher.HashIdentifier(identifier.Kind(k), value, &s.normal); ok && len(value) > 0 {
			if o := s.profiles.Identifiers.Owner(h); o != profile.NoOrdinal {
				return o, false
			}
		}
	}
	o, refusal := s.host.MakeProfile(ev)
	if refusal != nil {
		return profile.NoOrdinal, false
	}
	return o, true
}

// hold has a person asked to confirm a submission. A profile that was made for it
// gets the consent to e-mail, which is pending.
func (s *State) hold(tx *feature.Tx, o uint32, d *profile.Document, x *forms.Submission, made bool) {
	if h, ok := s.profiles.Hasher.HashIdentifier(identifier.Phone, []byte(x.Phone), &s.normal); ok {
		if owner := s.profiles.Identifiers.Owner(h); owner != o && owner != profile.NoOrdinal {
			x.Phone = "" // another profile has it: it would be left out later
		}
	}
	list := s.forms.Held(tx, o)
	hold := s.forms.MayHold(tx, list, x.Form)
	switch {
	case hold == forms.HoldAgain:
		return
	case hold == forms.HoldNot, x.Email == "", d.GravestSuppression(profile.ChannelEmail) > profile.SuppressionPending,
		s.sending.QueueConfirmation(tx, o, x.Email, x.ID) != nil:
		s.forms.Unconfirmable(tx, x.Form)
		if made && x.Email != "" && d.Suppress(profile.Suppression{Channel: profile.ChannelEmail, Reason: profile.SuppressionPending, SinceMs: tx.AtMs}, tx.Rules) {
			s.host.Update(o, d, engine.FieldConsents) // it is not confirmed
		}
		return
	}
	s.forms.Hold(tx, o, list, *x)
	if !made {
		return
	}
	d.Evidence = &profile.Evidence{Form: x.Form, Client: x.Client, Wording: x.Wording}
	var events []feature.Event
	for _, channel := range x.Channels {
		if channel == profile.Channels[profile.ChannelEmail] {
			_, events = s.contacts.GiveConsent(tx, o, d, channel, forms.Source)
		}
	}
	d.Suppress(profile.Suppression{Channel: profile.ChannelEmail, Reason: profile.SuppressionPending, SinceMs: tx.AtMs}, tx.Rules)
	s.host.Update(o, d, engine.FieldConsents, events...)
}

// confirm carries out a submission that was held: the owner of its e-mail confirms it.
func (s *State) confirm(tx *feature.Tx, c forms.Confirm) *refuse.Refusal {
	o, d, refusal := s.host.Profile(c.Profile)
	if refusal != nil {
		return refusal
	}
	list := s.forms.Held(tx, o)
	for i := range list {
		x := list[i]
		if x.ID != c.Submission {
			continue
		}
		if !x.Done {
			list[i] = forms.Submission{ID: x.ID, Form: x.Form, AtMs: x.AtMs, Done: true}
			s.forms.PutHeld(tx, o, list)
			s.take(tx, o, d, &x, true)
		}
		return nil
	}
	return refuse.NotFound("submission", "this submission is not waiting to be confirmed; it may be older than a week")
}
