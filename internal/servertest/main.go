// Package servertest runs the parts of a Muster server in the process of a test: a node, and
// the HTTP server in front of it. A test that needs a server in a process of its own, to kill
// it or to talk to it with another program, uses package serverprocess.
package servertest

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/musterhq/muster/internal/password"
)

// Main runs the tests of a package with cheap passwords, and fails where a goroutine is
// left over. It does not return.
func Main(m *testing.M) {
	password.Default = password.Params{MemoryKiB: 64, Iterations: 1, Lanes: 1}
	// Goroutines of fasthttp: a clock for the header Date and, for 10 s after the end of
	// a server or a client, those that clean up its workers and connections.
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*Client).mCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}
