//go:build unix

package blobtree

import (
	"io/fs"
	"syscall"
)

// inode is the file's number in its file system, 0 if it has none.
func inode(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(s.Ino)
	}
	return 0
}
