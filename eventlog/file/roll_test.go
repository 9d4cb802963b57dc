package file

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestRollLetsTrimDropL1: what was stored before a roll can be trimmed though
// its segment is nearly empty; what came after it stays, after a restart too.
func TestRollLetsTrimDropL1(t *testing.T) {
	t.Parallel()
	opts := Options{FS: vfs.NewMem(), Partitions: 2, SegmentBytes: 1 << 20}
	l := mustOpen(t, "log", opts)
	var want [][]byte
	for i := range int64(12) {
		if i == 10 {
			if err := l.Roll(1); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, payload(i, 40))
		mustAppend(t, l, 1, want[i])
	}
	if err := l.Roll(2); err == nil {
		t.Error("rolled a partition that is not there")
	}
	for _, x := range []struct{ before, start int64 }{{9, 0}, {10, 10}, {12, 10}} {
		if err := l.Trim(1, x.before); err != nil {
			t.Fatal(err)
		}
		if start, end, err := l.Bounds(t.Context(), 1); err != nil || start != x.start || end != 12 {
			t.Fatalf("after a trim below %d the log is from %d to %d, %v; want from %d", x.before, start, end, err, x.start)
		}
	}
	mustClose(t, l)
	l = mustOpen(t, "log", opts)
	mustHold(t, l, 1, 10, want[10:])
	mustClose(t, l)
}
