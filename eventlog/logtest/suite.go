package logtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/eventually"
)

// Options are those every implementation has.
type Options struct {
	Partitions     int
	MaxRecordBytes int
}

// Place makes an empty place for a log and returns what opens the log there,
// each time it is called. Logs are closed by the tests.
type Place func(t *testing.T) (open func(Options) eventlog.Log)

// Run tests an implementation.
func Run(t *testing.T, place Place) {
	for _, c := range []struct {
		name string
		test func(*testing.T, func(Options) eventlog.Log)
	}{
		{"AppendReadReopen", appendReadReopen},
		{"ConcurrentL1", concurrent},
		{"Bounds", readBounds},
		{"NextWaits", nextWaits},
		{"AnyOffset", anyOffset},
		{"SizesAndTooLarge", sizes},
		{"CancelledAppend", cancelledAppend},
		{"Closed", closed},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, place(t)) })
	}
}

// Payload is a record whose bytes follow from i and size.
func Payload(i int64, size int) []byte {
	b := fmt.Appendf(nil, "%d:", i)
	rng := rand.New(rand.NewPCG(uint64(i), uint64(size)))
	for range size {
		b = append(b, byte(rng.Uint32()))
	}
	return b
}

// ReadAll reads the records [from, to) and returns copies. It fails on a gap.
func ReadAll(ctx context.Context, l eventlog.Log, partition int, from, to int64) ([][]byte, error) {
	r, err := l.Read(partition, from)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var out [][]byte
	for off := from; off < to; off++ {
		e, err := r.Next(ctx)
		if err != nil {
			return out, err
		}
		if e.Offset != off {
			return out, fmt.Errorf("offset %d where %d was to come", e.Offset, off)
		}
		out = append(out, bytes.Clone(e.Data))
	}
	return out, nil
}

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustAppend(t *testing.T, l eventlog.Log, partition int, data []byte) int64 {
	t.Helper()
	off, err := l.Append(t.Context(), partition, data)
	must(t, err)
	return off
}

func mustRead(t *testing.T, l eventlog.Log, partition int, from int64) eventlog.Reader {
	t.Helper()
	r, err := l.Read(partition, from)
	must(t, err)
	return r
}

func mustNext(t *testing.T, r eventlog.Reader, offset int64, data []byte) {
	t.Helper()
	e, err := r.Next(limited(t))
	must(t, err)
	if e.Offset != offset || !bytes.Equal(e.Data, data) {
		t.Fatalf("read record %d, %.40q; want %d, %.40q", e.Offset, e.Data, offset, data)
	}
}

// mustHold checks that the partition holds exactly these records.
func mustHold(t *testing.T, l eventlog.Log, partition int, want [][]byte) {
	t.Helper()
	start, end, err := l.Bounds(t.Context(), partition)
	must(t, err)
	if start != 0 || end != int64(len(want)) {
		t.Fatalf("bounds [%d,%d), want [0,%d)", start, end, len(want))
	}
	got, err := ReadAll(limited(t), l, partition, start, end)
	must(t, err)
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("record %d is %.40q, want %.40q", i, got[i], want[i])
		}
	}
}

func appendReadReopen(t *testing.T, open func(Options) eventlog.Log) {
	o := Options{Partitions: 2}
	l := open(o)
	if l.Partitions() != 2 {
		t.Fatalf("%d partitions", l.Partitions())
	}
	var want [2][][]byte
	for i := range int64(100) {
		part := int(i % 2)
		data := Payload(i, int(i)*7)
		if i%25 == 0 {
			data = []byte{} // an empty record is a record
		}
		if off := mustAppend(t, l, part, data); off != int64(len(want[part])) {
			t.Fatalf("offset %d, want %d", off, len(want[part]))
		}
		want[part] = append(want[part], data)
	}
	for round := range 2 {
		for part := range 2 {
			mustHold(t, l, part, want[part])
		}
		must(t, l.Close())
		l = open(o)
		data := fmt.Appendf(nil, "round %d", round)
		mustAppend(t, l, 1, data)
		want[1] = append(want[1], data)
	}
	mustHold(t, l, 1, want[1])
	for _, part := range []int{-1, 2} {
		if _, err := l.Append(t.Context(), part, nil); err == nil {
			t.Errorf("append to partition %d worked", part)
		}
		if _, err := l.Read(part, 0); err == nil {
			t.Errorf("reading partition %d worked", part)
		}
		if _, _, err := l.Bounds(t.Context(), part); err == nil {
			t.Errorf("bounds of partition %d worked", part)
		}
		if err := l.Trim(part, 0); err == nil {
			t.Errorf("trimming partition %d worked", part)
		}
	}
	must(t, l.Close())
}

// concurrent: what Append returned is at that offset, for readers of any pace,
// and below the end from then on.
func concurrent(t *testing.T, open func(Options) eventlog.Log) {
	l := open(Options{Partitions: 1})
	const appenders, each = 16, 100
	var wg sync.WaitGroup
	var byOffset sync.Map
	for _, pause := range []time.Duration{0, 5 * time.Millisecond} {
		r := mustRead(t, l, 0, 0)
		wg.Go(func() {
			defer r.Close()
			for off := range int64(appenders * each) {
				if off%200 == 0 {
					time.Sleep(pause) // a reader that falls behind is what is tested
				}
				e, err := r.Next(t.Context())
				if err != nil || e.Offset != off {
					t.Errorf("read %d: got %d, %v", off, e.Offset, err)
					return
				}
				if got, loaded := byOffset.LoadOrStore(off, string(e.Data)); loaded && got != string(e.Data) {
					t.Errorf("record %d differs", off)
					return
				}
			}
		})
	}
	for a := range appenders {
		wg.Go(func() {
			last := int64(-1)
			for i := range each {
				data := Payload(int64(a*each+i), (a*37+i*11)%700)
				off, err := l.Append(t.Context(), 0, data)
				if err != nil {
					t.Error(err)
					return
				}
				if off <= last {
					t.Errorf("offset %d follows %d of the same appender", off, last)
				}
				last = off
				if got, loaded := byOffset.LoadOrStore(off, string(data)); loaded && got != string(data) {
					t.Errorf("record %d was read as something else", off)
				}
				if _, end, err := l.Bounds(t.Context(), 0); err != nil || end <= off {
					t.Errorf("acknowledged %d is not below the end %d, %v", off, end, err)
				}
			}
		})
	}
	wg.Wait()
	// Nothing failed, so nothing is there twice.
	if _, end, err := l.Bounds(t.Context(), 0); err != nil || end != appenders*each {
		t.Errorf("%d records were appended, the end is %d, %v", appenders*each, end, err)
	}
	must(t, l.Close())
}

func readBounds(t *testing.T, open func(Options) eventlog.Log) {
	l := open(Options{Partitions: 1})
	if start, end, err := l.Bounds(t.Context(), 0); start != 0 || end != 0 || err != nil {
		t.Fatalf("bounds of an empty log [%d,%d), %v", start, end, err)
	}
	if _, err := l.Read(0, 1); err == nil || errors.Is(err, eventlog.ErrTrimmed) {
		t.Fatalf("read beyond the end of an empty log: %v", err)
	}
	mustAppend(t, l, 0, []byte("a"))
	if _, err := l.Read(0, -1); !errors.Is(err, eventlog.ErrTrimmed) {
		t.Fatal(err)
	}
	if _, err := l.Read(0, 2); err == nil {
		t.Fatal("read beyond the end")
	}
	must(t, l.Trim(0, 0))
	mustHold(t, l, 0, [][]byte{[]byte("a")})
	must(t, l.Close())
}

// nextWaits: at the end Next waits for a record or its context, and continues
// afterwards.
func nextWaits(t *testing.T, open func(Options) eventlog.Log) {
	l := open(Options{Partitions: 1})
	mustAppend(t, l, 0, []byte("a"))
	r := mustRead(t, l, 0, 1)
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
		if e, err := r.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Next at the end: record %d, %v", e.Offset, err)
		}
		cancel()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		time.Sleep(20 * time.Millisecond) // for Next to wait by then, which nothing shows
		l.Append(context.Background(), 0, []byte("b"))
	}()
	mustNext(t, r, 1, []byte("b"))
	<-done
	// A context that ends while records arrive loses none.
	const n = 300
	wait := make(chan struct{})
	go func() {
		defer close(wait)
		for i := range int64(n) {
			l.Append(context.Background(), 0, Payload(i, 2000))
		}
	}()
	rng := rand.New(rand.NewPCG(3, 3))
	for i := int64(0); i < n; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(1000))*time.Microsecond)
		e, err := r.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		must(t, err)
		if want := Payload(i, 2000); e.Offset != i+2 || !bytes.Equal(e.Data, want) {
			t.Fatalf("record %d is not what was appended as %d", e.Offset, i+2)
		}
		i++
	}
	<-wait
	must(t, r.Close())
	if _, err := r.Next(t.Context()); err == nil {
		t.Fatal("a closed reader reads")
	}
	must(t, l.Close())
}

func anyOffset(t *testing.T, open func(Options) eventlog.Log) {
	l := open(Options{Partitions: 1})
	const n = 500
	want := make([][]byte, n)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for a := range 25 {
		wg.Go(func() {
			for i := range n / 25 {
				data := Payload(int64(a*1000+i), 300)
				off, err := l.Append(t.Context(), 0, data)
				if err != nil || off >= n {
					t.Errorf("offset %d, %v", off, err)
					return
				}
				mu.Lock()
				want[off] = data
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	rng := rand.New(rand.NewPCG(5, 5))
	for range 15 {
		from := rng.IntN(n + 1)
		got, err := ReadAll(limited(t), l, 0, int64(from), n)
		must(t, err)
		for i := range got {
			if !bytes.Equal(got[i], want[from+i]) {
				t.Fatalf("record %d differs when read from %d on", from+i, from)
			}
		}
	}
	must(t, l.Close())
}

func sizes(t *testing.T, open func(Options) eventlog.Log) {
	const limit = 900_000
	l := open(Options{Partitions: 1, MaxRecordBytes: limit})
	if _, err := l.Append(t.Context(), 0, make([]byte, limit+1)); !errors.Is(err, eventlog.ErrTooLarge) {
		t.Fatal(err)
	}
	var want [][]byte
	for i, size := range []int{limit - 2, 0, 1, 63, 64, 8191, 8192, limit - 2, 100_000} {
		data := Payload(int64(i), size)
		mustAppend(t, l, 0, data)
		want = append(want, data)
	}
	mustHold(t, l, 0, want)
	must(t, l.Close())
}

// cancelledAppend: data is the caller's again as soon as Append has returned.
func cancelledAppend(t *testing.T, open func(Options) eventlog.Log) {
	l := open(Options{Partitions: 1})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Append(gone, 0, []byte("x")); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	var given atomic.Int64
	var wg sync.WaitGroup
	for a := range 8 {
		wg.Go(func() {
			data := make([]byte, 100)
			for i := range 50 {
				copy(data, Payload(int64(a*50+i), 100))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*20)*time.Microsecond)
				if _, err := l.Append(ctx, 0, data); err != nil {
					given.Add(1)
				}
				cancel()
				copy(data, "XXXXXXXX")
			}
		})
	}
	wg.Wait()
	mustAppend(t, l, 0, []byte("last"))
	_, end, err := l.Bounds(t.Context(), 0)
	must(t, err)
	got, err := ReadAll(limited(t), l, 0, 0, end)
	must(t, err)
	for i, data := range got {
		if bytes.HasPrefix(data, []byte("X")) {
			t.Fatalf("record %d holds what its appender wrote after Append had returned", i)
		}
	}
	if given.Load() == 0 {
		t.Log("no append was cancelled under way")
	}
	must(t, l.Close())
}

func closed(t *testing.T, open func(Options) eventlog.Log) {
	l := open(Options{Partitions: 1})
	var acked, read atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for {
				if _, err := l.Append(context.Background(), 0, []byte("x")); err != nil {
					if !errors.Is(err, eventlog.ErrClosed) {
						t.Errorf("append while the log is closed: %v", err)
					}
					return
				}
				acked.Add(1)
			}
		})
	}
	r := mustRead(t, l, 0, 0)
	end := mustRead(t, l, 0, 0)
	wg.Go(func() {
		for {
			if _, err := end.Next(context.Background()); err != nil {
				if !errors.Is(err, eventlog.ErrClosed) {
					t.Errorf("Next while the log is closed: %v", err)
				}
				return
			}
			read.Add(1)
		}
	})
	eventually.Holds(t, "records are appended and read", func() bool { return acked.Load() >= 100 && read.Load() >= 100 })
	must(t, l.Close())
	must(t, l.Close())
	wg.Wait()
	if _, err := l.Append(t.Context(), 0, nil); !errors.Is(err, eventlog.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := r.Next(t.Context()); !errors.Is(err, eventlog.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := l.Read(0, 0); !errors.Is(err, eventlog.ErrClosed) {
		t.Fatal(err)
	}
	must(t, r.Close())
	must(t, end.Close())
	l = open(Options{Partitions: 1})
	if _, got, err := l.Bounds(t.Context(), 0); err != nil || got < acked.Load() {
		t.Fatalf("%d records were acknowledged, %d are there, %v", acked.Load(), got, err)
	}
	must(t, l.Close())
}
