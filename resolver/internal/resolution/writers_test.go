package resolution

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocumentsAreWrittenHereAlone: a package that stored documents by itself would leave
// indexes and segments behind.
func TestDocumentsAreWrittenHereAlone(t *testing.T) {
	root, found := filepath.Join("..", ".."), 0
	if err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		switch here := filepath.Dir(path) == filepath.Join(root, "internal", "resolution"); {
		case err != nil || !bytes.Contains(text, []byte(".PutDocument(")):
			return err
		case here:
			found++
		default:
			t.Errorf("%s stores a document; hand it to the host of the feature", path)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Error("no file stores documents: the test looks for the wrong thing")
	}
}
