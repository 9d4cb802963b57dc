package server

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
