package statefiles

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// WithChecksum is the content of a file that ends with the checksum of what is before, see
// [ReadChecked].
func WithChecksum(b []byte) []byte {
	return append(b, fmt.Sprintf("\ncrc32c %08x\n", crc32.Checksum(b, Castagnoli))...)
}

const checksumSize = len("\ncrc32c 00000000\n")

// ReadChecked reads a file that [WithChecksum] made. The error wraps [ErrDamaged] when it is
// missing or not what was written.
func ReadChecked(fs vfs.FS, path string) ([]byte, error) {
	b, err := Read(fs, path)
	switch {
	case IsNotExist(err):
		return nil, Damaged(path, "the file is missing")
	case IsMisplaced(err):
		return nil, Damaged(path, "it is not a file")
	case err != nil:
		return nil, err
	case len(b) < checksumSize:
		return nil, Damaged(path, "it has %d bytes, too few", len(b))
	}
	body := b[:len(b)-checksumSize]
	if !bytes.Equal(WithChecksum(slices.Clone(body)), b) {
		return nil, Damaged(path, "its checksum does not match")
	}
	return body, nil
}
