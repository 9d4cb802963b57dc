package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

// unopenable finds the file in the text of an error without a path of its own: DuckDB's,
// and that of a lock.
var unopenable = regexp.MustCompile(`file (?:"([^"]+)"|(\S+) cannot be opened)`)

// explainAccess is the text of an error that says that a file may not be used by this
// process, or that a file is where a directory must be or the other way round: one line
// with the file and what to do. It is empty for other errors, and for those that say
// what to do already.
func explainAccess(err error) string {
	text := err.Error()
	denied := errors.Is(err, fs.ErrPermission) || strings.Contains(text, "Permission denied") // DuckDB
	notDir, isDir := errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR)
	file := ""
	var path *fs.PathError
	if errors.As(err, &path) {
		file = path.Path
	} else if m := unopenable.FindStringSubmatch(text); m != nil {
		file = m[1] + m[2]
	}
	if file == "" || !endsWithCause(text) {
		return ""
	}
	flag := ""
	if strings.HasPrefix(text, "--") {
		flag, _, _ = strings.Cut(text, ": ")
		flag += ": "
	}
	switch {
	case denied:
		return fmt.Sprintf("%s%s: permission denied for the user of this process (uid %d). Give it back to that user, to read and write (chown -R, chmod -R u+rwX), or run muster as the user who owns it", flag, deniedPart(file), os.Geteuid())
	case notDir:
		return fmt.Sprintf("%s%s is a file, and must be a directory. Move it away, and put the directory back if it held anything", flag, misplacedPart(file))
	case isDir:
		return fmt.Sprintf("%s%s is a directory, and must be a file. Move it away, and put the file back if there was one", flag, file)
	}
	return ""
}

// endsWithCause reports whether a text ends with what the system said: nothing says what
// to do about it.
func endsWithCause(text string) bool {
	text = strings.ToLower(text)
	for _, e := range []error{syscall.EACCES, syscall.EPERM, syscall.ENOTDIR, syscall.EISDIR} {
		if strings.HasSuffix(text, e.Error()) {
			return true
		}
	}
	return false
}

// deniedPart is the first directory of a path that this process may not enter, or else
// the path.
func deniedPart(path string) string {
	denied := path
	for at := filepath.Dir(path); ; at = filepath.Dir(at) {
		if errors.Is(syscall.Access(at, 1), syscall.EACCES) { // X_OK
			denied = at
		}
		if at == filepath.Dir(at) {
			return denied
		}
	}
}

// misplacedPart is the first part of a path that is there and is no directory.
func misplacedPart(path string) string {
	for at := path; ; {
		info, err := os.Stat(at)
		if err == nil && !info.IsDir() {
			return at
		}
		up := filepath.Dir(at)
		if err == nil || up == at {
			return path
		}
		at = up
	}
}
