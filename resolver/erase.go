package resolver

import (
	"github.com/musterhq/muster/resolver/emaildir"
	"github.com/musterhq/muster/resolver/internal/checkpoint"

	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/internal/webhookevent"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/identifier"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/state"
	"github.com/musterhq/muster/resolver/outbox"
)

// The commands of erasure.
const (
	CommandContactErase = "contact.erase"
	CommandErasureDone  = "erasure.done"
	CommandErasureLift  = "erasure.lift"
)

// MessageErased is the refusal of an identifier whose person was erased.
const MessageErased = "this person was erased and may not be stored again"

const (
	// maxErasures bounds the marks of an account. One takes some 60 bytes.
	maxErasures = 5_000_000
	// maxErasing bounds the erasures that history has not confirmed.
	maxErasing = 10_000
)

// flagErased marks the header of a profile of which nothing else is left. Its
// ordinal stays taken, its ids are nobody's.
const flagErased = 1

// ContactErase removes a profile for good, with all that was merged into it.
type ContactErase struct {
	ID string `json:"id"`
}

// ErasureDone says that history has erased what was erased below an offset.
type ErasureDone struct {
	UpTo int64 `json:"up_to"`
	// RefusedUpTo says that nothing is left below an offset of what was refused because
	// of erased persons.
	RefusedUpTo int64 `json:"refused_up_to,omitempty"`
}

// ErasureLift lets an identifier be stored again. It is named by its hash, or
// by kind and value.
type ErasureLift struct {
	Hash  string `json:"hash,omitempty"` // in hexadecimal
	Kind  string `json:"kind,omitempty"`
	Value string `json:"value,omitempty"`
}

// Erasure keeps an identifier of an erased person out. The identifier itself is
// not kept, only its hash under the account's key.
type Erasure struct {
	Hash string `json:"hash,omitempty"`
	Kind string `json:"kind"`
	AtMs int64  `json:"at_ms"`
	// At is the offset of the record that erased the person: what comes later and
	// has the identifier is refused.
	At int64 `json:"at,omitempty"`
	// Refused is what the person, or the account, had refused by then. It holds
	// again for whoever the identifier is stored with after the mark was lifted.
	Refused []refused `json:"refused,omitempty"`
	// LiftedMs is when the mark was lifted, 0 while it keeps the identifier out.
	LiftedMs int64 `json:"lifted_ms,omitempty"`
}

// refused is an opt-out of a channel, or a block of one.
type refused struct {
	Channel byte                `json:"channel"`
	Reason  profile.BlockReason `json:"reason,omitempty"` // 0 for an opt-out
	SinceMs int64               `json:"since_ms"`
}

// refusalsOf are the opt-outs and blocks of a profile. Their source is not among
// them: it is a text that may name somebody.
func refusalsOf(d *profile.Document) (out []refused) {
	for _, c := range d.Consents {
		if c.Status == profile.ConsentUnsubscribed {
			out = append(out, refused{Channel: c.Channel, SinceMs: c.SinceMs})
		}
	}
	for _, b := range d.Blocks {
		if b.Reason != profile.BlockPending {
			out = append(out, refused{Channel: b.Channel, Reason: b.Reason, SinceMs: b.SinceMs})
		}
	}
	return out
}

// restoreSuppression makes refusals hold for a profile that an identifier is attached to whose
// mark was lifted. The mark is done with: the profile has them from then on.
func (m *Machine) restoreSuppression(a *account, d *profile.Document, h identifier.Hash) (changed bool) {
	if len(a.lifted) == 0 {
		return false
	}
	for _, x := range a.lifted[h].Refused {
		changed = true
		if x.Reason != 0 {
			d.Block(profile.Block{Channel: x.Channel, Reason: x.Reason, SinceMs: x.SinceMs})
			continue
		}
		d.MergeConsent(profile.Consent{Channel: x.Channel, Status: profile.ConsentUnsubscribed, SinceMs: x.SinceMs})
		if !d.Subscribed(x.Channel) {
			d.Unblock(x.Channel, profile.BlockPending)
		}
	}
	if _, ok := a.lifted[h]; ok {
		delete(a.lifted, h)
		m.store.PutEntity(erasedKey(a.number, erasedMark, h[:]), nil)
	}
	return changed
}

// erasing is an erasure that history has not confirmed yet.
type erasing struct {
	UpTo     int64    `json:"up_to"` // rows of the ordinals are below
	Ordinals []uint32 `json:"ordinals"`
	// Hashes are those of the person's identifiers, in hexadecimal.
	Hashes []string `json:"hashes,omitempty"`
}

// refusedRange says that what was refused because of erased persons may be in the
// log, from an offset on.
type refusedRange struct {
	From int64 `json:"from"`
	UpTo int64 `json:"up_to"`
}

// The names of entities of kind entityErased.
const (
	erasedMark    = 'h' // a hash
	erasedTask    = 't' // an offset
	erasedRefused = 'r' // nothing
)

func erasedKey(account uint64, what byte, name []byte) string {
	return state.EntityKey(account, state.EntityErased, string(append([]byte{what}, name...)))
}

func (t *erasing) key(account uint64) string {
	return erasedKey(account, erasedTask, binary.BigEndian.AppendUint64(nil, uint64(t.UpTo)))
}

// gone reports whether nothing is left of a profile.
func (a *account) gone(ordinal uint32) bool { return a.headers.Get(ordinal).Flags&flagErased != 0 }

// erased reports whether an identifier is kept out.
func (a *account) erased(h identifier.Hash) bool {
	if len(a.erasures) == 0 {
		return false
	}
	_, is := a.erasures[h]
	return is
}

// keepsOut is erased of an identifier of a kind. The anonymous id of an erased person is the
// next one's on the device: it leads to nothing of the erased person.
func (a *account) keepsOut(k IdentityKind, h identifier.Hash, how identifierRules) bool {
	return a.erased(h) && (k != IdentityAnonymous || !how.calls)
}

func refuseErased(k IdentityKind) *Refusal {
	return &Refusal{Code: "forbidden", Field: "user." + k.String(), Message: "user." + k.String() + ": " + MessageErased}
}

// refuseErased is refuseErased of a record whose text is to leave the log.
func (m *Machine) refuseErased(k IdentityKind) *Refusal {
	m.refusedErased = true
	return refuseErased(k)
}

// noteErased notes that the record's text is to leave the log if it names an erased
// person.
func (m *Machine) noteErased(a *account, h identifier.Hash) {
	if a.erased(h) {
		m.refusedErased = true
	}
}

// noteRefused notes that the record at the offset was refused because of an erased
// person.
func (m *Machine) noteRefused(a *account, offset int64) {
	if !m.refusedErased {
		return
	}
	m.refusedErased = false
	if a.refused.UpTo == 0 {
		a.refused.From = offset
	}
	a.refused.UpTo = offset + 1
	m.saveRefused(a)
}

func (m *Machine) saveRefused(a *account) {
	var b []byte
	if a.refused.UpTo != 0 {
		b = must.JSON(a.refused)
	}
	m.store.PutEntity(erasedKey(a.number, erasedRefused, nil), b)
}

// eraseContact forgets a profile. What one may have is bounded, and so is this,
// but for the sets it may be in, which are looked at one by one.
func (m *Machine) eraseContact(cmd *command, c ContactErase) *Refusal {
	a := cmd.account
	o, d, refusal := m.profileOf(a, c.ID)
	if refusal != nil {
		return refusal
	}
	switch {
	case len(a.erasing) >= maxErasing:
		return atLimit("", "%d erasures wait for history to take part, the most that can; try again later", maxErasing)
	case len(a.erasures)+len(a.lifted)+len(d.Identifiers) > maxErasures:
		return atLimit("", "this account keeps %d identifiers of erased persons out, the most it can; lift some first", maxErasures)
	case m.emails.Unreleased()+2*len(d.Identifiers) > emaildir.MaxReleases:
		return atLimit("", "%d e-mails wait to be released, the most that can; try again later", m.emails.Unreleased())
	}
	task := &erasing{UpTo: cmd.out.Offset + 1, Ordinals: []uint32{o}}
	for _, p := range d.Merged {
		task.Ordinals = append(task.Ordinals, p.Ordinal)
	}
	m.keepOut(a, d, task)
	for _, h := range d.GivenUp {
		a.ids.Remove(h)
		task.Hashes = append(task.Hashes, hex.EncodeToString(h[:]))
	}
	m.forgetTexts(a, d)
	for _, v := range d.Devices {
		a.ids.Remove(a.hasher.HashDevice(v.Kind, v.Address, &m.normal))
	}
	all := roaring.BitmapOf(task.Ordinals...)
	for name, s := range a.sets.All() {
		if !isRefusedRowsSet(name) && s.Bits.Intersects(all) {
			for _, x := range task.Ordinals {
				s.Remove(x)
			}
		}
	}
	a.eraseLooked(all)
	flowKeys := a.flows.Erase(o)
	conflicts := slices.Clone(d.Conflicts)
	a.engine.Touch(o)
	a.engine.Erase(o)
	for _, x := range task.Ordinals {
		h := a.headers.Edit(x)
		h.Flags |= flagErased
		h.LastEvent = 0
	}
	m.removeDocument(a, o)
	m.store.Columns.Forget(a.index)
	indexed := m.index.Before()
	for _, f := range a.features() {
		if e, ok := f.(feature.Eraser); ok {
			if err := e.Erase(m.tx(a), task.Ordinals...); err != nil {
				panic(err) // the store is at fault; the record is named
			}
		}
	}
	// Of nobody any more: it is not erased with the next one.
	m.notify(a, outbox.NoProfile, webhookevent.ContactErased, properties{"profile_id": c.ID})
	m.forgetConflicts(a, conflicts, all)
	a.erasing = append(a.erasing, task)
	m.store.PutEntity(task.key(a.number), must.JSON(task))
	m.scrub = append(m.scrub, checkpoint.Scrubbed{Account: a.number, Ordinals: task.Ordinals, Keys: flowKeys, Indexed: indexed})
	return nil
}

// keepOut frees a profile's identifiers and marks them.
func (m *Machine) keepOut(a *account, d *profile.Document, task *erasing) {
	refused := refusalsOf(d)
	for _, id := range d.Identifiers {
		h, ok := a.hasher.HashIdentifier(id.Kind, id.Value, &m.normal)
		if !ok || id.Shared {
			continue
		}
		a.ids.Remove(h)
		task.Hashes = append(task.Hashes, hex.EncodeToString(h[:]))
		x := Erasure{Kind: id.Kind.String(), AtMs: m.logTime, At: task.UpTo - 1, Refused: refused}
		a.erasures[h] = x
		m.store.PutEntity(erasedKey(a.number, erasedMark, h[:]), must.JSON(x))
		if id.Kind != IdentityEmail {
			continue
		}
		m.removeCaseFold(a, id.Value, h)
		m.unreserve(a, string(id.Value))
	}
}

// forgetTexts removes errors that name the profile from what is known of campaigns
// and endpoints: what a relay or a receiver answers often has the address in it.
func (m *Machine) forgetTexts(a *account, d *profile.Document) {
	names := func(text string) bool {
		return slices.ContainsFunc(d.Identifiers, func(id profile.Identifier) bool {
			return len(id.Value) > 2 && strings.Contains(strings.ToLower(text), strings.ToLower(string(id.Value)))
		})
	}
	a.campaigns.ForgetErrors(names)
	a.outbox.ForgetErrors(names)
}

// forgetConflicts removes what other profiles have noted of the erased one's
// identifiers.
func (m *Machine) forgetConflicts(a *account, conflicts []profile.Conflict, gone *roaring.Bitmap) {
	for _, c := range conflicts {
		if c.Other == profile.NoOrdinal || gone.Contains(c.Other) {
			continue
		}
		o := a.root(c.Other)
		if a.gone(o) {
			continue
		}
		if err := m.load(a, o, &m.other); err != nil {
			panic(err) // the store is at fault; the record is named
		}
		kept := slices.DeleteFunc(slices.Clone(m.other.Conflicts), func(x profile.Conflict) bool { return x.Other != profile.NoOrdinal && gone.Contains(x.Other) })
		if len(kept) != len(m.other.Conflicts) {
			m.other.Conflicts = append(m.other.Conflicts[:0], kept...)
			m.save(a, o, &m.other)
		}
	}
}

// finishErasures ends what history has confirmed.
func (m *Machine) finishErasures(cmd *command, c ErasureDone) *Refusal {
	a := cmd.account
	m.erasedBelow = max(m.erasedBelow, c.UpTo)
	for len(a.erasing) > 0 && a.erasing[0].UpTo <= c.UpTo {
		m.store.PutEntity(a.erasing[0].key(a.number), nil)
		a.erasing = a.erasing[1:]
	}
	switch r := &a.refused; {
	case r.UpTo == 0 || c.RefusedUpTo <= r.From:
	case c.RefusedUpTo >= r.UpTo:
		*r = refusedRange{}
		m.saveRefused(a)
	default:
		r.From = c.RefusedUpTo
		m.saveRefused(a)
	}
	return nil
}

func (m *Machine) liftErasure(cmd *command, c ErasureLift) *Refusal {
	a := cmd.account
	h, ok := a.erasureOf(c)
	if !ok {
		return notFound("", "no erased person had this identifier")
	}
	x := a.erasures[h]
	delete(a.erasures, h)
	if len(x.Refused) == 0 {
		m.store.PutEntity(erasedKey(a.number, erasedMark, h[:]), nil)
		return nil
	}
	x.LiftedMs = m.logTime
	a.lifted[h] = x
	m.store.PutEntity(erasedKey(a.number, erasedMark, h[:]), must.JSON(x))
	return nil
}

// erasureOf finds the mark that is meant.
func (a *account) erasureOf(c ErasureLift) (h identifier.Hash, ok bool) {
	if c.Hash != "" {
		h, err := identifier.ParseHash(c.Hash)
		return h, err == nil && a.erased(h)
	}
	for k := range identifier.Kinds {
		if c.Kind != "" && k.String() != c.Kind {
			continue
		}
		var buf []byte
		if h, ok = a.hasher.HashIdentifier(k, []byte(c.Value), &buf); ok && a.erased(h) {
			return h, true
		}
	}
	return h, false
}

// loadErased reads an entity of kind entityErased. Tasks come in their order.
func (a *account) loadErased(name string, value []byte) error {
	if name == "" {
		return fmt.Errorf("erasure without a name")
	}
	switch what, rest := name[0], name[1:]; what {
	case erasedMark:
		var x Erasure
		if len(rest) != len(identifier.Hash{}) {
			return fmt.Errorf("erasure of the wrong length")
		}
		err := json.Unmarshal(value, &x)
		if x.LiftedMs != 0 {
			a.lifted[identifier.Hash([]byte(rest))] = x
		} else {
			a.erasures[identifier.Hash([]byte(rest))] = x
		}
		return err
	case erasedTask:
		t := new(erasing)
		err := json.Unmarshal(value, t)
		a.erasing = append(a.erasing, t)
		return err
	case erasedRefused:
		return json.Unmarshal(value, &a.refused)
	}
	return fmt.Errorf("%w: erasure of kind %q", ErrNewer, name[0])
}

// hashErased is the erasures' part of the state's hash.
func (a *account) hashErased(put func([]byte)) {
	for _, list := range [...]map[identifier.Hash]Erasure{a.erasures, a.lifted} {
		marks := make(map[string]Erasure, len(list))
		for h, x := range list {
			marks[string(h[:])] = x
		}
		hashMap(put, marks)
	}
	for _, t := range a.erasing {
		put(must.JSON(t))
	}
	if a.refused.UpTo != 0 {
		put(must.JSON(a.refused))
	}
}

// Erasures lists the identifiers that are kept out, in order of their hashes,
// behind one, limit at most.
func (v *View) Erasures(after string, limit int) []Erasure {
	hashes := slices.SortedFunc(maps.Keys(v.a.erasures), func(x, y identifier.Hash) int { return bytes.Compare(x[:], y[:]) })
	var out []Erasure
	for _, h := range hashes {
		x := v.a.erasures[h]
		if x.Hash = hex.EncodeToString(h[:]); x.Hash <= after {
			continue
		}
		if len(out) == limit {
			break
		}
		out = append(out, x)
	}
	return out
}

// ErasuresPending is how many erasures history has not confirmed.
func (v *View) ErasuresPending() int { return len(v.a.erasing) }

// ErasureBatch is what is to leave history, the log and the checkpoints at once. It stays
// as it is while records are applied.
type ErasureBatch struct {
	Account uint64
	// Erasures counts the persons of the batch. Where there is none, only the log is to be
	// rid of what was refused because of erased persons.
	Erasures int
	// Query is what history is asked to erase, once it has the rows below its cut; it is
	// empty where there are no erasures.
	Query   query.EraseQuery
	tasks   []*erasing
	refused refusedRange
}

// LogRange is where in the log the batch is to be redacted: from is the first offset and
// end is behind the last one. start is the first offset that the log has.
func (b *ErasureBatch) LogRange(start int64) (from, end int64) {
	from, end = start, b.refused.UpTo
	if b.Erasures == 0 {
		from = max(start, b.refused.From)
	}
	for _, t := range b.tasks {
		end = max(end, t.UpTo)
	}
	return from, end
}

// Done is the argument of [CommandErasureDone], which takes the batch's tasks off the state
// once all files are rid of them.
func (b *ErasureBatch) Done() ErasureDone { return ErasureDone{b.Query.Cut.UpTo, b.refused.UpTo} }

// maxErasureOrdinals bounds what history is asked to erase at once.
const maxErasureOrdinals = 1000

// NextErasures are the oldest erasures that history has not confirmed, and what was
// refused because of erased persons where the log can be redacted.
func (m *Machine) NextErasures(partition int, redacts bool) (b ErasureBatch, ok bool) {
	list := slices.SortedFunc(maps.Values(m.accounts), func(x, y *account) int { return cmp.Compare(x.number, y.number) })
	for _, a := range list {
		for _, t := range a.erasing {
			if b.Erasures > 0 && len(b.Query.Ordinals)+len(t.Ordinals) > maxErasureOrdinals {
				break
			}
			b.Account, b.Erasures = a.number, b.Erasures+1
			b.Query.Cut, b.Query.Account = query.Cut{Partition: partition, UpTo: t.UpTo}, a.number
			b.Query.Ordinals = append(b.Query.Ordinals, t.Ordinals...)
			b.tasks = append(b.tasks, t)
		}
		if b.Erasures > 0 || a.refused.UpTo > 0 && redacts {
			b.Account, b.refused = a.number, a.refused
			return b, true
		}
	}
	return b, false
}

// ErasedBelow is the offset behind the newest erasure that was ended by a record applied
// since the state was loaded, 0 where there is none.
func (m *Machine) ErasedBelow() int64 { return m.erasedBelow }

// ErasedProfiles lists the ordinals of erased profiles by account. Their events are in the
// log still, so whoever makes rows of history anew takes theirs out again.
func (m *Machine) ErasedProfiles() map[uint64][]uint32 {
	out := map[uint64][]uint32{}
	for _, a := range m.byIndex {
		for o := range a.headers.Count {
			if a.gone(o) {
				out[a.number] = append(out[a.number], o)
			}
		}
	}
	return out
}

// LastErased is the offset behind the newest erasure that left a mark, or was ended by
// a record applied since the state was loaded; 0 where there is none. The account is
// one of the partition's.
func (m *Machine) LastErased() (account uint64, upTo int64) {
	upTo = m.erasedBelow
	for number, a := range m.accounts {
		account = max(account, number)
		for _, marks := range [...]map[identifier.Hash]Erasure{a.erasures, a.lifted} {
			for _, x := range marks {
				upTo = max(upTo, x.At+1)
			}
		}
	}
	return account, upTo
}
