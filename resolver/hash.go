package resolver

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
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
		put(mustJSON(e))
	}
	put(mustJSON(append([]task{}, m.tasks...))) // none are none, whatever was worked off before
	reserved := make(map[string]uint64, len(m.reservations))
	for k, v := range m.reservations {
		reserved[string(k[:])] = v
	}
	hashMap(put, reserved)
	if err := m.hashEmails(put); err != nil {
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
	fmt.Fprintf(h, "account %d profiles %d\n", a.number, a.headers.n)
	put(mustJSON(a.accountEntity))
	hashMap(put, a.users)
	hashMap(put, a.sessions)
	hashMap(put, a.keys)
	hashMap(put, a.segments)
	hashMap(put, a.types)
	a.hashLooked(put)
	imports := make(map[string]uint64, len(a.imports))
	for k, v := range a.imports {
		imports[hex.EncodeToString(k[:])] = v
	}
	hashMap(put, imports)
	hashMap(put, a.lists)
	hashMap(put, a.templates)
	hashMap(put, a.domains)
	hashMap(put, a.campaigns)
	hashMap(put, a.runs)
	if err := m.hashTexts(put, a); err != nil {
		return err
	}
	hashMap(put, a.credentials)
	if err := a.hashSets(put); err != nil {
		return err
	}
	if err := m.hashOutbox(put, a); err != nil {
		return err
	}
	if err := m.hashFlows(put, a); err != nil {
		return err
	}
	a.hashErased(put)
	if err := m.hashChanges(put, a); err != nil {
		return err
	}
	for _, f := range slices.SortedFunc(maps.Keys(a.alike), func(x, y hash128) int { return slices.Compare(x[:], y[:]) }) {
		put(f[:])
		for _, h := range a.alike[f] {
			put(h[:])
		}
	}
	ids := make([]identityChange, 0, a.ids.size())
	a.ids.each(func(h hash128, o uint32) { ids = append(ids, identityChange{h, o}) })
	slices.SortFunc(ids, func(x, y identityChange) int { return slices.Compare(x.hash[:], y.hash[:]) })
	for _, c := range ids {
		put(binary.LittleEndian.AppendUint32(c.hash[:], c.ordinal))
	}
	if err := a.engine.Hash(put); err != nil {
		return err
	}
	var indexed indexSum
	var keys indexKeys
	for o := range a.headers.n {
		r := a.headers.get(o)
		fmt.Fprintf(h, "%x %d %d %d\n", r.id, r.lastEvent, r.winner, r.flags)
		if r.winner != o || r.flags&flagErased != 0 {
			continue
		}
		b, err := m.store.peek(a, o)
		if err != nil {
			return err
		}
		put(b)
		if err := keys.set(a.number, o, b); err != nil {
			return err
		}
		for i := range keys.ends {
			indexed.add(a, keys.at(i))
		}
	}
	return m.checkProfileIndex(a, indexed)
}

func hashMap[V any](put func([]byte), entities map[string]V) {
	for _, k := range slices.Sorted(maps.Keys(entities)) {
		put([]byte(k))
		put(mustJSON(entities[k]))
	}
}

// hashKeys hashes the idempotency keys that still count for some account, in order. It
// holds those in memory that are in no run.
func (m *Machine) hashKeys(put func([]byte)) error {
	from := m.logTime
	for _, a := range m.accounts {
		from = min(from, a.keysFromMs(m.logTime))
	}
	newest := map[hash128]idempotencyValue{}
	for _, k := range []answers{m.keys.sealing, m.keys.recent} {
		k.each(func(h hash128, v idempotencyValue) { newest[h] = v })
	}
	inMemory := slices.SortedFunc(maps.Keys(newest), func(x, y hash128) int { return slices.Compare(x[:], y[:]) })
	var cursors []*runCursor // oldest first
	for _, r := range m.keys.runs {
		c, err := r.cursor()
		if err != nil {
			return err
		}
		cursors = append(cursors, c)
	}
	for {
		var best *runCursor
		for _, c := range cursors {
			// Of equal hashes the one in the newest run counts.
			if !c.done && (best == nil || slices.Compare(c.cur.hash[:], best.cur.hash[:]) <= 0) {
				best = c
			}
		}
		var e runEntry
		switch {
		case len(inMemory) > 0 && (best == nil || slices.Compare(inMemory[0][:], best.cur.hash[:]) <= 0):
			e = runEntry{inMemory[0], newest[inMemory[0]]}
			inMemory = inMemory[1:]
		case best != nil:
			e = best.cur
		default:
			return nil
		}
		for _, c := range cursors {
			for !c.done && c.cur.hash == e.hash {
				if err := c.next(); err != nil {
					return err
				}
			}
		}
		if e.atMs > from {
			put(e.hash[:])
			put(mustJSON([2]int64{e.atMs, int64(e.ordinal)}))
		}
	}
}

// StateHash returns the hash of a partition's state and the offset it belongs
// to. Apply waits meanwhile.
func (n *Node) StateHash(partition int) (next int64, sum string, err error) {
	p := n.partitions[partition].Load()
	if p == nil {
		return 0, "", notOwner(partition)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.m == nil {
		return 0, "", p.gone()
	}
	sum, err = p.mu.m.Hash()
	return p.mu.m.next, sum, err
}
