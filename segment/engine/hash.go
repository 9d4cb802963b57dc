package engine

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
)

// Hash hands everything that the state consists of to put, in a fixed order. It
// leaves out what follows from the rest. It reads everything, so it is for
// tests and audits.
func (e *Engine) Hash(put func([]byte)) error {
	b, err := json.Marshal(e.catalog())
	if err != nil {
		return err
	}
	put(b)
	put(fmt.Append(nil, e.done))
	bits := func(name any, m *roaring.Bitmap) {
		put(fmt.Append(nil, name))
		for it := m.Iterator(); it.HasNext(); {
			put(binary.LittleEndian.AppendUint32(nil, it.Next()))
		}
	}
	bits("universe", e.universe)
	if !e.anonymous.IsEmpty() {
		bits("anonymous", e.anonymous)
	}
	for _, st := range e.byState {
		st.each(0, func(o uint32, v []byte) bool {
			put(binary.LittleEndian.AppendUint32(nil, o))
			put(v)
			return true
		})
	}
	for _, l := range e.profile {
		if l.ready {
			bits(l.id, l.diff)
		}
	}
	for _, s := range e.byRank {
		if s.live != nil {
			bits(s.id, s.members)
		}
		bits("owed", s.pending) // the name is part of the hash
	}
	return nil
}
