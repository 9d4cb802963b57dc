package orders

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
)

// Amount is an amount of money in ten-thousandths of the currency's unit: no currency has more
// than four decimals.
type Amount int64

const (
	unit = 10_000
	// maxAmount bounds what one order or refund says, in units, once it is rounded. Each amount
	// below it reads back from its JSON number.
	maxAmount = 1e11
	// maxSum bounds the total of an account in a currency, and by it every other sum.
	maxSum = Amount(1) << 62
)

// amountOf is a JSON number as an amount: its shortest decimal form, rounded half to even at
// the fourth decimal. It is none for negative numbers and those that round to [maxAmount] and
// more.
func amountOf(number float64) (Amount, bool) {
	if !(number >= 0 && number < maxAmount) {
		return 0, false
	}
	x, ok := new(big.Rat).SetString(strconv.FormatFloat(number, 'g', -1, 64))
	if !ok {
		return 0, false // unreachable: FormatFloat writes what Rat reads
	}
	x.Mul(x, big.NewRat(unit, 1))
	a := Amount(halfEven(x.Num(), x.Denom()))
	return a, a < maxAmount*unit
}

// halfEven is a quotient of positive numbers, rounded half to even.
func halfEven(num, denom *big.Int) int64 {
	q, rest := new(big.Int).QuoRem(num, denom, new(big.Int))
	half := rest.Lsh(rest, 1).Cmp(denom)
	if half > 0 || half == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(1))
	}
	return q.Int64()
}

// Over is the amount divided by a number, rounded half to even; 0 for 0.
func (a Amount) Over(n int64) Amount {
	if n == 0 {
		return 0
	}
	return Amount(halfEven(big.NewInt(int64(a)), big.NewInt(n)))
}

// decimals are the amount without its sign: what stands before the point, and four digits.
func (a Amount) decimals() (sign, whole, fraction string) {
	u := uint64(a)
	if a < 0 {
		sign, u = "-", -u
	}
	return sign, strconv.FormatUint(u/unit, 10), strconv.FormatUint(unit+u%unit, 10)[1:]
}

// String is the amount in decimals, two at least: 59.90.
func (a Amount) String() string {
	sign, whole, fraction := a.decimals()
	return sign + whole + "." + fraction[:2] + strings.TrimRight(fraction[2:], "0")
}

// Number is the amount as a JSON number: 59.9.
func (a Amount) Number() json.Number {
	sign, whole, fraction := a.decimals()
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		fraction = "." + fraction
	}
	return json.Number(sign + whole + fraction)
}
