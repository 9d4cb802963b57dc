package report

import (
	"math"
	"slices"
)

// Ratio returns a/b, and 0 when there is no b.
func Ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Spread is the median of a figure over the rounds, its least and its most.
type Spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

// NewSpread returns the spread of some values; all is 0 when there are none. The
// median of an even number of values is the mean of the two in the middle.
func NewSpread(values []float64) (s Spread) {
	if len(values) == 0 {
		return s
	}
	v := slices.Sorted(slices.Values(values))
	return Spread{(v[(len(v)-1)/2] + v[len(v)/2]) / 2, v[0], v[len(v)-1]}
}

// Median returns the median of some values, 0 when there are none.
func Median(values []float64) float64 { return NewSpread(values).Median }

// Over returns a figure of each round.
func Over[T any](rounds []T, value func(*T) float64) Spread {
	values := make([]float64, len(rounds))
	for i := range rounds {
		values[i] = value(&rounds[i])
	}
	return NewSpread(values)
}

// Quantile returns the least of the sorted values that a share q of them does not
// exceed; 0 when there are none.
func Quantile[T ~int64 | ~float64](sorted []T, q float64) T {
	if len(sorted) == 0 {
		return 0
	}
	// The product of 0.99 and 100 is a little more than 99.
	i := int(math.Ceil(q*float64(len(sorted))-1e-9)) - 1
	return sorted[min(max(i, 0), len(sorted)-1)]
}
