package resolver

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/query"
)

// A golden log is a log that a test or a simulation once wrote, with what each of its
// records led to. It holds the state machine to its behaviour while its code is moved: a
// change that means no change of rules reproduces every golden log to the byte.
//
// A file of testdata/golden is compressed. It has, for each record: its length as a
// uvarint, its bytes, 4 bytes of the hash of its outcome, 4 of that of its rows of
// history, and 8 of that of the state after it, which are zero where none was taken.

// takesState says behind which records the state is compared: its hash reads all of it.
func takesState(i, records int) bool {
	return i == records-1 || i < 64 && i%8 == 0 || i%256 == 0
}

var goldenUpdate = flag.Bool("golden-update", false, "rewrite what the records of testdata/golden lead to; for changes of the rules alone")

type goldenRecord struct {
	data          []byte
	outcome, rows [4]byte
	state         [8]byte
}

// readCompressed reads a file that gzip wrote.
func readCompressed(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// readGolden reads a golden log.
func readGolden(t testing.TB, path string) (log []goldenRecord) {
	t.Helper()
	data := readCompressed(t, path)
	for len(data) > 0 {
		n, w := binary.Uvarint(data)
		if w <= 0 || uint64(len(data)-w) < n+16 {
			t.Fatalf("%s is cut short", path)
		}
		r := goldenRecord{data: data[w : w+int(n)]}
		data = data[w+int(n):]
		data = data[copy(r.outcome[:], data):]
		data = data[copy(r.rows[:], data):]
		data = data[copy(r.state[:], data):]
		log = append(log, r)
	}
	return log
}

func writeGolden(t testing.TB, path string, log []goldenRecord) {
	t.Helper()
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	for _, r := range log {
		head := binary.AppendUvarint(nil, uint64(len(r.data)))
		for _, part := range [][]byte{head, r.data, r.outcome[:], r.rows[:], r.state[:]} {
			if _, err := z.Write(part); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replayGolden applies the log to an empty machine and returns what each record leads to
// now. The account's sender may spend as much as the recorded tests let it.
func replayGolden(t testing.TB, log []goldenRecord, told func(i int, name string, got goldenRecord, out *Outcome, rows *query.Batch)) {
	t.Helper()
	m := testMachine(t)
	var rows query.Batch
	var out Outcome
	for i, r := range log {
		rows.Reset()
		err := m.Apply(int64(i), r.data, &rows, &out)
		if err != nil {
			out.Refusal = &Refusal{Code: "fatal", Message: err.Error()}
		}
		if err == nil {
			checkTotals(t, m)
		}
		got := goldenRecord{data: r.data}
		sum := sha256.Sum256(must.JSON(out))
		copy(got.outcome[:], sum[:])
		sum = sha256.Sum256(rowsText(&rows))
		copy(got.rows[:], sum[:])
		if err == nil && (takesState(i, len(log))) {
			hash, err := m.Hash()
			if err != nil {
				t.Fatal(err)
			}
			sum = sha256.Sum256([]byte(hash))
			copy(got.state[:], sum[:])
		}
		told(i, recordName(r.data), got, &out, &rows)
		if err != nil {
			return // nothing may be applied behind it
		}
	}
}

// rowsText is rows of history as text, whatever their layout in memory is.
func rowsText(rows *query.Batch) []byte {
	var b bytes.Buffer
	for i := range rows.Rows() {
		fmt.Fprintf(&b, "%d %d %d %d %d %q %q %q\n", rows.Account[i], rows.Offset[i], rows.Index[i], rows.Ordinal[i], rows.TimeMs[i],
			rows.EventType.At(i), rows.Properties.At(i), rows.IdempotencyKey.At(i))
	}
	for _, a := range rows.Aliases {
		fmt.Fprintf(&b, "alias %d %d %d %d %d\n", a.Account, a.Offset, a.Index, a.Ordinal, a.Winner)
	}
	for _, x := range rows.Transitions {
		fmt.Fprintf(&b, "transition %d %d %d %s %d %v %v %d\n", x.Account, x.Key.Offset, x.Key.Seq, x.Segment, x.Ordinal, x.Entered, x.Cause, x.AtMs)
	}
	return b.Bytes()
}

// recordName is a command's name, or what kind of record it is.
func recordName(data []byte) string {
	env, body, err := eventlog.DecodeEnvelope(data)
	if err != nil {
		return "no record"
	}
	if env.Kind == eventlog.KindCommand {
		if name, _, err := eventlog.DecodeCommand(body); err == nil {
			return name
		}
	}
	return fmt.Sprintf("kind %d", env.Kind)
}

// TestR1GoldenLogs replays the golden logs: outcomes, rows of history and state are those
// of the time when they were recorded, record by record.
func TestR1GoldenLogs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/golden/*.log.gz")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden logs", err)
	}
	var mu sync.Mutex
	names := map[string]bool{}
	t.Run("logs", func(t *testing.T) {
		for _, path := range files {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".log.gz"), func(t *testing.T) {
				t.Parallel()
				log := readGolden(t, path)
				replayGolden(t, log, func(i int, name string, got goldenRecord, out *Outcome, rows *query.Batch) {
					mu.Lock()
					names[name] = true
					mu.Unlock()
					want := &log[i]
					if *goldenUpdate {
						*want = got
						return
					}
					if got.outcome != want.outcome {
						t.Fatalf("record %d (%s): another outcome than at the time: %s", i, name, must.JSON(out))
					}
					if got.rows != want.rows {
						t.Fatalf("record %d (%s): other rows of history than at the time:\n%s", i, name, rowsText(rows))
					}
					if got.state != want.state {
						t.Fatalf("record %d (%s): another state than at the time; its outcome and rows are the same", i, name)
					}
				})
				if *goldenUpdate {
					writeGolden(t, path, log)
				}
			})
		}
	})
	for name := range commandTable {
		if !names[name] {
			t.Errorf("no golden log has the command %s; see recordLog", name)
		}
	}
}

var recordInto = flag.String("golden-record", "", "write the logs of the tests that run into this directory")

var recorded struct {
	sync.Mutex
	logs map[*Machine][]goldenRecord
	n    int
}

// recordLog writes what a test applies into the directory of -golden-record, one file for
// each of its machines:
//
//	go test ./resolver -short -run Story -golden-record /tmp/logs
//
// Those that are copied to testdata/golden are golden logs once -golden-update has
// written what they lead to. Logs named OldNames are others whose commands have the names
// of before.
func recordLog(t testing.TB, m *Machine, record []byte) {
	if *recordInto == "" {
		return
	}
	recorded.Lock()
	defer recorded.Unlock()
	if recorded.logs == nil {
		recorded.logs = map[*Machine][]goldenRecord{}
	}
	log, known := recorded.logs[m]
	if !known {
		if m.next != 0 {
			return // loaded from a checkpoint: the log's beginning is elsewhere
		}
		recorded.n++
		path := filepath.Join(*recordInto, fmt.Sprintf("%s-%d.log.gz", strings.NewReplacer("/", "-", " ", "_").Replace(t.Name()), recorded.n))
		t.Cleanup(func() {
			recorded.Lock()
			defer recorded.Unlock()
			writeGolden(t, path, recorded.logs[m])
			delete(recorded.logs, m)
		})
	}
	recorded.logs[m] = append(log, goldenRecord{data: slices.Clone(record)})
}
