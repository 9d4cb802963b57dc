package engine

import (
	"github.com/musterhq/muster/internal/int128"
)

// totalsFold keeps the sum, the number, the least and the greatest of all
// time. A value is these, of 16, 8, 8 and 8 bytes.
type totalsFold struct{}

const totalsSize = 40

func (totalsFold) add(v []byte, o *occurrence, _ int64) []byte {
	if !o.number {
		return v
	}
	if len(v) == 0 {
		v = append(v, make([]byte, totalsSize)...)
		putInt(v[24:], o.micros)
		putInt(v[32:], o.micros)
	}
	putWide(v, getWide(v).Add(int128.From(o.micros)))
	putInt(v[16:], getInt(v[16:])+1)
	putInt(v[24:], min(getInt(v[24:]), o.micros))
	putInt(v[32:], max(getInt(v[32:]), o.micros))
	return v
}

func (totalsFold) union(v, other []byte, _ int64) []byte {
	if len(v) == 0 {
		return append(v, other...)
	}
	putWide(v, getWide(v).Add(getWide(other)))
	putInt(v[16:], getInt(v[16:])+getInt(other[16:]))
	putInt(v[24:], min(getInt(v[24:]), getInt(other[24:])))
	putInt(v[32:], max(getInt(v[32:]), getInt(other[32:])))
	return v
}

func (totalsFold) holds(q *question, v []byte, _ int64) bool {
	return q.judge(totals{sum: getWide(v), n: uint64(getInt(v[16:])), min: getInt(v[24:]), max: getInt(v[32:])})
}

func (totalsFold) due(*question, []byte, int64) int64 { return never }
func (totalsFold) dead([]byte, int64) bool            { return false }
func (totalsFold) valid(v []byte) bool                { return len(v) == totalsSize && getInt(v[16:]) > 0 }

// totals are the aggregates over some numbers.
type totals struct {
	sum      int128.Int128
	n        uint64
	min, max int64
}

func (t *totals) add(micros int64) {
	if t.n == 0 {
		t.min, t.max = micros, micros
	}
	t.sum = t.sum.Add(int128.From(micros))
	t.n++
	t.min, t.max = min(t.min, micros), max(t.max, micros)
}

func getWide(b []byte) int128.Int128 { return int128.New(getInt(b[8:]), uint64(getInt(b))) }

func putWide(b []byte, v int128.Int128) {
	hi, lo := v.Parts()
	putInt(b, int64(lo))
	putInt(b[8:], hi)
}
