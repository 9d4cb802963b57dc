package datacheck

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/musterhq/muster/cmd/muster/internal/engine"
)

// kinds are names of a data directory that a start cannot use, and does not set aside, when
// they are something else.
var kinds = []struct {
	name      string
	directory bool
}{
	{"control.sock", false}, {"log/LOCK", false}, {"moved.json", false}, {engine.UploadsDir, true},
}

// checkKinds returns an error of the system where one of the kinds is something else, as a
// start meets it.
func checkKinds(dir string) error {
	for _, k := range kinds {
		path := filepath.Join(dir, filepath.FromSlash(k.name))
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
			continue
		case err != nil:
			return fmt.Errorf("data directory: %w", err)
		case info.IsDir() == k.directory:
			continue
		case k.directory:
			err = syscall.ENOTDIR
		default:
			err = syscall.EISDIR
		}
		return fmt.Errorf("data directory: %w", &fs.PathError{Op: "open", Path: path, Err: err})
	}
	return nil
}
