package fold

import (
	"encoding/binary"
	"math"
)

// countFold counts events of all time. A value is the number, saturating at
// 2³²−1.
type countFold struct{}

func (f countFold) Add(v []byte, _ *Occurrence, _ int64) []byte {
	if len(v) == 0 {
		return append(v, 1, 0, 0, 0)
	}
	return f.plus(v, 1)
}

func (f countFold) Union(v, other []byte, _ int64) []byte {
	if len(v) == 0 {
		return append(v, other...)
	}
	return f.plus(v, binary.LittleEndian.Uint32(other))
}

func (countFold) plus(v []byte, n uint32) []byte {
	sum := uint64(binary.LittleEndian.Uint32(v)) + uint64(n)
	binary.LittleEndian.PutUint32(v, uint32(min(sum, math.MaxUint32)))
	return v
}

func (countFold) Holds(q *Question, v []byte, _ int64) bool {
	return q.holdsFor(uint64(binary.LittleEndian.Uint32(v)))
}

func (countFold) Due(*Question, []byte, int64) int64 { return never }
func (countFold) Dead([]byte, int64) bool            { return false }
func (countFold) Valid(v []byte) bool                { return len(v) == 4 && binary.LittleEndian.Uint32(v) > 0 }
