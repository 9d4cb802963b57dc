package retail

import (
	"fmt"
	"math/big"
	"strings"
)

// maxDecimals bounds the digits behind the point of a price.
const maxDecimals = 9

// decimal is units × 10^-scale.
type decimal struct {
	units big.Int
	scale int
}

// parseDecimal reads a plain decimal such as "-12.50".
func parseDecimal(s string) (*decimal, error) {
	whole, part, _ := strings.Cut(s, ".")
	digits := strings.TrimPrefix(whole, "-") + part
	if digits == "" || strings.Trim(digits, "0123456789") != "" || len(part) > maxDecimals || len(digits) > 30 {
		return nil, fmt.Errorf("%q is no plain decimal number", s)
	}
	d := &decimal{scale: len(part)}
	d.units.SetString(digits, 10)
	if strings.HasPrefix(whole, "-") {
		d.units.Neg(&d.units)
	}
	return d, nil
}

// times is d × n.
func (d *decimal) times(n int64) *decimal {
	product := &decimal{scale: d.scale}
	product.units.Mul(&d.units, big.NewInt(n))
	return product
}

// String is the shortest plain decimal: no trailing zeros behind the point.
func (d *decimal) String() string {
	s := fmt.Sprintf("%0*d", d.scale+1, new(big.Int).Abs(&d.units))
	if d.scale > 0 {
		point := len(s) - d.scale
		s = strings.TrimRight(strings.TrimRight(s[:point]+"."+s[point:], "0"), ".")
	}
	if d.units.Sign() < 0 {
		s = "-" + s
	}
	return s
}

// add adds another decimal to d.
func (d *decimal) add(o *decimal) {
	ten := big.NewInt(10)
	term := new(big.Int).Set(&o.units)
	for ; d.scale < o.scale; d.scale++ {
		d.units.Mul(&d.units, ten)
	}
	for scale := o.scale; scale < d.scale; scale++ {
		term.Mul(term, ten)
	}
	d.units.Add(&d.units, term)
}
