// Package jsonform reads JSON that people and their programs fill in, strictly:
// each fault is reported with its JSON path and what to write instead.
//
// [Compact] checks a text once. What it returns is walked with the readers of
// this package: [ReadObject] for objects, [Elements] for arrays, [Text], [Number],
// [Integer] and [Bool] for the rest. Each takes the path of what it reads and
// returns an [*Error] that names it. Nothing recurses; depth is the caller's.
package jsonform
