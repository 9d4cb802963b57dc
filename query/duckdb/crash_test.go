package duckdb

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/query/internal/historytest"
)

const (
	crashChildPath = "MUSTER_CRASH_CHILD_PATH"
	crashChildSeed = "MUSTER_CRASH_CHILD_SEED"
)

// crashChild appends to two partitions until it is killed. Small batches take
// the way over the write-ahead log, large ones are written straight to the
// file; small checkpoint limits make checkpoints part of the game. Batches
// overlap what is stored, as they do after a crash of the feeding side.
func crashChild(path string) {
	seed, _ := strconv.ParseUint(os.Getenv(crashChildSeed), 10, 64)
	rng := rand.New(rand.NewPCG(seed, 1))
	// Large batches take most of the time, so most kills would hit them.
	large := rng.IntN(3) == 0
	s, err := Open(path, Options{CheckpointBytes: 2 * mb})
	if err != nil {
		fmt.Println("open:", err)
		os.Exit(3)
	}
	fmt.Println("open")
	ctx := context.Background()
	b := new(query.Batch)
	for {
		partition := rng.IntN(2)
		position, err := s.Position(ctx, partition)
		if err != nil {
			fmt.Println("position:", err)
			os.Exit(3)
		}
		records := 1 + rng.Int64N(60)
		if large && rng.IntN(3) == 0 {
			records = 60_000
		}
		historytest.FillRecords(b, partition, max(0, position-rng.Int64N(50)), position+records)
		if err := s.Append(ctx, b); err != nil {
			fmt.Println("append:", err)
			os.Exit(3)
		}
	}
}

// TestL2KilledWhileAppending kills a process that appends, at random moments,
// without any closing, and then finds each record below the position whole,
// once, and unchanged, and nothing above it.
func TestL2KilledWhileAppending(t *testing.T) {
	t.Parallel()
	rounds := testlevel.Count(4, 16)
	if testlevel.Long() {
		rounds = 100
	}
	path := filepath.Join(t.TempDir(), "h.duckdb")
	seed := uint64(time.Now().UnixNano())
	if n, err := strconv.ParseUint(os.Getenv("MUSTER_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("MUSTER_SEED=%d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	var last [2]int64
	for round := 0; round < rounds || (last[0] == 0 || last[1] == 0) && round < 20*rounds; round++ {
		killChild(t, path, rng)
		s, err := Open(path, Options{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for partition := range last {
			p := checkRecords(t, s, partition)
			if p < last[partition] {
				t.Fatalf("round %d: partition %d went back from %d to %d", round, partition, last[partition], p)
			}
			last[partition] = p
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if last[0] == 0 || last[1] == 0 {
		t.Fatal("nothing was stored, so nothing was tested")
	}
	t.Logf("positions %v", last)
}

// killChild runs a child and kills it some time after it has opened the file.
func killChild(t *testing.T, path string, rng *rand.Rand) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashChildPath+"="+path, fmt.Sprintf("%s=%d", crashChildSeed, rng.Uint64()))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 256)
	n, _ := out.Read(line)
	if got := string(line[:n]); got != "open\n" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("child: %q", got)
	}
	time.Sleep(time.Duration(rng.Int64N(int64(400 * time.Millisecond)))) // the moment of a kill is random
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	n, _ = out.Read(line)
	if n > 0 {
		t.Fatalf("child: %q", line[:n])
	}
	_ = cmd.Wait()
}

// checkRecords compares a partition with what its position promises.
func checkRecords(t *testing.T, s *Store, partition int) (position int64) {
	t.Helper()
	ctx := context.Background()
	position, err := s.Position(ctx, partition)
	if err != nil {
		t.Fatal(err)
	}
	next, index := int64(0), 0 // the row that comes next
	skip := func() {
		for next < position && index >= historytest.RecordRows(next) {
			next, index = next+1, 0
		}
	}
	sql := fmt.Sprintf(`%s events WHERE "partition" = %d ORDER BY record_offset, record_index`, selectRows, partition)
	err = s.writer.query(ctx, sql, nil, func(ch chunk) error {
		var r rows
		r.addChunk(ch)
		for i := range r.Rows() {
			skip()
			if r.Offset[i] != next || r.Index[i] != uint32(index) || r.Account[i] != uint64(7+partition) ||
				r.Ordinal[i] != uint32(next%1000) || r.TimeMs[i] != 1_700_000_000_000+next ||
				string(r.EventType.At(i)) != "tested" || string(r.Properties.At(i)) != historytest.RecordText(next, index) ||
				string(r.IdempotencyKey.At(i)) != strconv.FormatInt(next, 10) {
				return fmt.Errorf("row %d.%d %s, want %d.%d", r.Offset[i], r.Index[i], r.Properties.At(i), next, index)
			}
			index++
		}
		return nil
	})
	if err != nil {
		t.Fatalf("L2: partition %d at %d: %v", partition, position, err)
	}
	if skip(); next != position {
		t.Fatalf("L2: partition %d: rows end at %d.%d, the position is %d", partition, next, index, position)
	}
	var aliases int64
	for o := range position {
		if historytest.HasAlias(o) {
			aliases++
		}
	}
	if got := scalar(t, s, fmt.Sprintf(`SELECT count(DISTINCT record_offset) * 1000000 + count(*) FROM aliases WHERE "partition" = %d`, partition)); got != aliases*1_000_001 {
		t.Fatalf("L2: partition %d: aliases %d, want %d", partition, got, aliases)
	}
	checkTransitions(t, s, partition, position)
	return position
}

// checkTransitions pages through a partition's transitions.
func checkTransitions(t *testing.T, s *Store, partition int, position int64) {
	t.Helper()
	q := query.TransitionsQuery{Cut: query.Cut{Partition: partition, UpTo: math.MaxInt64}, Account: uint64(7 + partition), Limit: maxTransitions}
	var page []query.Transition
	for o := range position {
		for i := range historytest.RecordTransitions(o) {
			if len(page) == 0 {
				var err error
				if page, err = s.Transitions(context.Background(), q); err != nil || len(page) == 0 {
					t.Fatalf("L2: partition %d: no transition after %v, the position is %d (%v)", partition, q.After, position, err)
				}
			}
			if want := historytest.RecordTransition(partition, o, i+1); page[0] != want {
				t.Fatalf("L2: partition %d: transition %+v, want %+v", partition, page[0], want)
			}
			q.After, page = page[0].Key, page[1:]
		}
	}
	rest, err := s.Transitions(context.Background(), q)
	if err != nil || len(rest) > 0 {
		t.Fatalf("L2: partition %d: %d transitions beyond the position %d (%v)", partition, len(rest), position, err)
	}
}

// scalar asks for one BIGINT.
func scalar(t *testing.T, s *Store, sql string) (v int64) {
	t.Helper()
	err := s.writer.query(context.Background(), "SELECT CAST(("+sql+") AS BIGINT)", nil, func(ch chunk) error {
		v = column[int64](ch, 0)[0]
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}
