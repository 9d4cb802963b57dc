package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// stacked is an error that shows where it was made, as those of Pebble do, when it is
// formatted at length.
type stacked struct{ error }

func (s stacked) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%v\nmain.go:1", s.error) }

// TestLogLinesHaveNoStacks: an error is its text in a log line of either format.
func TestLogLinesHaveNoStacks(t *testing.T) {
	t.Parallel()
	for _, format := range []string{formatText, formatJSON} {
		var b strings.Builder
		log, err := logger(&b, "info", format)
		ok(t, err)
		log.Info("failed", "error", stacked{errors.New("no such file")})
		if line := b.String(); strings.Contains(line, "main.go") || !strings.Contains(line, "no such file") {
			t.Errorf("%s: %s", format, line)
		}
	}
}
