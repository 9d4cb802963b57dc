// Package statefiles reads and writes small files of the state, and has the error that says
// that one is damaged.
package statefiles

import (
	"errors"
	"fmt"
)

// ErrDamaged means that files of the state are not what was written. What is
// derived from the log can be derived again.
var ErrDamaged = errors.New("the state is damaged")

// Damaged names a file and what is wrong with it.
func Damaged(path, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrDamaged, path, fmt.Sprintf(format, args...))
}
