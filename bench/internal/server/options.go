package server

import (
	"cmp"
	"fmt"
)

// Options say which program a measurement runs, and where. Each measurement's own
// options hold them.
type Options struct {
	// Binary is the path of muster. It may be missing while options are validated: it
	// can be built once they are right.
	Binary string `json:"-"`
	// ServerArgs are further arguments of `muster serve`.
	ServerArgs []string `json:"server_args"`
	// Dir takes data and logs of everything that is started; it must be empty or absent.
	Dir string `json:"-"`
	// Log receives progress; nil is silent.
	Log func(format string, args ...any) `json:"-"`
}

// Logf reports progress.
func (o Options) Logf(format string, args ...any) {
	if o.Log != nil {
		o.Log(format, args...)
	}
}

// Within returns an error unless an option is within its bounds.
func Within[T cmp.Ordered](name string, value, least, most T) error {
	if value >= least && value <= most {
		return nil
	}
	return fmt.Errorf("%s must be %v to %v, not %v", name, least, most, value)
}

// ZeroOr does the same for an option of which 0 has a meaning of its own.
func ZeroOr[T cmp.Ordered](name, meaning string, value, least, most T) error {
	var zero T
	if value == zero || value >= least && value <= most {
		return nil
	}
	return fmt.Errorf("%s must be 0 (%s), or %v to %v, not %v", name, meaning, least, most, value)
}
