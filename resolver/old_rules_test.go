package resolver

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/musterhq/muster/query"
)

// TestR1OldLogsReplayToTheSameState replays logs that were written under older rules,
// with contacts, merges, conflicts, erasures, redacted records, imports and flows: the
// state must be the one that the rules of that time led to, since each record carries
// what it was made under. A file of testdata/rules<ApplyVersion> is, compressed, the
// hash of the state in hexadecimal and then the records, each with its length before it
// as a uvarint. The files were written by the build of that version and never change.
func TestR1OldLogsReplayToTheSameState(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/rules*/*.log.gz")
	if err != nil || len(files) == 0 {
		t.Fatal("no old logs", err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data := readCompressed(t, name)
			next := func() []byte {
				n, w := binary.Uvarint(data)
				if w <= 0 || uint64(len(data)-w) < n {
					t.Fatal("the file is cut short")
				}
				b := data[w : w+int(n)]
				data = data[w+int(n):]
				return b
			}
			want := string(next())
			m := testMachine(t)
			var rows query.Batch
			var out Outcome
			for len(data) > 0 {
				if err := m.Apply(m.next, next(), &rows, &out); err != nil {
					t.Fatalf("record %d: %v", m.next-1, err)
				}
			}
			if got := hashOf(t, m); got != want || m.next < 10 {
				t.Fatalf("the state after %d records is %s, %s under the rules of the time", m.next, got, want)
			}
		})
	}
}
