package loader

import "fmt"

// maxRanges bounds what a worker remembers. It is reached only when requests
// fail in alternation for long, and the run is then ended.
const maxRanges = 1 << 20

// Range is acknowledged events of one worker: sequence numbers From ≤ n < To.
type Range struct {
	// Company is that of the worker's [Seat].
	Company  int
	Worker   int
	From, To uint64
}

// Len is the number of events in the range.
func (r Range) Len() uint64 { return r.To - r.From }

// Events returns the number of events in some ranges.
func Events(ranges []Range) (n uint64) {
	for _, r := range ranges {
		n += r.Len()
	}
	return n
}

// addRange appends [from, to), joined to the last range when it follows it.
func addRange(ranges []Range, company, worker int, from, to uint64) ([]Range, error) {
	if n := len(ranges); n > 0 && ranges[n-1].To == from {
		ranges[n-1].To = to
		return ranges, nil
	}
	if len(ranges) >= maxRanges {
		return ranges, fmt.Errorf("more than %d gaps between acknowledged events of a connection", maxRanges)
	}
	return append(ranges, Range{Company: company, Worker: worker, From: from, To: to}), nil
}
