// Package int128 is a signed 128-bit integer: the exact sums and thresholds of
// segment conditions, counted in millionths.
//
// # Bounds
//
// One value of an aggregate is below 10¹² in magnitude, so below 10¹⁸ < 2⁶⁰
// millionths. A sum of fewer than 2⁶⁷ of them stays inside 128 bits, more than
// a history can hold: [Int128.Add] needs no overflow check there. A threshold
// is at most 10²⁴ millionths; its product with a count may leave the range
// from 1.7·10¹⁴ events on, so [Int128.Mul] reports overflow.
package int128
