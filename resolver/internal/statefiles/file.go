package statefiles

import (
	"errors"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Castagnoli is the table of checksums in the files of the state.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write makes a file with the content durable. Its directory entry is made
// durable by the caller's sync of the directory.
func Write(fs vfs.FS, path string, data []byte) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// writeBack is how many bytes of a large file wait in memory to be written.
const writeBack = 1 << 20

// Create begins a file that may become large. It goes to the disk while it is written:
// tens of megabytes at the end hold up everybody else's syncs, those of the log before all.
// The caller syncs it, closes it, and makes its directory entry durable.
func Create(fs vfs.FS, path string) (vfs.File, error) {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	return vfs.NewSyncingFile(f, vfs.SyncingFileOptions{BytesPerSync: writeBack, NoSyncOnClose: true}), nil
}

// Read reads a file whole.
func Read(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// SyncDir makes the entries of a directory durable.
func SyncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
