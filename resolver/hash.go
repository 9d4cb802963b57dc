package resolver

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// Hash is a hash of the whole logical state: the same records give the same
// hash, whatever was cached, checkpointed or compacted (R1). It reads
// everything, so it is for tests and audits.
func (m *Machine) Hash() (string, error) {
	h := sha256.New()
	put := func(b []byte) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	fmt.Fprintf(h, "next %d time %d task %d\n", m.next, m.logTime, m.nextTask)
	for _, id := range m.records.list() {
		h.Write(id[:])
	}
	if e := m.epochEntity(); e != nil {
		put(must.JSON(e))
	}
	put(must.JSON(append([]task{}, m.tasks...))) // none are none, whatever was worked off before
	if err := m.emails.Hash(put); err != nil {
		return "", err
	}
	for _, number := range slices.Sorted(maps.Keys(m.accounts)) {
		if err := m.hashAccount(h, put, m.accounts[number]); err != nil {
			return "", err
		}
	}
	if err := m.hashKeys(put); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (m *Machine) hashAccount(h hash.Hash, put func([]byte), a *account) error {
	fmt.Fprintf(h, "account %d profiles %d\n", a.number, a.profiles.Headers.Count)
	put(must.JSON(a.accountEntity))
	if err := a.access.Hash(put); err != nil {
		return fmt.Errorf("account %016x: %w", a.number, err)
	}
	hashMap(put, a.segments)
	if err := a.types.Hash(put); err != nil {
		return err
	}
	imports := make(map[string]uint64, len(a.imports))
	for k, v := range a.imports {
		imports[hex.EncodeToString(k[:])] = v
	}
	hashMap(put, imports)
	if err := a.contacts.Hash(put); err != nil {
		return err
	}
	a.campaigns.HashTemplates(put)
	if err := a.domains.Hash(put); err != nil {
		return err
	}
	if err := a.campaigns.Hash(put); err != nil {
		return fmt.Errorf("account %016x: %w", a.number, err)
	}
	if err := a.credentials.Hash(put); err != nil {
		return err
	}
	if err := a.sources.Hash(put); err != nil {
		return err
	}
	if err := a.conversations.Hash(put); err != nil {
		return err
	}
	a.hashSets(put)
	if err := a.outbox.Hash(put); err != nil {
		return err
	}
	if err := a.flows.Hash(put); err != nil {
		return err
	}
	if err := a.erasure.Hash(put); err != nil {
		return err
	}
	if err := a.audit.Hash(put); err != nil {
		return err
	}
	if err := a.consentLog.Hash(put); err != nil {
		return fmt.Errorf("account %016x: %w", a.number, err)
	}
	if err := a.forms.Hash(put); err != nil {
		return fmt.Errorf("account %016x: %w", a.number, err)
	}
	if err := a.pacing.Hash(put); err != nil {
		return fmt.Errorf("account %016x: %w", a.number, err)
	}
	a.profiles.HashIdentifiers(put)
	if err := a.engine.Hash(put); err != nil {
		return err
	}
	anonymous, err := a.profiles.HashProfiles(h, put)
	if err != nil {
		return fmt.Errorf("account %016x: %w", a.number, err)
	}
	if !anonymous.Equals(a.engine.Anonymous()) {
		return fmt.Errorf("account %016x: by the documents %d profiles are anonymous, by the segment engine %d", a.number, anonymous.GetCardinality(), a.engine.Anonymous().GetCardinality())
	}
	return nil
}

func hashMap[V any](put func([]byte), entities map[string]V) {
	for _, k := range slices.Sorted(maps.Keys(entities)) {
		put([]byte(k))
		put(must.JSON(entities[k]))
	}
}

// hashKeys hashes the idempotency keys that still count for some account, in order.
func (m *Machine) hashKeys(put func([]byte)) error {
	from := m.logTime
	for _, a := range m.accounts {
		from = min(from, a.keysFromMs(m.logTime))
	}
	return m.keys.Each(func(h identifier.Hash, v dedup.Answer) {
		if v.AtMs > from {
			put(h[:])
			put(must.JSON([2]int64{v.AtMs, int64(v.Ordinal)}))
		}
	})
}
