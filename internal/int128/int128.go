package int128

import (
	"math"
	"math/big"
	"math/bits"
)

// Int128 is a two's complement integer of 128 bits. The zero value is 0.
// Values may be compared with == and used as map keys.
type Int128 struct {
	hi int64
	lo uint64
}

// From converts an int64.
func From(v int64) Int128 { return Int128{hi: v >> 63, lo: uint64(v)} }

// FromUint64 converts a uint64.
func FromUint64(v uint64) Int128 { return Int128{lo: v} }

// New is hi·2⁶⁴ + lo, the inverse of [Int128.Parts].
func New(hi int64, lo uint64) Int128 { return Int128{hi: hi, lo: lo} }

// Parts returns the two halves, for encoders.
func (a Int128) Parts() (hi int64, lo uint64) { return a.hi, a.lo }

// Int64 returns the value when it fits.
func (a Int128) Int64() (int64, bool) { return int64(a.lo), a.hi == int64(a.lo)>>63 }

// Sign is -1, 0 or 1.
func (a Int128) Sign() int {
	if a.hi < 0 {
		return -1
	}
	if a.hi == 0 && a.lo == 0 {
		return 0
	}
	return 1
}

// Cmp is -1, 0 or 1 as a is below, equal to or above b.
func (a Int128) Cmp(b Int128) int {
	switch {
	case a.hi < b.hi:
		return -1
	case a.hi > b.hi:
		return 1
	case a.lo < b.lo:
		return -1
	case a.lo > b.lo:
		return 1
	}
	return 0
}

// Add is a + b. It wraps around at 128 bits, which the package's bounds
// exclude for sums of millionths.
func (a Int128) Add(b Int128) Int128 {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(uint64(a.hi), uint64(b.hi), carry)
	return Int128{hi: int64(hi), lo: lo}
}

// Sub is a − b, with the bounds of [Int128.Add].
func (a Int128) Sub(b Int128) Int128 {
	lo, borrow := bits.Sub64(a.lo, b.lo, 0)
	hi, _ := bits.Sub64(uint64(a.hi), uint64(b.hi), borrow)
	return Int128{hi: int64(hi), lo: lo}
}

// Neg is −a. The least value has no negative and stays as it is.
func (a Int128) Neg() Int128 { return Int128{}.Sub(a) }

// Mul is a · n; ok is false when the product does not fit.
func (a Int128) Mul(n int64) (product Int128, ok bool) {
	if n >= 0 {
		return a.MulUint64(uint64(n))
	}
	return a.mulMagnitude(-uint64(n), true)
}

// MulUint64 is a · n; ok is false when the product does not fit.
func (a Int128) MulUint64(n uint64) (product Int128, ok bool) {
	return a.mulMagnitude(n, false)
}

func (a Int128) mulMagnitude(n uint64, negate bool) (Int128, bool) {
	hi, lo := uint64(a.hi), a.lo
	if a.hi < 0 {
		negate = !negate
		m := a.Neg() // the least value keeps its bits, which are its magnitude
		hi, lo = uint64(m.hi), m.lo
	}
	over, high := bits.Mul64(hi, n)
	carry, low := bits.Mul64(lo, n)
	high, c := bits.Add64(high, carry, 0)
	if over != 0 || c != 0 {
		return Int128{}, false
	}
	p := Int128{hi: int64(high), lo: low}
	if negate {
		p = p.Neg()
		return p, p.hi < 0 || high == 0 && low == 0
	}
	return p, high <= math.MaxInt64
}

// Float64 is the nearest float64, for display and estimates only.
func (a Int128) Float64() float64 {
	f, _ := new(big.Float).SetInt(a.Big()).Float64()
	return f
}

// Big converts to math/big.
func (a Int128) Big() *big.Int {
	b := big.NewInt(a.hi)
	b.Lsh(b, 64)
	return b.Add(b, new(big.Int).SetUint64(a.lo))
}

// FromBig converts from math/big; ok is false when the value does not fit.
func FromBig(b *big.Int) (v Int128, ok bool) {
	// IsInt64 of the upper half is the whole range check: Rsh rounds down.
	hi := new(big.Int).Rsh(b, 64)
	if !hi.IsInt64() {
		return Int128{}, false
	}
	lo := new(big.Int).Sub(b, new(big.Int).Lsh(hi, 64))
	return Int128{hi: hi.Int64(), lo: lo.Uint64()}, true
}

// String is the value in decimal.
func (a Int128) String() string { return string(a.AppendText(nil)) }

// AppendText appends the value in decimal.
func (a Int128) AppendText(dst []byte) []byte {
	hi, lo := uint64(a.hi), a.lo
	if a.hi < 0 {
		dst = append(dst, '-')
		m := a.Neg()
		hi, lo = uint64(m.hi), m.lo
	}
	var buf [39]byte // 2¹²⁷ has 39 digits
	i := len(buf)
	for {
		var r uint64
		hi, r = hi/10, hi%10
		lo, r = bits.Div64(r, lo, 10)
		i--
		buf[i] = '0' + byte(r)
		if hi == 0 && lo == 0 {
			return append(dst, buf[i:]...)
		}
	}
}

// Parse reads a decimal integer; ok is false when s is none or does not fit.
func Parse(s string) (v Int128, ok bool) {
	digits := s
	negative := len(s) > 0 && s[0] == '-'
	if negative {
		digits = s[1:]
	}
	if digits == "" {
		return Int128{}, false
	}
	for i := 0; i < len(digits); i++ {
		d := digits[i]
		if d < '0' || d > '9' {
			return Int128{}, false
		}
		// Counting downwards reaches the least value too.
		if v, ok = v.Mul(10); !ok {
			return Int128{}, false
		}
		next := v.Sub(FromUint64(uint64(d - '0')))
		if next.Cmp(v) > 0 {
			return Int128{}, false
		}
		v = next
	}
	if negative {
		return v, true
	}
	n := v.Neg()
	return n, n.hi >= 0
}
