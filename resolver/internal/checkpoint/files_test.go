package checkpoint

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/musterhq/muster/resolver/internal/statefiles"
)

// TestSumOfFilesWithTheirChecksum: files of one length that end with a CRC-32C of
// themselves have different checksums in a manifest.
func TestSumOfFilesWithTheirChecksum(t *testing.T) {
	fs := vfs.NewMem()
	sum := func(content string) fileSum {
		t.Helper()
		b := []byte(content)
		if err := statefiles.Write(fs, "f", binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, statefiles.Castagnoli))); err != nil {
			t.Fatal(err)
		}
		s, err := sumFile(fs, "f")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if a, b := sum("one state"), sum("two state"); a == b || a.Size != b.Size {
		t.Errorf("%+v and %+v", a, b)
	}
}
