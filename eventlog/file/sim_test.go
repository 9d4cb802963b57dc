package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/testlevel"
)

// TestSimulationL1 runs seeded histories of one log against a model: appends,
// group commits, trims, redactions and readers, with crashes before any operation on the
// file system (also during recovery), failed writes and fsyncs, full disks, kills
// and clean stops. After each start every record that was acknowledged or read is
// there, in order, without a gap, none that was refused for want of space is, and
// nothing was acknowledged after a failed fsync.
//
// A history is a function of its seed, except that a crash clone visits the
// files of a directory in random order when it decides what survives. So
// MUSTER_SEED=n repeats one seed many times. MUSTER_LONG=1 runs twenty times
// as many seeds.
func TestSimulationL1(t *testing.T) {
	t.Parallel()
	if s := os.Getenv("MUSTER_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 300 {
			if _, err := simulate(seed); err != nil {
				t.Fatalf("seed %d, run %d: %v", seed, i, err)
			}
		}
		return
	}
	seeds := testlevel.Count[uint64](150, 1500)
	if testlevel.Long() {
		seeds *= 20
	}
	var total simStats
	for seed := range seeds {
		st, err := simulate(seed)
		if err != nil {
			t.Fatalf("seed %d (repeat it with MUSTER_SEED=%d): %v", seed, seed, err)
		}
		total.add(st)
	}
	t.Logf("%d seeds: %+v", seeds, total)
	// A simulation that meets none of these proves nothing.
	if total.Acked == 0 || total.Crashes == 0 || total.RecoveryCrashes == 0 || total.Failures == 0 ||
		total.Cuts == 0 || total.Trims == 0 || total.Unacked == 0 || total.Rolls == 0 || total.Unborn == 0 ||
		total.Refused == 0 || total.Again == 0 || total.FullStarts == 0 || total.Redacted == 0 || total.Unredacted == 0 || total.Noted == 0 {
		t.Fatal("the simulation misses a kind of event")
	}
}

// simStats counts what the simulation met.
type simStats struct {
	Acked, Unacked, Crashes, RecoveryCrashes, Failures, Kills, Stops, Cuts, Trims, Rolls, Unborn int
	// Refused counts batches without space, Again the stores after such, FullStarts
	// starts that a full disk ended.
	Refused, Again, FullStarts int
	// Redacted counts records that were redacted, Unredacted those of which that is not
	// certain.
	Redacted, Unredacted int
	// Noted counts when it was noted how far the log goes.
	Noted int
}

func (s *simStats) add(o simStats) {
	s.Acked += o.Acked
	s.Unacked += o.Unacked
	s.Crashes += o.Crashes
	s.RecoveryCrashes += o.RecoveryCrashes
	s.Failures += o.Failures
	s.Kills += o.Kills
	s.Stops += o.Stops
	s.Cuts += o.Cuts
	s.Trims += o.Trims
	s.Rolls += o.Rolls
	s.Unborn += o.Unborn
	s.Redacted += o.Redacted
	s.Unredacted += o.Unredacted
	s.Refused += o.Refused
	s.Again += o.Again
	s.FullStarts += o.FullStarts
	s.Noted += o.Noted
}

var errDead = errors.New("the process is dead")

// sim is one history.
type sim struct {
	rng   *rand.Rand
	mem   *vfs.MemFS
	parts []simPartition
	stats simStats

	// ops counts operations that change the file system. Before operation
	// crashAt the world stops: crashed is what a restart finds. Operation
	// failAt fails.
	ops, crashAt, failAt int
	// syncsOnly counts fsyncs of data alone: torn batches are made there.
	syncsOnly bool
	crashed   *vfs.MemFS
	injected  bool

	// free is the space left, negative for no limit; made counts payloads, so that
	// no two are alike.
	free int64
	made int64
	now  time.Time
}

// simPartition is the model of one partition.
type simPartition struct {
	// records holds all that was ever appended, by offset.
	records [][]byte
	// redacting are records of which it is not known whether they are redacted:
	// what they are if so.
	redacting map[int64][]byte
	// acked follows the newest record that was acknowledged or read.
	acked int64
	// trimmed is the largest offset Trim was asked for.
	trimmed int64
	// waiting are appends without an answer.
	waiting []*waiter
}

// MaybeError implements errorfs.Injector.
func (s *sim) MaybeError(op errorfs.Op) error {
	if s.crashed != nil {
		return errDead
	}
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead && op.Kind != errorfs.OpOpen || op.Kind == errorfs.OpLock {
		return nil
	}
	if s.syncsOnly && op.Kind != errorfs.OpFileSyncData {
		return nil
	}
	s.ops++
	if s.ops == s.crashAt {
		s.crashed = s.clone()
		return errDead
	}
	if s.ops == s.failAt {
		s.injected = true
		return errorfs.ErrInjected
	}
	return nil
}

func (s *sim) String() string { return "simulation" }

// clone is the disk after a power loss now.
func (s *sim) clone() *vfs.MemFS {
	percent := []int{0, 10, 50, 90, 100}[s.rng.IntN(5)]
	rng := rand.New(rand.NewPCG(s.rng.Uint64(), 1))
	return s.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
}

func simulate(seed uint64) (st simStats, err error) {
	s := &sim{rng: rand.New(rand.NewPCG(seed, 0x6d7573746572)), mem: vfs.NewCrashableMem(), free: -1}
	s.parts = make([]simPartition, 1+s.rng.IntN(2))
	opts := Options{
		Partitions:     len(s.parts),
		SegmentBytes:   int64(4<<10 + s.rng.IntN(16<<10)),
		MaxRecordBytes: 10 << 10,
		QueueBytes:     24 << 10,
		TailBytes:      int64(s.rng.IntN(2)) * blockBytes,
		Rand:           rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}),
		Now:            func() time.Time { return s.now },
	}
	for round := range 2 + s.rng.IntN(4) {
		if err := s.round(opts); err != nil {
			return s.stats, fmt.Errorf("round %d: %w", round, err)
		}
	}
	// The last word is an undisturbed start.
	s.arm(0, 0)
	s.free = -1
	l, err := s.start(opts)
	if err != nil {
		return s.stats, err
	}
	defer l.release((*partition).abandon)
	return s.stats, s.verify(l)
}

// arm sets when, in operations from now, the disk crashes or fails; 0 is
// never.
func (s *sim) arm(crashAt, failAt int) {
	s.ops, s.crashAt, s.failAt = 0, crashAt, failAt
	s.crashed, s.injected = nil, false
}

func (s *sim) start(opts Options) (*Log, error) {
	opts.FS = errorfs.Wrap(fullFS{s.mem, &s.free}, s)
	l, err := open("data/log", opts)
	if err == nil && l.Stats().CutBytes > 0 {
		s.stats.Cuts++
	}
	return l, err
}

// round starts the log, works on it for a while and ends it in some way.
func (s *sim) round(opts Options) error {
	s.syncsOnly = false
	switch s.rng.IntN(6) {
	case 0:
		s.arm(0, 1+s.rng.IntN(80))
	case 1:
		s.arm(0, 1+s.rng.IntN(10))
		s.syncsOnly = true
	case 2, 3:
		s.arm(1+s.rng.IntN(10), 0)
		s.syncsOnly = true
	case 4:
		// Often within the start.
		s.arm(1+s.rng.IntN(20), 0)
	default:
		s.arm(1+s.rng.IntN(150), 0)
	}
	unborn := s.hasBlankSegment()
	s.free = -1
	if s.rng.IntN(8) == 0 {
		s.free = s.rng.Int64N(100)
	}
	l, err := s.start(opts)
	if err != nil && errors.Is(err, syscall.ENOSPC) {
		s.stats.FullStarts++
		s.restart()
		return nil
	}
	if err != nil {
		if s.crashed == nil && !s.injected {
			return fmt.Errorf("start: %w", err)
		}
		if asCorrupt(err) != nil {
			return fmt.Errorf("start: %w", err)
		}
		s.stats.RecoveryCrashes++
		s.restart()
		return nil
	}
	if unborn {
		s.stats.Unborn++
	}
	if err := s.verify(l); err != nil {
		l.release((*partition).abandon)
		return err
	}
	for range 5 + s.rng.IntN(60) {
		if err := s.act(l); err != nil {
			l.release((*partition).abandon)
			return err
		}
		if s.crashed != nil {
			break
		}
	}
	return s.end(l)
}

// act does one thing to the log.
func (s *sim) act(l *Log) error {
	i := s.rng.IntN(len(s.parts))
	m, p := &s.parts[i], l.partitions[i]
	switch n := s.rng.IntN(20); {
	case n < 9:
		size := s.rng.IntN(300)
		if s.rng.IntN(8) == 0 {
			size = s.rng.IntN(9 << 10)
		}
		data := payload(s.made, size)
		s.made++
		w, off, err := p.enqueue(data, nil)
		switch {
		case errors.Is(err, eventlog.ErrFailed) && l.failed() != nil, errors.Is(err, eventlog.ErrQueueFull):
			return nil
		case errors.Is(err, eventlog.ErrNoSpace) && p.mu.noSpace && s.now.Before(p.mu.retry):
			return nil
		case err != nil:
			return err
		case l.failed() != nil:
			return errors.New("a failed log took a record")
		case off != int64(len(m.records)):
			return fmt.Errorf("append got offset %d, want %d", off, len(m.records))
		}
		m.records = append(m.records, data)
		m.waiting = append(m.waiting, w)
	case n < 15:
		return s.step(l, i)
	case n < 16:
		if len(m.waiting) == 0 {
			p.idle()
		}
	case n < 17:
		if err := l.NoteEnds(); err == nil && s.crashed == nil {
			s.stats.Noted++
		} else if err != nil && s.crashed == nil && !s.injected && l.failed() == nil && !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("note how far the log goes: %w", err)
		}
	case n < 18 && m.acked > 0 && s.rng.IntN(2) == 0:
		return s.redact(l, i)
	case n < 18 && s.rng.IntN(2) == 0:
		// Often by less than what is written ahead, often by more.
		s.free = -1
		if s.rng.IntN(2) == 0 {
			s.free = s.rng.Int64N(4 << 10)
		}
		s.now = s.now.Add(time.Duration(s.rng.Int64N(int64(2 * noSpacePause))))
	case n < 18 && m.acked > 0:
		before := s.rng.Int64N(m.acked + 1)
		m.trimmed = max(m.trimmed, before)
		s.stats.Trims++
		if err := l.Trim(i, before); err != nil && s.crashed == nil && !s.injected && !errors.Is(err, syscall.ENOSPC) {
			return fmt.Errorf("trim: %w", err)
		}
	default:
		return s.read(l, i)
	}
	return nil
}

// step commits one batch and takes the answers.
func (s *sim) step(l *Log, i int) error {
	m, p := &s.parts[i], l.partitions[i]
	wasFailed := l.failed() != nil
	segs := len(p.mu.segments)
	wasFull := p.mu.noSpace
	refused := false
	p.step()
	s.stats.Rolls += len(p.mu.segments) - segs
	rest := m.waiting[:0]
	for _, w := range m.waiting {
		select {
		case err := <-w.done:
			switch {
			case err == nil && (wasFailed || s.crashed != nil || l.failed() != nil):
				return errors.New("a failed log acknowledged a record")
			case err == nil:
				m.acked++
				s.stats.Acked++
				if wasFull {
					s.stats.Again++
				}
			case errors.Is(err, eventlog.ErrNoSpace) && s.free >= 0 && l.failed() == nil:
				refused = true
			case !errors.Is(err, eventlog.ErrFailed) || l.failed() == nil:
				return fmt.Errorf("append got %w", err)
			default:
				s.stats.Unacked++
			}
			waiters.Put(w)
		default:
			rest = append(rest, w)
		}
	}
	m.waiting = rest
	if refused {
		s.stats.Refused++
		if len(rest) > 0 {
			return errors.New("a record waits behind a refused one")
		}
		m.records = m.records[:m.acked]
	}
	return nil
}

// redact takes bytes out of some records. A record that was not redacted for certain
// stays as it is to be, or as it was.
func (s *sim) redact(l *Log, i int) error {
	m, p := &s.parts[i], l.partitions[i]
	start, end := p.mu.start, p.last().header.first
	if start == end {
		return nil
	}
	var list []eventlog.Redaction
	for off := start + s.rng.Int64N(end-start); off < end && len(list) < 4; off += 1 + s.rng.Int64N(3) {
		if m.redacting[off] == nil {
			list = append(list, eventlog.Redaction{Offset: off, Splices: randomSplices(s.rng, len(m.records[off]))})
		}
	}
	if m.redacting == nil {
		m.redacting = map[int64][]byte{}
	}
	for _, r := range list {
		m.redacting[r.Offset], _ = r.Apply([]byte{}, m.records[r.Offset])
	}
	err := l.Redact(context.Background(), i, list)
	switch {
	case err == nil:
		if s.crashed != nil {
			return errors.New("a dead log has redacted")
		}
		for _, r := range list {
			m.records[r.Offset] = m.redacting[r.Offset]
			delete(m.redacting, r.Offset)
			s.stats.Redacted++
		}
	case s.crashed == nil && !s.injected && !errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("redact: %w", err)
	default:
		s.stats.Unredacted += len(list)
	}
	return nil
}

// read compares a stretch of the log with the model. It never sees more than
// what was acknowledged.
func (s *sim) read(l *Log, i int) error {
	m := &s.parts[i]
	start, end := l.partitions[i].bounds()
	if end != m.acked {
		return fmt.Errorf("partition %d ends at %d, %d were acknowledged", i, end, m.acked)
	}
	if start > end {
		return fmt.Errorf("partition %d has bounds [%d,%d)", i, start, end)
	}
	from := start + s.rng.Int64N(end-start+1)
	err := s.compare(l, i, from, end)
	if s.crashed != nil || s.injected && errors.Is(err, errorfs.ErrInjected) {
		return nil
	}
	return err
}

func (s *sim) compare(l *Log, i int, from, to int64) error {
	r, err := l.Read(i, from)
	if err != nil {
		return err
	}
	defer r.Close()
	for off := from; off < to; off++ {
		e, err := r.Next(context.Background())
		if err != nil {
			return fmt.Errorf("partition %d: read offset %d: %w", i, off, err)
		}
		if redacted := s.parts[i].redacting[off]; redacted != nil && bytes.Equal(e.Data, redacted) {
			// It may be read as it was by readers that were there before, and only by them.
			s.parts[i].records[off] = redacted
			delete(s.parts[i].redacting, off)
		}
		if e.Offset != off || !bytes.Equal(e.Data, s.parts[i].records[off]) {
			return fmt.Errorf("partition %d: read %d %.20q, want %d %.20q", i, e.Offset, e.Data, off, s.parts[i].records[off])
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if e, err := r.Next(ctx); err == nil {
		return fmt.Errorf("partition %d: read offset %d, which is not durable", i, e.Offset)
	}
	return nil
}

// verify compares a log that was just started with the model, then makes the
// model forget what did not survive.
func (s *sim) verify(l *Log) error {
	for i := range s.parts {
		m := &s.parts[i]
		start, end := l.partitions[i].bounds()
		if end < m.acked {
			return fmt.Errorf("L1: partition %d ends at %d, %d were acknowledged", i, end, m.acked)
		}
		if end > int64(len(m.records)) {
			return fmt.Errorf("partition %d ends at %d, only %d were appended", i, end, len(m.records))
		}
		if start > m.trimmed {
			return fmt.Errorf("partition %d starts at %d, trimmed to %d", i, start, m.trimmed)
		}
		if err := s.compare(l, i, start, end); err != nil && s.crashed == nil && !s.injected {
			return err
		}
		m.records = m.records[:end]
		m.acked = end
	}
	return nil
}

// end ends the log: by the crash that happened, a kill, a power loss, or a
// clean stop.
func (s *sim) end(l *Log) error {
	failed := l.failed() != nil
	if failed && s.crashed == nil {
		s.stats.Failures++
	}
	if s.crashed == nil && !failed && s.rng.IntN(3) == 0 {
		for i, p := range l.partitions {
			for p.mu.queueHead != nil {
				if err := s.step(l, i); err != nil {
					return err
				}
			}
		}
		err := l.Close()
		if err == nil && s.crashed == nil && !s.injected {
			s.stats.Stops++
			for i := range s.parts {
				if m := &s.parts[i]; m.acked != int64(len(m.records)) {
					return fmt.Errorf("partition %d: a clean stop left %d of %d records", i, m.acked, len(m.records))
				}
			}
		} else if s.crashed == nil && !s.injected {
			return fmt.Errorf("close: %w", err)
		}
	} else {
		l.release((*partition).abandon)
	}
	s.restart()
	return nil
}

// restart makes the disk what the next start finds.
func (s *sim) restart() {
	for i := range s.parts {
		s.parts[i].waiting = nil
	}
	switch {
	case s.crashed != nil:
		s.stats.Crashes++
		s.mem = s.crashed
	case s.rng.IntN(2) == 0:
		s.stats.Crashes++
		s.mem = s.clone()
	default:
		// A kill: the page cache stays.
		s.stats.Kills++
	}
}

// hasBlankSegment reports whether some partition's last file has no header.
func (s *sim) hasBlankSegment() bool {
	for i := range s.parts {
		dir := fmt.Sprintf("data/log/p%d", i)
		names, err := s.mem.List(dir)
		if err != nil {
			continue
		}
		for _, name := range names {
			if _, ok := parseSegmentName(name); !ok {
				continue
			}
			if _, _, reason, err := readHeader(s.mem, s.mem.PathJoin(dir, name)); err == nil && reason != "" && len(names) > 1 {
				return true
			}
		}
	}
	return false
}
