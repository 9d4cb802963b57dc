package engine

import (
	"encoding/binary"
	"math"
)

// countFold counts events of all time. A value is the number, saturating at
// 2³²−1.
type countFold struct{}

func (f countFold) add(v []byte, _ *occurrence, _ int64) []byte {
	if len(v) == 0 {
		return append(v, 1, 0, 0, 0)
	}
	return f.plus(v, 1)
}

func (f countFold) union(v, other []byte, _ int64) []byte {
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

func (countFold) holds(q *question, v []byte, _ int64) bool {
	return q.holdsFor(uint64(binary.LittleEndian.Uint32(v)))
}

func (countFold) due(*question, []byte, int64) int64 { return never }
func (countFold) dead([]byte, int64) bool            { return false }
func (countFold) valid(v []byte) bool                { return len(v) == 4 && binary.LittleEndian.Uint32(v) > 0 }
