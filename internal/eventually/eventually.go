// Package eventually waits in tests for what something else does soon. A test waits for
// what it needs, never for a time: the limit is for what does not come at all.
package eventually

import (
	"testing"
	"time"
)

// Limit is how long is waited at most. It is long, because the machine may be busy with
// other tests.
const Limit = 2 * time.Minute

// The pause between two looks begins at shortest, for what comes at once, and grows to
// longest.
const (
	shortest = time.Millisecond
	longest  = 50 * time.Millisecond
)

// Holds waits until something holds, and fails the test when it does not within Limit.
// what says what was waited for.
func Holds(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !poll(holds) {
		t.Fatalf("not within %v: %s", Limit, what)
	}
}

// Succeeds waits until try succeeds, and fails the test with the last error when it does
// not within Limit.
func Succeeds(t testing.TB, try func() error) {
	t.Helper()
	var err error
	if !poll(func() bool { err = try(); return err == nil }) {
		t.Fatalf("not within %v: %v", Limit, err)
	}
}

func poll(holds func() bool) bool {
	pause := shortest
	for end := time.Now().Add(Limit); !holds(); pause = min(2*pause, longest) {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}
