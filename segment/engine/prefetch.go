package engine

import "github.com/musterhq/muster/internal/prefetch"

// prefetchBytes is how much of a row is brought near at most.
const prefetchBytes = 512

// Near is what an event of a profile will touch, half way to the processor.
type Near struct {
	Profile uint32
	kin     *kin
}

// Prefetch begins to bring near what an event of a profile will touch; [Near.Rows] continues
// when that has come. Called for several events before the first is applied, it lets the
// processor wait for their cache misses at once. A profile that does not exist has nothing.
func (e *Engine) Prefetch(o uint32, eventType []byte) Near {
	k := e.types[string(eventType)]
	if k != nil {
		for _, g := range k.groups {
			if p := g.pages.At(int(o / pageRows)); p != nil {
				p.prefetch()
			}
		}
	}
	return Near{o, k}
}

// prefetch brings the head of a page near the processor. It need not begin where a line does.
func (p *page) prefetch() {
	prefetch.Line(&p.epoch)
	prefetch.Line(&p.ends[pageRows-1])
}

// Rows brings the rows near that the event will change. The engine must not have been changed since.
func (n Near) Rows() {
	if n.kin == nil {
		return
	}
	for _, g := range n.kin.groups {
		prefetch.Bytes(g.row(n.Profile), prefetchBytes)
	}
}
