// Package panics reports what a goroutine that serves one request panicked with. The
// process continues: a fault in one request is no reason to end all others.
package panics

import (
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/VictoriaMetrics/metrics"
)

// Metric counts the panics of requests.
const Metric = "muster_http_panics_total"

// Error is a panic as an error. Its text ends with the stack.
type Error struct {
	Value any
	Stack []byte
}

// Error implements [error].
func (e *Error) Error() string { return fmt.Sprintf("panic: %v\n%s", e.Value, e.Stack) }

// Count returns the value of a panic as an error, with the stack, and counts it in
// set, which may be nil. Call it in the deferred function that recovered value.
func Count(set *metrics.Set, value any) *Error {
	if set != nil {
		set.GetOrCreateCounter(Metric).Inc()
	}
	return &Error{Value: value, Stack: debug.Stack()}
}

// Wrap is a panic outside of requests as an error with the stack. It wraps the value if that
// is an error. Call it in the deferred function that recovered value.
func Wrap(value any) error {
	if err, ok := value.(error); ok {
		return fmt.Errorf("panic: %w\n%s", err, debug.Stack())
	}
	return fmt.Errorf("panic: %v\n%s", value, debug.Stack())
}

// Report is Count, and logs the error; log may be nil.
func Report(set *metrics.Set, log *slog.Logger, where string, value any) *Error {
	err := Count(set, value)
	if log != nil {
		log.Error("a request panicked; the others continue", "where", where, "panic", fmt.Sprint(value), "stack", string(err.Stack))
	}
	return err
}
