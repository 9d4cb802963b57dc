package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"gocloud.dev/blob/fileblob"
)

// checkPlace refuses a place for backups that is in the data directory: what damages or
// removes that takes them along.
func checkPlace(data, place string) error {
	u, err := url.Parse(place)
	if err != nil || u.Scheme != fileblob.Scheme {
		return nil // judged where it is opened
	}
	dir, err := os.Stat(data)
	if err != nil {
		return nil // the same
	}
	path, err := filepath.EvalSymlinks(filepath.FromSlash(u.Path))
	if err != nil {
		return nil // the same
	}
	for {
		if at, err := os.Stat(path); err == nil && os.SameFile(dir, at) {
			return fmt.Errorf("%s is in the data directory %s: name a place outside of it, on another disk if you can", place, data)
		}
		up := filepath.Dir(path)
		if up == path {
			return nil
		}
		path = up
	}
}
