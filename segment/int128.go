package segment

import "github.com/musterhq/muster/internal/int128"

// Int128 is a signed 128-bit integer; sums and thresholds are counted in it,
// in millionths.
type Int128 = int128.Int128
