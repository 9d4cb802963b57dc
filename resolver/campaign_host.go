package resolver

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/inapp"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/pacing"
	"github.com/musterhq/muster/segment/engine"
)

// campaignHost is what campaigns see of their account and of the record that is being
// applied, see [campaigns.Host].
type campaignHost struct {
	m *Machine
	a *account.State
}

func (h campaignHost) NextNumber() uint32 { return h.a.NextCampaign }

func (h campaignHost) TakeNumber(number uint32) {
	h.a.NextCampaign = max(h.a.NextCampaign, number+1)
}

func (h campaignHost) SaveNumbers() { h.m.saveNumbers(h.a) }

func (h campaignHost) HasList(id string) bool { return h.a.Contacts.List(id) != nil }

func (h campaignHost) HasSegment(id string) bool { return h.a.Segments[id] != nil }

func (h campaignHost) ListMembers(id string) *roaring.Bitmap {
	return h.a.Contacts.Members(*h.a.Contacts.List(id))
}

func (h campaignHost) SegmentMembers(id string) (members *roaring.Bitmap, building string) {
	e := h.a.Engine
	if !e.Live(id) {
		return nil, h.a.Segments[id].Label()
	}
	return e.Members(id, e.NowMs()), ""
}

func (h campaignHost) Contacts() *roaring.Bitmap { return h.a.Sets.Members(contacts.SetContacts) }

func (h campaignHost) DeviceOwners() *roaring.Bitmap { return h.a.Sets.Members(contacts.SetDevices) }

func (h campaignHost) Set(name string) *profile.OrdinalSet { return h.a.Sets.Set(name) }

func (h campaignHost) Members(name string) *roaring.Bitmap { return h.a.Sets.Members(name) }

func (h campaignHost) DropSet(name string) { h.a.DropSet(h.m.store, name) }

func (h campaignHost) Root(ordinal uint32) uint32 { return h.a.Profiles.Root(ordinal) }

func (h campaignHost) Reach(ordinal uint32, media []string) (reasons []string, merged []profile.MergedProfile) {
	d := &h.m.tx.profiles.Doc
	if err := h.a.Profiles.Load(ordinal, d); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	reasons = make([]string, len(media))
	for i, medium := range media {
		reasons[i] = h.a.WhyUnreachable(d, medium)
	}
	return reasons, d.Merged
}

func (h campaignHost) NoteOutcome(ordinal uint32) { h.m.noteOutcome(h.a, ordinal) }

func (h campaignHost) Record(r campaigns.Report) {
	m, d := h.m, &h.m.tx.profiles.Doc
	if err := h.a.Profiles.Load(r.Ordinal, d); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	if r.Result == campaigns.ResultSent && r.Medium == inapp.Channel {
		h.deliverInApp(&r)
	}
	event := feature.Event{Properties: r.Properties}
	h.a.Sending.NoteDomain(event.Properties, r.Medium, d)
	fields := h.a.Sending.NoteResult(m.tx.on(h.a), d, &event, r.Medium, r.Result, r.Reason)
	retired := dropDeadDevices(h.a, r.Ordinal, d, r.Retired)
	if len(retired) > 0 {
		fields |= engine.FieldDevices
	}
	m.updateProfile(&m.tx, r.Ordinal, d, fields, append([]feature.Event{event}, retired...)...)
}

// dropDeadDevices takes devices off the profile in d whose push service says that they are
// dead, by their addresses, and returns the events to record.
func dropDeadDevices(a *account.State, ordinal uint32, d *profile.Document, dead []string) []feature.Event {
	return a.Contacts.DropDevices(ordinal, d, contacts.RetiredDead, func(v *profile.Device) bool { return slices.Contains(dead, string(v.Address)) })
}

func (h campaignHost) MayGo(ordinal uint32, medium string, number uint32) (untilMs int64, reason string) {
	return h.m.mayGo(h.a, ordinal, medium, pacing.OfCampaign(number))
}

func (h campaignHost) Count(ordinal uint32, medium string, number uint32) {
	h.m.countMessage(h.a, ordinal, medium, pacing.OfCampaign(number))
}

func (h campaignHost) Uncount(ordinal uint32, number uint32) {
	uncountMessage(h.a, ordinal, pacing.OfCampaign(number))
}

func (h campaignHost) Local(ordinal uint32, wallMs int64) int64 {
	d := &h.m.tx.profiles.Doc
	if err := h.a.Profiles.Load(ordinal, d); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	return h.a.Pacing.Local(d, wallMs)
}

func (h campaignHost) AccountLocal(wallMs int64) int64 { return h.a.Pacing.AccountLocal(wallMs) }

func (h campaignHost) EmailCredits() int64 { return h.a.EmailCredits }

func (h campaignHost) SpendCredits(n int64) { h.m.spendCredits(h.a, n) }

func (h campaignHost) GiveBack(medium string, n uint64) { h.m.giveBack(h.a, medium, n) }

func (h campaignHost) TemplateUsers(id string) string {
	return account.JoinUses(h.a.UsesOfTemplate(id))
}

func (h campaignHost) ConfirmTemplate() string { return h.a.Settings.ConfirmTemplateID }

func (h campaignHost) MayBeSender(address string) *Refusal { return h.a.Domains.MayBeSender(address) }

func (h campaignHost) CheckEpoch(epoch uint64) *Refusal { return h.m.checkEpoch(epoch) }

func (h campaignHost) Notify(event string, data map[string]any) {
	h.m.notify(h.a, outbox.NoProfile, event, data)
}
