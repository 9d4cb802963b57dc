package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// HistoryFile is the database of history in a data directory.
const HistoryFile = "history.duckdb"

// ErrNoLog means that a directory has what follows from a log, but no log.
var ErrNoLog = errors.New("the log is missing")

// ErrNotOurs means that a directory holds files that are not Muster's.
var ErrNotOurs = errors.New("the directory is not a data directory of muster")

// checkWhose refuses, before anything is written, a directory in which a new log may
// not begin: one whose log was lost, and one that belongs to something else. A
// directory with a log of its own is neither, whatever else is in it. mine are paths
// that may be in a new directory, such as the credentials file.
func checkWhose(dir string, mine []string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if has, err := hasLog(dir); err != nil || has {
		return err
	}
	if _, found, err := readLogName(dir); err != nil || found {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == "state" || name == HistoryFile || name == HistoryFile+".wal":
			return fmt.Errorf("%w: %s has %s, but no records in %s. Put the log back that belongs to it, restore a backup, or name an empty directory with --data",
				ErrNoLog, dir, name, filepath.Join(dir, "log"))
		case name == "LOCK" || name == "log" || name == "outbox" || name == "lost+found" || strings.HasPrefix(name, HistoryFile), strings.HasSuffix(name, ".tmp"):
		case isMine(filepath.Join(dir, name), mine):
		default:
			return fmt.Errorf("%w: %s is not empty, it has %s. Name an empty directory with --data, or one that is not there", ErrNotOurs, dir, name)
		}
	}
	return nil
}

// hasLog reports whether a directory has a log of its own, or the part of one: its
// meta file, or a segment.
func hasLog(dir string) (bool, error) {
	for _, pattern := range []string{"log/meta", "log/p*/*.log"} {
		found, err := filepath.Glob(filepath.Join(escapeGlob(dir), pattern))
		if err != nil || len(found) > 0 {
			return len(found) > 0, err
		}
	}
	return false, nil
}

// escapeGlob quotes what has a meaning in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

func isMine(path string, mine []string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) // gone meanwhile
	}
	for _, m := range mine {
		if other, err := os.Stat(m); err == nil && os.SameFile(info, other) {
			return true
		}
	}
	// Where what this process prints goes to.
	for _, f := range []*os.File{os.Stdout, os.Stderr} {
		if other, err := f.Stat(); err == nil && os.SameFile(info, other) {
			return true
		}
	}
	return false
}
