package kafka

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/eventlog/logtest"
	"github.com/musterhq/muster/internal/services"
)

// moved is a log with a base as one that begins at 0.
type moved struct {
	*Log
	base int64
}

func (m moved) Append(ctx context.Context, partition int, data []byte) (int64, error) {
	off, err := m.Log.Append(ctx, partition, data)
	if err != nil {
		return 0, err
	}
	return off - m.base, nil
}

func (m moved) Read(partition int, from int64) (eventlog.Reader, error) {
	r, err := m.Log.Read(partition, from+m.base)
	if err != nil {
		return nil, err
	}
	return movedReader{r, m.base}, nil
}

func (m moved) Bounds(ctx context.Context, partition int) (int64, int64, error) {
	start, end, err := m.Log.Bounds(ctx, partition)
	if err != nil {
		return 0, 0, err
	}
	return start - m.base, end - m.base, nil
}

func (m moved) Trim(partition int, before int64) error { return m.Log.Trim(partition, before+m.base) }

type movedReader struct {
	eventlog.Reader
	base int64
}

func (m movedReader) Next(ctx context.Context) (eventlog.Entry, error) {
	e, err := m.Reader.Next(ctx)
	e.Offset -= m.base
	return e, err
}

const testBase = 1_000_003

// TestContractWithBaseL1 is TestContractL1 on topics that a log was moved to.
func TestContractWithBaseL1(t *testing.T) {
	logtest.Run(t, func(t *testing.T) func(logtest.Options) eventlog.Log {
		opts := shared(t)
		opts.Compression = "zstd"
		begun := false
		return func(o logtest.Options) eventlog.Log {
			opts.Partitions = o.Partitions
			if o.MaxRecordBytes > 0 {
				opts.MaxRecordBytes = o.MaxRecordBytes
			}
			l := mustOpen(t, opts)
			if !begun {
				if err := l.Begin(within(t, 20*time.Second), testBase); err != nil {
					t.Fatal(err)
				}
				begun = true
			}
			return moved{l, testBase}
		}
	})
}

func wantBounds(t *testing.T, l *Log, partition int, start, end int64) {
	t.Helper()
	if s, e, err := l.Bounds(within(t, 20*time.Second), partition); s != start || e != end || err != nil {
		t.Fatalf("partition %d is from %d to %d (%v), want %d to %d", partition, s, e, err, start, end)
	}
}

// TestBaseOutlivesItsRecord: retention may take the base record and all that
// follows; offsets stay what they are.
func TestBaseOutlivesItsRecord(t *testing.T) {
	opts := shared(t)
	l := mustOpen(t, opts)
	if err := l.Begin(t.Context(), 500); err != nil {
		t.Fatal(err)
	}
	wantBounds(t, l, 0, 500, 500)
	// The first append comes before the base is known.
	l = mustOpen(t, opts)
	for i := range int64(20) {
		if off := mustAppend(t, l, 0, logtest.Payload(i, 50)); off != 500+i {
			t.Fatalf("record %d has offset %d", i, off)
		}
	}
	wantBounds(t, l, 0, 500, 520)
	deleteRecords(t, l, 0, 1)
	wantBounds(t, mustOpen(t, opts), 0, 500, 520)
	if _, err := l.Read(0, 499); !errors.Is(err, eventlog.ErrTrimmed) || !strings.Contains(err.Error(), "starts at 500") {
		t.Fatal(err)
	}
	if _, err := l.Read(0, 521); err == nil || !strings.Contains(err.Error(), "beyond the end of the log, 520") {
		t.Fatal(err)
	}
	deleteRecords(t, l, 0, 11) // of Kafka's offsets: 510
	l = mustOpen(t, opts)
	wantBounds(t, l, 0, 510, 520)
	got, err := logtest.ReadAll(within(t, time.Minute), l, 0, 510, 520)
	if err != nil || !bytes.Equal(got[9], logtest.Payload(19, 50)) {
		t.Fatal(err)
	}
	// With nothing left, only who knows the base can tell.
	deleteRecords(t, l, 0, 21)
	base := int64(500)
	opts.Base = &base
	l = mustOpen(t, opts)
	wantBounds(t, l, 0, 520, 520)
	if off := mustAppend(t, l, 0, []byte("next")); off != 520 {
		t.Fatal(off)
	}
	opts.Base = nil
	wantBounds(t, mustOpen(t, opts), 0, 520, 521)
	// A topic that was created again under the name is another one.
	other := int64(499)
	opts.Base = &other
	if _, _, err := mustOpen(t, opts).Bounds(within(t, 20*time.Second), 0); !errors.Is(err, errOtherBase) {
		t.Fatal(err)
	}
	opts.Topic = services.TopicName(t) + ".fresh"
	if _, _, err := mustOpen(t, opts).Bounds(within(t, 20*time.Second), 0); !errors.Is(err, errOtherBase) {
		t.Fatal(err)
	}
}

// TestBegin may be repeated after it was cut off, and writes to no topic that is
// in use.
func TestBegin(t *testing.T) {
	opts := shared(t)
	opts.Partitions = 3
	l := mustOpen(t, opts)
	// Cut off behind the first partition, whose request was repeated.
	l.partitions[0].origin.Store(originOf(77))
	mustAppend(t, l, 0, baseRecord(77))
	mustAppend(t, l, 0, baseRecord(77))
	l = mustOpen(t, opts)
	if _, err := l.Base(t.Context()); err == nil || !strings.Contains(err.Error(), "not moved to it completely") {
		t.Fatal(err)
	}
	for range 2 {
		l = mustOpen(t, opts)
		if err := l.CanBegin(t.Context(), -1); !errors.Is(err, ErrNotEmpty) {
			t.Fatal(err)
		}
		if err := l.CanBegin(t.Context(), 77); err != nil {
			t.Fatal(err)
		}
		if err := l.Begin(t.Context(), 77); err != nil {
			t.Fatal(err)
		}
	}
	if base, err := mustOpen(t, opts).Base(t.Context()); base != 77 || err != nil {
		t.Fatal(base, err)
	}
	wantBounds(t, l, 0, 77, 78)
	wantBounds(t, l, 2, 77, 77)
	// The second one is a record like any other, a tick that does nothing.
	got, err := logtest.ReadAll(within(t, time.Minute), l, 0, 77, 78)
	if err != nil {
		t.Fatal(err)
	}
	if env, _, err := eventlog.DecodeEnvelope(got[0]); err != nil || env.Kind != eventlog.KindTick || env.StampMs != 0 {
		t.Fatalf("%+v, %v", env, err)
	}
	for name, try := range map[string]func() error{
		"another base": func() error { return mustOpen(t, opts).Begin(t.Context(), 78) },
		"records": func() error {
			mustAppend(t, l, 1, []byte("x"))
			return mustOpen(t, opts).Begin(t.Context(), 77)
		},
		"records of a log that began there": func() error {
			o := opts
			o.Topic += ".own"
			l := mustOpen(t, o)
			mustAppend(t, l, 2, []byte("x"))
			err := l.Begin(t.Context(), 77)
			wantBounds(t, l, 0, 0, 0)
			return err
		},
	} {
		if err := try(); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBaseBehindAnOpenLog: a node that has begun to read an empty topic does not
// take the base record for one of its own.
func TestBaseBehindAnOpenLog(t *testing.T) {
	opts := shared(t)
	l := mustOpen(t, opts)
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := mustOpen(t, opts).Begin(t.Context(), 9); err != nil {
		t.Fatal(err)
	}
	var damage *eventlog.CorruptError
	if _, err := r.Next(within(t, time.Minute)); !errors.As(err, &damage) || !strings.Contains(err.Error(), "moved to this topic") {
		t.Fatal(err)
	}
}

// TestBatchInHalvesKeepsItsBase: each half of a batch that was too large has the
// base.
func TestBatchInHalvesKeepsItsBase(t *testing.T) {
	opts := shared(t)
	opts.MaxInFlight = 1
	l := mustOpen(t, opts)
	if err := l.Begin(t.Context(), 40); err != nil {
		t.Fatal(err)
	}
	alter(t, opts, "max.message.bytes", "20000")
	const records = 8
	done := make(chan error, records)
	for i := range int64(records) {
		go func() {
			_, err := l.Append(within(t, 30*time.Second), 0, logtest.Payload(i, 9000))
			done <- err
		}()
	}
	for range records {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	// Wherever retention cuts, the base is known.
	for before := int64(2); before <= records; before += 3 {
		deleteRecords(t, l, 0, before)
		o := opts
		o.MaxRecordBytes = 10_000
		wantBounds(t, mustOpen(t, o), 0, 39+before, 40+records)
	}
}

func FuzzBase(f *testing.F) {
	f.Add(appendBase(nil, 0))
	f.Add(appendBase(nil, 1<<62))
	f.Add([]byte("key"))
	f.Add([]byte("MBAS00000000....")) // wrong checksum
	f.Fuzz(func(t *testing.T, b []byte) {
		base, found, err := decodeBase(b)
		if found && (err != nil || base < 0 || !bytes.Equal(appendBase(nil, base), b)) {
			t.Fatalf("%x is base %d, which is written as %x (%v)", b, base, appendBase(nil, base), err)
		}
		if err != nil && !bytes.HasPrefix(b, []byte(baseMagic)) {
			t.Fatalf("%x: %v", b, err)
		}
	})
}
