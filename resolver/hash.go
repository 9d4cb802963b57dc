package resolver

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
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
	for _, id := range m.records.List() {
		h.Write(id[:])
	}
	if e := m.epochEntity(); e != nil {
		put(must.JSON(e))
	}
	if m.rules != 0 {
		fmt.Fprintf(h, "rules %d\n", m.rules)
	}
	put(must.JSON(append([]task{}, m.tasks...))) // none are none, whatever was worked off before
	if err := m.emailDirectory.Hash(put); err != nil {
		return "", err
	}
	for _, number := range slices.Sorted(maps.Keys(m.accounts)) {
		if err := m.accounts[number].Hash(h, put); err != nil {
			return "", err
		}
	}
	if err := m.hashKeys(put); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashKeys hashes the idempotency keys that still count for some account, in order.
func (m *Machine) hashKeys(put func([]byte)) error {
	from := m.logTime
	for _, a := range m.accounts {
		from = min(from, a.KeysFromMs(m.logTime))
	}
	return m.idempotencyKeys.Each(func(h identifier.Hash, v dedup.Answer) {
		if v.AtMs > from {
			put(h[:])
			put(must.JSON([2]int64{v.AtMs, int64(v.Ordinal)}))
		}
	})
}
