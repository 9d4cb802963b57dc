package statefiles

import (
	"errors"
	"io/fs"
	"syscall"
)

// IsNotExist reports whether an error says that there is no such file.
func IsNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// IsMisplaced reports whether an error says that a file is where a directory must be, or a
// directory where a file must be.
func IsMisplaced(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.EISDIR)
}

// IsEnvironment reports whether an error says something of the machine rather than
// of a file's content.
func IsEnvironment(err error) bool {
	for _, e := range [...]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EACCES, syscall.EPERM, syscall.EROFS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
