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
	"fmt"
	"os"
	"strconv"
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

// EachSeed runs a simulation with so many seeds, in parallel. Once all have passed, enough
// checks that they compared enough. MUSTER_SEEDS sets another number of seeds; MUSTER_SEED
// repeats one seed, without enough.
func EachSeed(t *testing.T, seeds int, simulate func(t *testing.T, seed uint64), enough func(seeds int)) {
	t.Helper()
	if n, err := strconv.Atoi(os.Getenv("MUSTER_SEEDS")); err == nil {
		seeds = n
	}
	if seed, err := strconv.ParseUint(os.Getenv("MUSTER_SEED"), 10, 64); err == nil {
		simulate(t, seed)
		return
	}
	t.Cleanup(func() {
		if !t.Failed() {
			enough(seeds)
		}
	})
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			simulate(t, uint64(seed))
		})
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
