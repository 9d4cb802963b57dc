//go:build unix

package accounts

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives the file the owner and the group of the one that it replaces.
func keepOwner(f *os.File, replaced fs.FileInfo) error {
	have, err := f.Stat()
	if err != nil {
		return err
	}
	is, known := have.Sys().(*syscall.Stat_t)
	want, knownToo := replaced.Sys().(*syscall.Stat_t)
	if !known || !knownToo || is.Uid == want.Uid && is.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}
