// Package serverprocess runs muster serve as a process of its own, for tests that kill it or
// have other programs talk to it. For servers in the process of a test, see servertest.
package serverprocess

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// EnvBinary names a muster binary that is built already. Each build links DuckDB, which
// takes longer than many a test.
const EnvBinary = "MUSTER_BINARY"

// binaryDir is for the binary that [Binary] builds. Main makes it before any test, for some
// set TMPDIR to a directory that goes with them.
var binaryDir string

// Main runs the tests of a package that calls [Binary], and removes what that built. It does
// not return.
func Main(m *testing.M) {
	var err error
	if binaryDir, err = os.MkdirTemp("", "muster-binary-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(binaryDir)
	os.Exit(code)
}

var build = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(EnvBinary); path != "" {
		return path, nil
	}
	path := filepath.Join(binaryDir, "muster")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/musterhq/muster/cmd/muster").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building muster: %w\n%s", err, out)
	}
	return path, nil
})

// Binary is the path of the muster binary that EnvBinary names, or of one that is built once
// for all tests of the package. Its TestMain must call [Main].
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
