package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/musterhq/muster/cmd/muster/internal/backup"
)

// maxModes bounds how many files and directories makePrivate looks at. A data
// directory has some thousands.
const maxModes = 1 << 20

// errEnough ends a walk.
var errEnough = errors.New("enough")

// ours reports whether an entry of a data directory is muster's. The directory may
// have others beside, such as a certificate that other programs read.
func ours(name string) bool {
	switch name {
	case "LOCK", "RESTORING", "log", "state", "outbox", UploadsDir, "migration":
		return true
	}
	for _, prefix := range []string{logFile, planFile, movedFile, HistoryMark, backup.FileMade, HistoryFile} { // and what is beside them for a moment
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// makePrivate takes everybody's access away but the owner's from a data directory
// and what muster has in it: profiles are personal data, and another user or an
// older version may have made the directory. Symbolic links are left alone, and so
// is what they lead to. Files whose modes cannot be changed, such as those of
// another user, are left as they are and reported to the log.
func makePrivate(dir string, log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	defer root.Close()
	seen, changed, left := 0, 0, 0
	var firstErr error
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if seen++; seen > maxModes {
			return errEnough
		}
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has gone meanwhile
			return nil
		case path != "." && !strings.Contains(path, "/") && !ours(path):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case err == nil && !info.IsDir() && !info.Mode().IsRegular():
			return nil
		case err == nil && info.Mode().Perm()&0o077 == 0:
			return nil
		case err == nil:
			err = root.Chmod(path, info.Mode().Perm()&0o700)
		}
		if err == nil {
			changed++
			return nil
		}
		left++
		if firstErr == nil {
			firstErr = err
		}
		if d != nil && d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return fmt.Errorf("data directory: %w", err)
	}
	switch {
	case left > 0:
		log.Warn("others may read files in the data directory; make them those of the user that muster runs as", "dir", dir, "left", left, "made_private", changed, "err", firstErr)
	case errors.Is(err, errEnough):
		log.Warn("the data directory has more files than are looked at; take others' access away from the rest", "dir", dir, "looked_at", maxModes, "made_private", changed)
	case changed > 0:
		log.Info("others could read files in the data directory; they no longer can", "dir", dir, "made_private", changed)
	}
	return nil
}
