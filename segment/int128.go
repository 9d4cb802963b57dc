package segment

import "github.com/musterhq/muster/internal/int128"

// Int128 is a signed 128-bit integer; sums and thresholds are counted in it,
// in millionths.
type Int128 = int128.Int128

// Micros is a number of millionths as an [Int128].
func Micros(n int64) Int128 { return int128.From(n) }
