// Package testlevel says how much a test is to do. There are three levels:
//
//   - quick: what a bare `go test ./...` does. Each kind of check is made, with few
//     cases and seeds; tests that start many processes or wait for long are left out.
//   - all: what `make test` and continuous integration do (MUSTER_ALL_TESTS=1), and
//     what a test does that is asked for by name, with -run.
//   - long: what `make long` does (MUSTER_LONG=1): more seeds, more kills, for hours.
//
// -short asks for quick, also of a test that is named.
package testlevel

import (
	"flag"
	"os"
	"testing"
)

// Names of the environment variables that ask for more than the quick level: any
// value but the empty one.
const (
	EnvAll  = "MUSTER_ALL_TESTS"
	EnvLong = "MUSTER_LONG"
)

// Quick reports whether a test is to make few cases only.
func Quick() bool { return quick(testing.Short(), named(), os.Getenv) }

func quick(short, named bool, env func(string) string) bool {
	return short || !named && env(EnvAll) == "" && env(EnvLong) == ""
}

// Long reports whether a test may take hours.
func Long() bool { return os.Getenv(EnvLong) != "" }

// Count is how many cases or seeds a test has: quick of them at the quick level, else all.
func Count[N int | uint64](quick, all N) N {
	if Quick() {
		return quick
	}
	return all
}

// SkipQuick skips a test that has no quick form. The reason says what takes long.
func SkipQuick(tb testing.TB, reason string) {
	tb.Helper()
	if Quick() {
		tb.Skipf("%s: runs with %s=1 (make test), or when named with -run", reason, EnvAll)
	}
}

// named reports whether tests, fuzzers or benchmarks are asked for by name.
func named() bool {
	for _, name := range []string{"test.run", "test.bench", "test.fuzz"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return true
		}
	}
	return false
}
