package engine

// warmLine is how far apart bytes are that are brought near one by one, and
// warmBytes how much of a row is.
const (
	warmLine  = 64
	warmBytes = 512
)

// Warm brings what an event of a profile will touch near the processor. Called for
// several events before the first is applied, it lets the processor wait for their
// cache misses at once. What it returns means nothing; it keeps the reads from
// being left out.
func (e *Engine) Warm(o uint32, eventType []byte) byte {
	k := e.types[string(eventType)]
	if k == nil {
		return 0
	}
	touched := byte(0)
	for _, g := range k.groups {
		row := g.row(o)
		for i := 0; i < min(len(row), warmBytes); i += warmLine {
			touched += row[i]
		}
	}
	return touched
}
