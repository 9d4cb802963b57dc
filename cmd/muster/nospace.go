package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/musterhq/muster/eventlog"
)

// explain is the text of an error that ends the process. That of a full disk, of a file
// that this process may not use, or of one that is a directory, is one line, with what is
// to be done.
func explain(err error) string {
	if text := explainAccess(err); text != "" {
		return text
	}
	text := err.Error()
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, eventlog.ErrNoSpace) ||
		strings.Contains(text, syscall.ENOSPC.Error()) || strings.Contains(text, "No space left on device") // DuckDB
	if !full || strings.Contains(text, fullDisk) {
		return text // the latter is what a server has said, which knows which disk it is
	}
	where := "The file system of the data directory"
	var path *os.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		where = "The file system " + mountOf(path.Path)
	case errors.As(err, &link):
		where = "The file system " + mountOf(link.New)
	}
	return strings.ReplaceAll(text, "\n", "; ") + ". " + where + fullDisk + " and start again; remove nothing in the data directory"
}

const fullDisk = " is full: free space elsewhere on it"

// mountOf is the topmost directory of the file system that a file is to be on.
func mountOf(file string) string {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return "of " + file
	}
	var at, above syscall.Stat_t
	for {
		up := filepath.Dir(dir)
		if up == dir || syscall.Stat(dir, &at) != nil || syscall.Stat(up, &above) != nil || at.Dev != above.Dev {
			return dir
		}
		dir = up
	}
}
