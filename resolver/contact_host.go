package resolver

import (
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/segment/engine"
)

// contactHost is what contacts see of their account and of the record that is being
// applied, see [contacts.Host].
type contactHost struct {
	m *Machine
	a *account.State
}

func (h contactHost) NextNumber() uint32 { return h.a.NextList }

func (h contactHost) TakeNumber(number uint32) { h.a.NextList = max(h.a.NextList, number+1) }

func (h contactHost) SaveNumbers() { h.m.saveNumbers(h.a) }

func (h contactHost) ListUsers(id string) string { return account.JoinUses(h.a.UsesOfList(id)) }

func (h contactHost) DropSet(name string) { h.a.DropSet(h.m.store, name) }

func (h contactHost) Profile(id string) (uint32, *profile.Document, *Refusal) {
	return h.m.profileOf(h.a, id)
}

func (h contactHost) Other(ordinal uint32) *profile.Document {
	if err := h.a.Profiles.Load(ordinal, &h.m.tx.other); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return &h.m.tx.other
}

func (h contactHost) ProfileID(ordinal uint32) string {
	return h.a.Profiles.Headers.Get(ordinal).ID.String()
}

func (h contactHost) Update(ordinal uint32, d *profile.Document, changed engine.Fields, events ...feature.Event) {
	h.m.updateProfile(&h.m.tx, ordinal, d, changed, events...)
}

func (h contactHost) Save(ordinal uint32, d *profile.Document) { h.a.Profiles.Save(ordinal, d) }

func (h contactHost) DoubleOptIn() bool { return h.a.Settings.DoubleOptIn }

func (h contactHost) AskToConfirm(ordinal uint32, d *profile.Document) []feature.Event {
	return h.a.Sending.AskToConfirm(h.m.tx.on(h.a), ordinal, d)
}

func (h contactHost) BeginConsentLog() { h.m.beginConsentLog(h.a) }

func (h contactHost) Redacted() bool { return h.m.tx.redacted }
