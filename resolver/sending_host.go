package resolver

import (
	"encoding/json"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/orders"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment/engine"
)

// sendingHost is what the sending of messages sees of an account and of the record that is
// being applied, see [sending.Host].
type sendingHost struct {
	m *Machine
	a *account.State
}

func (h sendingHost) Command() string { return h.m.tx.name }

func (h sendingHost) KeysFromMs() int64 { return h.a.KeysFromMs(h.m.logTime) }

func (h sendingHost) ConfirmTemplate() string { return h.a.Settings.ConfirmTemplateID }

func (h sendingHost) NextCampaign() uint32 { return h.a.NextCampaign }

func (h sendingHost) EmailCredits() int64 { return h.a.EmailCredits }

func (h sendingHost) SpendCredits(n int64) bool { return h.m.spendCredits(h.a, n) }

func (h sendingHost) GiveBack(medium string, n uint64) { h.m.giveBack(h.a, medium, n) }

func (h sendingHost) Profile(id string) (uint32, *profile.Document, *Refusal) {
	return h.m.profileOf(h.a, id)
}

func (h sendingHost) ErasedProfile() *Refusal {
	h.a.Erasure.NoteRefused()
	return resolution.NoProfile()
}

func (h sendingHost) MakeProfile(email string) (uint32, *Refusal) {
	return h.m.makeProfile(h.a, eventlog.Event{Email: []byte(email)})
}

func (h sendingHost) Update(ordinal uint32, d *profile.Document, changed engine.Fields, events ...feature.Event) {
	h.m.updateProfile(&h.m.tx, ordinal, d, changed, events...)
}

func (h sendingHost) CheckOutcome(epoch uint64, result string) *Refusal {
	return h.m.checkOutcome(epoch, result)
}

func (h sendingHost) NoteOutcome(ordinal uint32) { h.m.noteOutcome(h.a, ordinal) }

func (h sendingHost) DropDevices(ordinal uint32, d *profile.Document, dead []string) []feature.Event {
	return dropDeadDevices(h.a, ordinal, d, dead)
}

func (h sendingHost) NextChannel(it *outbox.Item, payload []byte) {
	var of struct {
		Event json.RawMessage `json:"event"`
	}
	if err := json.Unmarshal(payload, &of); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	h.a.Flows.NextChannel(it.Flow, it.Step, it.Ordinal, it.Kind, of.Event)
}

func (h sendingHost) MessageFailed(it *outbox.Item) {
	h.a.Flows.MessageFailed(it.Flow, it.Step, it.Kind)
}

func (h sendingHost) Uncount(message *outbox.Item) {
	if message.Ordinal != outbox.NoProfile {
		uncountMessage(h.a, h.a.Profiles.Root(message.Ordinal), messageOf(message))
	}
}

func (h sendingHost) Touched(ordinal uint32, kind string, source orders.Source) {
	h.m.noteTouch(h.a, ordinal, kind, source)
}

func (h sendingHost) Answer(call *outbox.Item, delivered bool, reason string) {
	h.a.Flows.Answer(call.Flow, call.Ordinal, call.Seq, delivered, reason)
}
