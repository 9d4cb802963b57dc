package apitest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/musterhq/muster/internal/password"
)

// Main runs the tests of a package with cheap passwords, and fails where a goroutine is
// left over. It does not return.
func Main(m *testing.M) {
	password.Default = password.Params{MemoryKiB: 64, Iterations: 1, Lanes: 1}
	// fasthttp's own: a clock for the header Date and, for 10 s after the end of
	// a server, who cleans up behind its workers.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}
