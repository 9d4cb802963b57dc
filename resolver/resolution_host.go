package resolver

import (
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/resolution"
)

// resolutionHost is what identity resolution sees of an account and of the record that is
// being applied, see [resolution.Host].
type resolutionHost struct {
	m *Machine
	a *account.State
}

func (h resolutionHost) ListIDs() map[uint32]string { return h.a.Contacts.ListIDs() }

func (h resolutionHost) Erased(x identifier.Hash) bool { return h.a.Erasure.Erased(x) }

func (h resolutionHost) NoteRefused() { h.a.Erasure.NoteRefused() }

func (h resolutionHost) RefuseErased(k IdentityKind) *Refusal { return h.a.RefuseErased(k) }

func (h resolutionHost) Restore(d *profile.Document, x identifier.Hash) bool {
	return h.a.Erasure.Restore(h.m.tx.on(h.a), d, x)
}

func (h resolutionHost) Merge(winner uint32, merged *resolution.Merged) {
	h.a.Contacts.Merge(winner, merged.Ordinal, merged.Lists, merged.Devices)
	h.a.Features.Merge(h.m.tx.on(h.a), winner, merged.Ordinal)
}

func (h resolutionHost) LeaveMerged(d *profile.Document, ordinals []uint32) {
	h.a.Contacts.LeaveMerged(d, ordinals...)
}

func (h resolutionHost) LogConsents(ordinal uint32, changes []profile.ConsentChange) {
	if !h.a.HasConsentLog {
		return
	}
	if err := h.a.ConsentLog.Add(ordinal, changes); err != nil {
		panic(err) // the store is at fault; the record is named
	}
}

func (h resolutionHost) Evict(devices []profile.Device) { h.a.Contacts.Evict(devices) }
