package statecheck

import (
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/checkpoint"
)

// Sum is what a file of a checkpoint must be.
type Sum struct {
	Size int64
	// CRC32 is the checksum of the content with the IEEE polynomial.
	CRC32 uint32
}

// FileManifest is the name of the file of a checkpoint that says what the others are.
const FileManifest = checkpoint.FileManifest

// Sums are what the manifest of the checkpoint in dir says of its other files, by their
// paths from there with slashes.
func Sums(fs vfs.FS, dir string) (map[string]Sum, error) {
	f, err := checkpoint.ReadFiles(fs, dir)
	if err != nil {
		return nil, err
	}
	out := map[string]Sum{}
	for _, s := range f {
		out[s.Path] = Sum{s.Size, s.CRC32}
	}
	return out, nil
}
