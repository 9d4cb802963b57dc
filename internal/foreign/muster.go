package foreign

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// EnvBinary names a muster binary that is built already. Each build links DuckDB, which
// takes longer than many a test.
const EnvBinary = "MUSTER_BINARY"

// Build returns the path of the muster binary that EnvBinary names, or else builds one
// into dir.
func Build(dir string) (path string, err error) {
	if path = os.Getenv(EnvBinary); path != "" {
		return path, nil
	}
	path = filepath.Join(dir, "muster")
	if out, err := exec.Command("go", "build", "-o", path, "github.com/musterhq/muster/cmd/muster").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building muster: %w\n%s", err, out)
	}
	return path, nil
}

// Muster is Build for one test.
func Muster(t *testing.T) string {
	t.Helper()
	path, err := Build(t.TempDir())
	ok(t, err)
	return path
}
