package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFullDiskOfBackups: a command that hands on what a server says of a full disk does not
// take it for another disk.
func TestFullDiskOfBackups(t *testing.T) {
	dir := t.TempDir()
	server := explain(fmt.Errorf("store backup/files/1: %w", &os.PathError{Op: "write", Path: filepath.Join(dir, "x"), Err: syscall.ENOSPC}))
	if want := "The file system " + mountOf(filepath.Join(dir, "x")) + " is full"; !strings.Contains(server, want) {
		t.Errorf("%q lacks %q", server, want)
	}
	if command := explain(errors.New(server)); command != server {
		t.Errorf("the command says %q", command)
	}
}
