package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"github.com/musterhq/muster/internal/blobtree"
)

// Access modes of access(2) for a directory in which files are made.
const accessToMake = 2 | 1 // W_OK | X_OK

// checkDirectory refuses a directory that cannot be written to. One that does not
// exist is refused if it must, otherwise if it cannot be made. It makes nothing.
func checkDirectory(flag, dir string, must bool) error {
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		return wrongUsage("--%s: %s is a file; name a directory", flag, dir)
	case err == nil:
		return checkWritable(flag, dir)
	case errors.Is(err, syscall.ENOTDIR):
		return wrongUsage("--%s: a part of %s is a file; name a directory", flag, dir)
	case !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("--%s: %s cannot be read: %w", flag, dir, cause(err))
	case must:
		return wrongUsage("--%s: %s does not exist; name a directory that does", flag, dir)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	return checkDirectory(flag, filepath.Dir(abs), false)
}

func checkWritable(flag, dir string) error {
	if err := syscall.Access(dir, accessToMake); err != nil {
		return fmt.Errorf("--%s: no files can be made in %s by the user of this process (uid %d): %w; change its owner or mode, or name another directory", flag, dir, os.Geteuid(), err)
	}
	return nil
}

// checkFileToMake refuses the name of a file that cannot be made or replaced. Its
// directory must exist, unless it is made with the directory data.
func checkFileToMake(flag, file, data string) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return wrongUsage("--%s: %s is a directory; name a file", flag, file)
	}
	dir := filepath.Dir(file)
	return checkDirectory(flag, dir, !isAbove(dir, data))
}

// isAbove reports whether a directory is another one, or above it.
func isAbove(dir, other string) bool {
	a, err := filepath.Abs(dir)
	b, errOther := filepath.Abs(other)
	rel, errRel := filepath.Rel(a, b)
	return err == nil && errOther == nil && errRel == nil && filepath.IsLocal(rel)
}

// checkStorage refuses the URL of storage that cannot be used, as far as that shows
// without a request to it.
func checkStorage(ctx context.Context, flag, storage string) error {
	bucket, err := blobtree.OpenBucket(ctx, storage)
	if err != nil {
		return wrongUsage("--%s: %w", flag, err)
	}
	if err := bucket.Close(); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	if u, err := url.Parse(storage); err == nil && u.Scheme == "file" {
		return checkWritable(flag, filepath.FromSlash(u.Path))
	}
	return nil
}

// cause is an error without the operation and the path, for messages that have both.
func cause(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
