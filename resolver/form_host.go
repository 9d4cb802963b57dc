package resolver

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment/engine"
)

// formHost is what forms and their submissions see of their account and of the record that is
// being applied, see [forms.Host] and [signup.Host].
type formHost struct {
	m *Machine
	a *account.State
}

func (h formHost) HasList(id string) bool { return h.a.Contacts.List(id) != nil }

func (h formHost) BeginConsentLog() { h.m.beginConsentLog(h.a) }

func (h formHost) HashPhone(phone string) identifier.Hash {
	x, _ := h.a.Profiles.Hasher.HashIdentifier(IdentityPhone, []byte(phone), &h.m.tx.normal)
	return x
}

func (h formHost) Redacted() bool { return h.m.tx.redacted }

func (h formHost) KeysFromMs() int64 { return h.a.KeysFromMs(h.m.logTime) }

func (h formHost) DoubleOptIn() bool { return h.a.Settings.DoubleOptIn }

func (h formHost) IdentifierCap() int { return h.a.Settings.IdentifierCap }

func (h formHost) Profile(id string) (uint32, *profile.Document, *Refusal) {
	return h.m.profileOf(h.a, id)
}

func (h formHost) Load(ordinal uint32) *profile.Document {
	if err := h.a.Profiles.Load(ordinal, &h.m.tx.profiles.Doc); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return &h.m.tx.profiles.Doc
}

func (h formHost) MakeProfile(of eventlog.Event) (uint32, *Refusal) { return h.m.makeProfile(h.a, of) }

func (h formHost) Update(ordinal uint32, d *profile.Document, changed engine.Fields, events ...feature.Event) {
	h.m.updateProfile(&h.m.tx, ordinal, d, changed, events...)
}

func (h formHost) NotifyContact(ordinal uint32, event string) { h.m.notifyContact(h.a, ordinal, event) }
