package engine

import "math/bits"

// Warm brings what an event of a profile will touch near the processor. Called
// for several events before any is told, it lets the processor wait for their
// cache misses at once. What it returns means nothing; it keeps the reads from
// being left out.
func (e *Engine) Warm(o uint32, eventType []byte) byte {
	touched := byte(0)
	for _, s := range e.types[string(eventType)] {
		for _, st := range s.states {
			touched += st.table.warm(o)
		}
	}
	return touched
}

func (t *table) warm(o uint32) byte {
	i := int(o / pageSlots)
	if i >= len(t.pages) || t.pages[i] == nil {
		return 0
	}
	p := t.pages[i]
	rank := bits.OnesCount64(p.present & (1<<(o%pageSlots) - 1))
	at := rank * t.size
	if t.size == 0 && rank > 0 {
		at = int(p.ends[rank-1])
	}
	if at >= len(p.data) {
		return 0
	}
	return p.data[at]
}
