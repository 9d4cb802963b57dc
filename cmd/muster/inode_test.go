package main

import (
	"io/fs"
	"syscall"
)

// inodeOf is the number of a file below all its names.
func inodeOf(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }
