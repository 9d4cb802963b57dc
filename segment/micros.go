package segment

import (
	"math"
	"strconv"

	"github.com/musterhq/muster/internal/rawjson"
)

// MicrosPerUnit is the scale of thresholds and sums: 10⁻⁶ is 1.
const MicrosPerUnit = 1_000_000

// maxAggregated is the magnitude from which on a number is left out of sum,
// avg, min and max.
const maxAggregated = 1e12

// MicrosOf is the value with which f enters sum, avg, min and max: the
// shortest decimal that reads back as f, rounded half to even at the sixth
// decimal, in millionths. ok is false for magnitudes of 10¹² and more, which
// are left out (and for NaN and infinities, which JSON cannot hold).
//
// Judging the magnitude before rounding is the same as after: the largest
// float64 below 10¹² is 999999999999.9999, which needs no rounding.
func MicrosOf(f float64) (micros int64, ok bool) {
	if !(f > -maxAggregated && f < maxAggregated) {
		return 0, false
	}
	// An integer below 2⁵³ is its own shortest decimal: any other decimal with
	// as few digits is another integer, hence another float64.
	if i := int64(f); float64(i) == f {
		return i * MicrosPerUnit, true
	}
	// When m/10⁶ reads back as f and m has at most 15 digits, m/10⁶ is the
	// shortest decimal: no two decimals of at most 15 digits share a float64,
	// and the shortest has no more digits than m. The division is correctly
	// rounded because both operands are exact.
	if m := math.RoundToEven(f * MicrosPerUnit); m > -1e15 && m < 1e15 && m/MicrosPerUnit == f {
		return int64(m), true
	}
	return microsSlow(f), true
}

// MicrosOfJSON is MicrosOf of a JSON value; ok is false where it is no number, too. nil is a
// value that is not there.
func MicrosOfJSON(raw []byte) (micros int64, ok bool) {
	if rawjson.KindOf(raw) != rawjson.Number {
		return 0, false
	}
	f, ok := rawjson.Float(raw)
	if !ok {
		return 0, false
	}
	return MicrosOf(f)
}

// microsSlow is MicrosOf by the digits.
func microsSlow(f float64) int64 {
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', -1, 64)
	negative := text[0] == '-'
	if negative {
		text = text[1:]
	}
	var digits uint64 // at most 17 of them
	scale := 6        // the power of ten that turns digits into millionths
	i := 0
	for ; text[i] != 'e'; i++ {
		if text[i] == '.' {
			continue
		}
		digits = digits*10 + uint64(text[i]-'0')
		if i > 0 {
			scale--
		}
	}
	exponent := 0
	for _, c := range text[i+2:] {
		exponent = exponent*10 + int(c-'0')
	}
	if text[i+1] == '-' {
		exponent = -exponent
	}
	scale += exponent
	m := int64(scaleHalfEven(digits, scale))
	if negative {
		return -m
	}
	return m
}

// scaleHalfEven is digits·10^scale rounded half to even, for digits below
// 10¹⁷ and a result below 10¹⁹.
func scaleHalfEven(digits uint64, scale int) uint64 {
	if scale >= 0 {
		for ; scale > 0; scale-- {
			digits *= 10
		}
		return digits
	}
	if scale < -18 {
		return 0 // below 10¹⁷⁻¹⁹, nearer to 0 than to 1
	}
	unit := uint64(1)
	for ; scale < 0; scale++ {
		unit *= 10
	}
	quotient, rest := digits/unit, digits%unit
	if half := unit / 2; rest > half || rest == half && quotient&1 == 1 {
		quotient++
	}
	return quotient
}
