package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// HistoryFile is the database of history in a data directory.
const HistoryFile = "history.duckdb"

// UploadsDir is where a data directory has files that people uploaded.
const UploadsDir = "uploads"

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
	foreign, left := "", ""
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch whose, err := whoseEntry(path, e); {
		case err != nil:
			return err
		case whose == leftOver:
			if left == "" || e.Name() == "state" || ephemeral(left) && !ephemeral(e.Name()) {
				left = e.Name()
			}
		case whose == somebodys && foreign == "" && !isMine(path, mine):
			foreign = e.Name()
		}
	}
	if left != "" {
		return fmt.Errorf("%w: %s has %s, but no records in %s. Put the log back that belongs to it, restore a backup, or name an empty directory with --data",
			ErrNoLog, dir, left, filepath.Join(dir, "log"))
	}
	if foreign != "" {
		return fmt.Errorf("%w: %s is not empty, it has %s. Name an empty directory with --data, or one that is not there", ErrNotOurs, dir, foreign)
	}
	return nil
}

// Whose an entry of a directory without a log is.
const (
	harmless  = iota // a start that was cut off leaves it
	leftOver         // of a data directory whose log is gone
	somebodys        // not muster's
)

// ephemeral reports whether a process that was killed leaves an entry of that name, which
// says little of what is lost.
func ephemeral(name string) bool { return name == "control.sock" || name == BackupDir }

func whoseEntry(path string, e fs.DirEntry) (whose int, err error) {
	switch name := e.Name(); {
	case name == "state" || name == "control.sock" || name == BackupDir || strings.HasPrefix(name, HistoryFile):
		return leftOver, nil
	case (name == "outbox" || name == UploadsDir) && e.IsDir():
		inside, err := os.ReadDir(path)
		if err != nil {
			return 0, fmt.Errorf("data directory: %w", err)
		}
		if len(inside) > 0 {
			return leftOver, nil
		}
		return harmless, nil
	case name == "log" && e.IsDir():
		return whoseLog(path)
	case name == "LOCK" || name == "lost+found" || name == logFile+".tmp":
		return harmless, nil
	}
	return somebodys, nil
}

// whoseLog judges a directory log that has neither a meta file nor a segment.
func whoseLog(path string) (whose int, err error) {
	inside, err := os.ReadDir(path)
	if err != nil {
		return 0, fmt.Errorf("data directory: %w", err)
	}
	for _, e := range inside {
		name := e.Name()
		if name != "LOCK" && name != "meta.tmp" && !partitionDir.MatchString(name) {
			return somebodys, nil
		}
	}
	return harmless, nil
}

var (
	partitionDir = regexp.MustCompile(`^p[0-9]+$`)
	segmentFile  = regexp.MustCompile(`^[0-9]{20}\.log$`)
)

// hasLog reports whether a directory has a log of its own, or the part of one: its
// meta file, or a segment.
func hasLog(dir string) (bool, error) {
	inside, err := os.ReadDir(filepath.Join(dir, "log"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("data directory: %w", err)
	}
	for _, e := range inside {
		if e.Name() == "meta" {
			return true, nil
		}
		if !partitionDir.MatchString(e.Name()) || !e.IsDir() {
			continue
		}
		files, err := os.ReadDir(filepath.Join(dir, "log", e.Name()))
		if err != nil {
			return false, fmt.Errorf("data directory: %w", err)
		}
		if slices.ContainsFunc(files, func(f fs.DirEntry) bool { return segmentFile.MatchString(f.Name()) }) {
			return true, nil
		}
	}
	return false, nil
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
