package file

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ReplaceFile replaces a file of a directory whole; when it returns nil the new
// content is durable.
func ReplaceFile(fsys vfs.FS, dir, name string, content []byte) (err error) {
	path := fsys.PathJoin(dir, name)
	tmp := path + tmpSuffix
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	f, err := fsys.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fsys.Rename(tmp, path)
	}
	if err != nil {
		return err
	}
	return syncDir(fsys, dir)
}
