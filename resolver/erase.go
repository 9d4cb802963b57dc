package resolver

import (
	"maps"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/internal/checkpoint"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/outbox"
)

// The commands of erasure.
const (
	CommandContactErase = "contact.erase"
)

// ContactErase removes a profile for good, with all that was merged into it.
type ContactErase struct {
	ID string `json:"id"`
}

// eraseContact erases a profile. The work is bounded like what a profile may have,
// except for the sets it may be in, which are looked at one by one.
func (m *Machine) eraseContact(tx *transaction, c ContactErase) *Refusal {
	a := tx.account
	o, d, refusal := m.profileOf(a, c.ID)
	if refusal != nil {
		return refusal
	}
	if r := a.Erasure.Room(len(d.Identifiers)); r != nil {
		return r
	}
	if m.emailDirectory.Unreleased()+2*len(d.Identifiers) > emaildir.MaxReleases {
		return atLimit("", "%d e-mails wait to be released, the most that can; try again later", m.emailDirectory.Unreleased())
	}
	task := &erasure.Task{UpTo: tx.out.Offset + 1, Ordinals: []uint32{o}}
	for _, p := range d.Merged {
		task.Ordinals = append(task.Ordinals, p.Ordinal)
	}
	m.keepOut(a, d, task)
	for _, h := range d.GivenUp {
		a.Profiles.Identifiers.Remove(h)
		task.AddHash(h)
	}
	m.forgetTexts(a, d)
	for _, v := range d.Devices {
		a.Profiles.Identifiers.Remove(a.Profiles.Hasher.HashDevice(v.Kind, v.Address, &tx.normal))
	}
	all := roaring.BitmapOf(task.Ordinals...)
	for name, s := range a.Sets.All() {
		if !account.IsRefusedRowsSet(name) && s.Bits.Intersects(all) {
			for _, x := range task.Ordinals {
				s.Remove(x)
			}
		}
	}
	keys := append(a.Features.Keys(task.Ordinals...), a.Flows.Erase(o)...)
	conflicts := slices.Clone(d.Conflicts)
	a.Engine.Touch(o)
	a.Engine.Erase(o)
	a.Profiles.Erase(task.Ordinals)
	a.Profiles.Remove(o)
	m.store.Columns.Forget(a.Index)
	indexed := m.index.Before()
	a.Features.Erase(tx.on(a), task.Ordinals...)
	// Without a profile: the notification must not go with the profile's erasure.
	m.notify(a, outbox.NoProfile, webhookevent.ContactErased, feature.Properties{"profile_id": c.ID})
	m.forgetConflicts(a, conflicts, all)
	a.Erasure.Begin(tx.on(a), task)
	m.scrub = append(m.scrub, checkpoint.Scrubbed{Account: a.Number, Ordinals: task.Ordinals, Keys: keys, Indexed: indexed})
	return nil
}

// rulesLateOutcomes is the version of the rules from which on the outcome of a message to a
// profile that was erased meanwhile leaves the log.
const rulesLateOutcomes = 26

// noteOutcome notes that the outcome of a message is to leave the log, where its profile is
// erased. The answer of a provider may name the person, and this one was on its way to the
// log when the erasure was applied: nothing was taken out of it before it was stored.
func (m *Machine) noteOutcome(a *account.State, ordinal uint32) {
	if m.rules >= rulesLateOutcomes && a.IsErased(ordinal) {
		a.Erasure.NoteRefused()
	}
}

// keepOut frees a profile's identifiers and marks them.
func (m *Machine) keepOut(a *account.State, d *profile.Document, task *erasure.Task) {
	refused := erasure.RefusedBy(d)
	for _, id := range d.Identifiers {
		h, ok := a.Profiles.Hasher.HashIdentifier(id.Kind, id.Value, &m.tx.normal)
		if !ok || id.Shared {
			continue
		}
		a.Profiles.Release(id.Kind, id.Value, h)
		a.Erasure.KeepOut(m.tx.on(a), task, id.Kind, h, refused)
		switch id.Kind {
		case IdentityEmail:
			m.unreserve(a, string(id.Value))
		case IdentityPhone:
			a.Conversations.Forget(m.tx.on(a), h)
		}
	}
}

// forgetTexts removes errors that name the profile from what is known of campaigns
// and endpoints: what a relay or a receiver answers often has the address in it.
func (m *Machine) forgetTexts(a *account.State, d *profile.Document) {
	names := func(text string) bool {
		return slices.ContainsFunc(d.Identifiers, func(id profile.Identifier) bool {
			return len(id.Value) > 2 && strings.Contains(strings.ToLower(text), strings.ToLower(string(id.Value)))
		})
	}
	a.Campaigns.ForgetErrors(names)
	a.Outbox.ForgetErrors(names)
}

// forgetConflicts removes what other profiles have noted of the erased one's
// identifiers.
func (m *Machine) forgetConflicts(a *account.State, conflicts []profile.Conflict, gone *roaring.Bitmap) {
	for _, c := range conflicts {
		if c.Other == profile.NoOrdinal || gone.Contains(c.Other) {
			continue
		}
		o := a.Profiles.Root(c.Other)
		if a.Profiles.Erased(o) {
			continue
		}
		if err := a.Profiles.Load(o, &m.tx.other); err != nil {
			panic(err) // the store is at fault; the record is named
		}
		kept := slices.DeleteFunc(slices.Clone(m.tx.other.Conflicts), func(x profile.Conflict) bool { return x.Other != profile.NoOrdinal && gone.Contains(x.Other) })
		if len(kept) != len(m.tx.other.Conflicts) {
			m.tx.other.Conflicts = append(m.tx.other.Conflicts[:0], kept...)
			a.Profiles.Save(o, &m.tx.other)
		}
	}
}

// NextErasures are the oldest erasures that history has not confirmed, and what was
// refused because of erased persons where the log can be redacted.
func (m *Machine) NextErasures(partition int, redacts bool) (b erasure.Batch, ok bool) {
	for _, number := range slices.Sorted(maps.Keys(m.accounts)) {
		if b, ok = m.accounts[number].Erasure.Next(partition, redacts); ok {
			return b, true
		}
	}
	return b, false
}

// ErasedBelow is the offset behind the newest erasure that was ended by a record applied
// since the state was loaded, 0 where there is none.
func (m *Machine) ErasedBelow() (upTo int64) {
	for _, a := range m.byIndex {
		upTo = max(upTo, a.Erasure.DoneBelow())
	}
	return upTo
}

// ErasedProfiles lists the ordinals of erased profiles by account. Their events are in the
// log still, so a rebuild of history must leave out their rows again.
func (m *Machine) ErasedProfiles() map[uint64][]uint32 {
	out := map[uint64][]uint32{}
	for _, a := range m.byIndex {
		for o := range a.Profiles.Headers.Count {
			if a.Profiles.Erased(o) {
				out[a.Number] = append(out[a.Number], o)
			}
		}
	}
	return out
}

// LastErased is the offset behind the newest erasure that left a mark, or was ended by
// a record applied since the state was loaded; 0 where there is none. The account is
// one of the partition's.
func (m *Machine) LastErased() (account uint64, upTo int64) {
	for number, a := range m.accounts {
		account, upTo = max(account, number), max(upTo, a.Erasure.Newest())
	}
	return account, upTo
}
