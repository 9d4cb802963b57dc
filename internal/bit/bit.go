// Package bit makes numbers of truth values without a branch: for comparisons that take the same
// time whatever they find, and for loops in which a processor would guess wrong too often.
package bit

// Of is 1 for true, else 0.
func Of(b bool) int {
	if b { // the compiler makes no branch of it
		return 1
	}
	return 0
}
