package resolver

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain has garbage collected less often: hundreds of small state machines are made here, and
// a quarter of the time went into collections of a few megabytes.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
