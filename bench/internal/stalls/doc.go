// Package stalls names what slow requests waited for. It reads an execution trace of the
// server, which runtime/trace records and /debug/pprof/trace hands out, and looks at each
// moment in which a slow request was unanswered: whether the log was being synced, whether
// the goroutine that applies records ran, waited for a lock or for a processor, and what had
// the processors meanwhile.
package stalls
