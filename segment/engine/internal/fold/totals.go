package fold

import (
	"encoding/binary"

	"github.com/musterhq/muster/internal/int128"
	"github.com/musterhq/muster/segment"
)

// totalsFold keeps the sum, the number, the least and the greatest of all
// time. A value is these, of 16, 8, 8 and 8 bytes.
type totalsFold struct{}

const totalsSize = 40

func (totalsFold) Add(v []byte, o *Occurrence, _ int64) []byte {
	if !o.Number {
		return v
	}
	if len(v) == 0 {
		v = append(v, make([]byte, totalsSize)...)
		putInt(v[24:], o.Micros)
		putInt(v[32:], o.Micros)
	}
	putWide(v, getWide(v).Add(int128.From(o.Micros)))
	putInt(v[16:], getInt(v[16:])+1)
	putInt(v[24:], min(getInt(v[24:]), o.Micros))
	putInt(v[32:], max(getInt(v[32:]), o.Micros))
	return v
}

func (totalsFold) Union(v, other []byte, _ int64) []byte {
	if len(v) == 0 {
		return append(v, other...)
	}
	putWide(v, getWide(v).Add(getWide(other)))
	putInt(v[16:], getInt(v[16:])+getInt(other[16:]))
	putInt(v[24:], min(getInt(v[24:]), getInt(other[24:])))
	putInt(v[32:], max(getInt(v[32:]), getInt(other[32:])))
	return v
}

func (totalsFold) Holds(q *Question, v []byte, _ int64) bool {
	return q.judge(totals{sum: getWide(v), n: uint64(getInt(v[16:])), min: getInt(v[24:]), max: getInt(v[32:])})
}

func (totalsFold) Due(*Question, []byte, int64) int64 { return never }
func (totalsFold) Dead([]byte, int64) bool            { return false }
func (totalsFold) Valid(v []byte) bool                { return len(v) == totalsSize && getInt(v[16:]) > 0 }

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

// HasNumber reports whether values of the fold have one number that questions compare.
func (k Kind) HasNumber() bool { return k == KindCount || k == KindTotals }

// Number is the number that questions compare: the count or the sum, in millionths.
func Number(k Kind, v []byte) int128.Int128 {
	if k == KindCount {
		return int128.From(int64(binary.LittleEndian.Uint32(v)) * segment.MicrosPerUnit)
	}
	return getWide(v)
}
