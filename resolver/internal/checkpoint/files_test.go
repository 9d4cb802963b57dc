package checkpoint

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"
	"time"

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
		s, err := sumFile(fs, "f", nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if a, b := sum("one state"), sum("two state"); a == b || a.Size != b.Size {
		t.Errorf("%+v and %+v", a, b)
	}
}

// TestChecksumsAndSegmentsPause: a throttled checkpoint pauses while it computes checksums and
// writes the file of segments, and its checksums are those of one that is not throttled.
func TestChecksumsAndSegmentsPause(t *testing.T) {
	c := &Dir{FS: vfs.NewMem(), Root: "state"}
	const name = "1"
	if err := c.FS.MkdirAll(c.Path(DirCheckpoints, name), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"a", "b"} {
		if err := statefiles.Write(c.FS, c.Path(DirCheckpoints, name, f), make([]byte, 3*sumBuffer)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := c.sum(name, nil, nil)
	if err != nil || len(want) != 2 {
		t.Fatal(want, err)
	}
	slept := 0
	var p *Pauses
	worked := func() { p.since = p.since.Add(-time.Second) }
	p = newPauses(&Throttle{Budget: time.Hour, Sleep: func(time.Duration) { slept++ }}, 1)
	worked()
	got, err := c.sum(name, nil, p)
	if err != nil || !slices.Equal(got, want) || slept == 0 {
		t.Errorf("with %d pauses %+v, without %+v; %v", slept, got, want, err)
	}
	slept = 0
	worked()
	if _, err := writeSegmentFile(c.FS, c.Path("segments"), nil, p); err != nil || slept == 0 {
		t.Errorf("%d pauses, %v", slept, err)
	}
}
