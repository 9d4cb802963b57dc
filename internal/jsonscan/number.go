package jsonscan

import (
	"math"
	"strconv"
	"unsafe"
)

// safeExponent is the largest decimal exponent below which any number is in the
// range of float64, with room to spare.
const safeExponent = 300

// number checks the number at i and returns the position behind it. A number
// beyond float64 sets a fault without a path.
func (s *Scanner) number(i int) int {
	src := s.src
	start := i
	if src[i] == '-' {
		i++
	}
	whole := i
	switch c := s.Byte(i); {
	case c == '0':
		i++
	case c >= '1' && c <= '9':
		for i++; i < len(src) && src[i]-'0' <= 9; i++ {
		}
	default:
		return s.Fail(i, "a number needs a digit here")
	}
	digits := i - whole
	if i < len(src) && src[i] == '.' {
		i++
		fraction := i
		for i < len(src) && src[i]-'0' <= 9 {
			i++
		}
		if i == fraction {
			return s.Fail(i, "a number needs a digit here")
		}
	}
	exponent := 0
	if i < len(src) && src[i]|0x20 == 'e' {
		i++
		negative := s.Byte(i) == '-'
		if negative || s.Byte(i) == '+' {
			i++
		}
		first := i
		for i < len(src) && src[i]-'0' <= 9 {
			exponent = min(exponent*10+int(src[i]-'0'), math.MaxInt32)
			i++
		}
		if i == first {
			return s.Fail(i, "a number needs a digit here")
		}
		if negative {
			exponent = -exponent
		}
	}
	if digits+exponent > safeExponent {
		// Rare, so that the exact answer may cost: 0e999 is zero, and 1 with 300
		// zeroes is a number like any other.
		v, _ := strconv.ParseFloat(unsafe.String(&src[start], i-start), 64)
		if math.IsInf(v, 0) {
			s.setFault(FaultRange)
		}
	}
	return i
}

// literal checks the word true, false or null at i.
func (s *Scanner) literal(i int) int {
	word := "true"
	switch s.src[i] {
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	}
	if len(s.src)-i < len(word) || string(s.src[i:i+len(word)]) != word {
		return s.Fail(i, "expected a JSON value")
	}
	return i + len(word)
}
