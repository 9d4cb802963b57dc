package ingest

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStreamsAreGuarded: no answer of the service is written by code whose panic would
// end the process, or be reported without its stack.
func TestStreamsAreGuarded(t *testing.T) {
	t.Parallel()
	root, found := os.DirFS(".."), 0
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && len(d.Name()) > 1 && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir // the services of tests change their files meanwhile
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(b)) {
			switch {
			case strings.Contains(line, "SetBodyStreamWriter("):
				t.Errorf("%s: it runs in a goroutine of the library: %s", path, line)
			case !strings.Contains(line, "Response.SetBodyStream("), path == "ingest/handler.go": // the latter sends bytes that are there
			case strings.Contains(line, "GuardStream("), strings.Contains(line, "r.guard("):
				found++
			default:
				t.Errorf("%s: the body of an answer is not in a GuardStream: %s", path, line)
			}
		}
		return nil
	})
	if err != nil || found < 4 {
		t.Errorf("%d found, %v", found, err)
	}
}
