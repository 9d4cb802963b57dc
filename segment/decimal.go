package segment

import (
	"math/big"
	"strconv"

	"github.com/musterhq/muster/internal/int128"
)

// parseThreshold reads a JSON number into millionths, exactly and by its
// digits. reason says what is wrong with it, or is empty.
func parseThreshold(number string) (micros Int128, reason string) {
	digits, exponent := splitDecimal(number)
	if digits == "" {
		return Int128{}, ""
	}
	const tooLarge = "must be between -1e18 and 1e18"
	switch {
	case exponent < -6:
		return Int128{}, "must have at most 6 decimals"
	case exponent > 18 || len(digits)+exponent > 19:
		return Int128{}, tooLarge
	}
	// At most 19 digits in front of the point and 6 behind it: 25 digits.
	for i := 0; i < len(digits); i++ {
		micros, _ = micros.Mul(10)
		micros = micros.Add(int128.From(int64(digits[i] - '0')))
	}
	for ; exponent > -6; exponent-- {
		micros, _ = micros.Mul(10)
	}
	limit, _ := int128.From(maxThreshold).Mul(MicrosPerUnit)
	if micros.Cmp(limit) > 0 {
		return Int128{}, tooLarge
	}
	if number[0] == '-' {
		micros = micros.Neg()
	}
	return micros, ""
}

// splitDecimal takes a JSON number apart: its magnitude is digits·10^exponent,
// with no zero at either end of digits; 0 has no digits. The exponent is cut
// off far outside of what anybody accepts.
func splitDecimal(number string) (digits string, exponent int) {
	const far = 1 << 30
	b := make([]byte, 0, len(number))
	fraction := false
	for i := 0; i < len(number); i++ {
		switch c := number[i]; {
		case isDigit(c):
			if c != '0' || len(b) > 0 {
				b = append(b, c)
			}
			if fraction {
				exponent--
			}
		case c == '.':
			fraction = true
		case c == 'e' || c == 'E':
			e, err := strconv.Atoi(number[i+1:])
			if err != nil || e > far || e < -far {
				// Out of range: Atoi's sign is lost, so look at the text.
				e = far
				if number[i+1] == '-' {
					e = -far
				}
			}
			exponent += e
			i = len(number)
		}
	}
	for len(b) > 0 && b[len(b)-1] == '0' {
		b = b[:len(b)-1]
		exponent++
	}
	return string(b), exponent
}

// appendThreshold appends the JSON number that [parseThreshold] reads as v.
func appendThreshold(dst []byte, v Int128) []byte {
	if v.Sign() < 0 {
		dst = append(dst, '-')
		v = v.Neg()
	}
	whole, rest := new(big.Int).QuoRem(v.Big(), big.NewInt(MicrosPerUnit), new(big.Int))
	dst = whole.Append(dst, 10)
	if rest.Sign() == 0 {
		return dst
	}
	fraction := strconv.FormatInt(rest.Int64()+MicrosPerUnit, 10) // 1ffffff
	end := len(fraction)
	for fraction[end-1] == '0' {
		end--
	}
	dst = append(dst, '.')
	return append(dst, fraction[1:end]...)
}

// windowOf is days in whole milliseconds: the shortest decimal of the float64,
// times 86,400,000, rounded half up. days is finite and at least 0.
func windowOf(days float64) int64 {
	exact, ok := new(big.Rat).SetString(strconv.FormatFloat(days, 'g', -1, 64))
	if !ok {
		return 0 // unreachable: FormatFloat writes what Rat reads
	}
	exact.Mul(exact, new(big.Rat).SetInt64(msPerDay))
	exact.Add(exact, big.NewRat(1, 2))
	return new(big.Int).Quo(exact.Num(), exact.Denom()).Int64()
}

// daysOf is the float64 that [windowOf] turns into windowMs.
func daysOf(windowMs int64) float64 { return float64(windowMs) / msPerDay }

// appendFloat appends f as JSON writes it.
func appendFloat(dst []byte, f float64) []byte {
	magnitude := max(f, -f)
	if magnitude != 0 && (magnitude < 1e-6 || magnitude >= 1e21) {
		return strconv.AppendFloat(dst, f, 'e', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}
