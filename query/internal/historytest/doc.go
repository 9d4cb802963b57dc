// Package historytest is the tests that every [query.History] passes, and what
// they need: records of which everything follows from their offsets, random
// worlds with a naive look at them, hostile keys, numbers and times.
package historytest

import (
	"testing"

	"github.com/musterhq/muster/query"
)

// Open opens an empty history that is closed at the end of the test.
type Open func(t *testing.T) query.History
