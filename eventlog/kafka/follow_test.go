package kafka

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog/logtest"
	"github.com/musterhq/muster/internal/eventually"
)

// following reads along until it knows the end and reaches it.
type following struct {
	read []string
	end  atomic.Int64 // -1 until it is known
	err  error
	wg   sync.WaitGroup
}

// pause, when it is not nil, is called before each record.
func follow(t testing.TB, l *Log, pause func()) *following {
	t.Helper()
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := &following{}
	f.end.Store(-1)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); f.wg.Wait() })
	f.wg.Go(func() {
		defer r.Close()
		begin := time.Now()
		for f.end.Load() != int64(len(f.read)) {
			if pause != nil {
				pause()
			}
			short, done := context.WithTimeout(ctx, 300*time.Millisecond)
			e, err := r.Next(short)
			done()
			switch {
			case errors.Is(err, context.DeadlineExceeded) && time.Since(begin) < 5*time.Minute:
				continue
			case err != nil:
				f.err = err
				return
			case e.Offset != int64(len(f.read)):
				f.err = fmt.Errorf("offset %d comes after %d", e.Offset, len(f.read)-1)
				return
			}
			f.read = append(f.read, string(e.Data))
		}
	})
	return f
}

// compare waits until all is read and compares it with what a log of its own
// fetches, which has written nothing.
func (f *following) compare(t testing.TB, name string, want [][]byte) {
	t.Helper()
	f.end.Store(int64(len(want)))
	f.wg.Wait()
	if f.err != nil {
		t.Fatalf("%s stops at %d of %d: %v", name, len(f.read), len(want), f.err)
	}
	for i, data := range want {
		if f.read[i] != string(data) {
			t.Fatalf("%s has %.30q for record %d, the log has %.30q", name, f.read[i], i, data)
		}
	}
}

// fromBroker reads all of the partition with a log that has nothing in memory.
func fromBroker(t testing.TB, opts Options) [][]byte {
	t.Helper()
	opts.dial = nil
	l := mustOpen(t, opts)
	_, end, err := l.Bounds(within(t, 20*time.Second), 0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := logtest.ReadAll(within(t, 30*time.Second), l, 0, 0, end)
	if err != nil {
		t.Fatal(err)
	}
	if s := l.Stats(); s.OwnRecords != 0 {
		t.Fatalf("%d records did not come from the broker", s.OwnRecords)
	}
	return got
}

// TestOwnBatchesAmongThoseOfOthersL2: two nodes write to a partition and both
// follow it; connections of one are cut, its memory is small, or its reader is
// slow. Both see what is in the log, and each takes its own from memory.
func TestOwnBatchesAmongThoseOfOthersL2(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*Options)
		slow bool
		cuts int
	}{
		{name: "calm"},
		{name: "cut", cuts: 8},
		{name: "small", set: func(o *Options) { o.OwnBytes, o.FetchBytes = 10_000, 5_000 }, slow: true},
		{name: "compressed", set: func(o *Options) { o.Compression = "lz4" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var net chaos
			opts := shared(t)
			if c.set != nil {
				c.set(&opts)
			}
			first := opts
			first.dial = net.dial
			a, b := mustOpen(t, first), mustOpen(t, opts)
			var pause func()
			if c.slow {
				pause = func() { time.Sleep(500 * time.Microsecond) } // a slow reader is what is tested
			}
			fa, fb := follow(t, a, pause), follow(t, b, nil)
			var wg sync.WaitGroup
			var acked sync.Map
			for w := range 6 {
				wg.Go(func() {
					l := a
					if w >= 4 {
						l = b
					}
					rng := rand.New(rand.NewPCG(uint64(w), 7))
					for i := range 80 {
						data := fmt.Sprintf("%d/%d %s", w, i, logtest.Payload(int64(i), rng.IntN(2000)))
						off, err := l.Append(within(t, 40*time.Second), 0, []byte(data))
						if err != nil {
							t.Errorf("append: %v", err)
							return
						}
						if _, twice := acked.LoadOrStore(off, data); twice {
							t.Errorf("two records were acknowledged at offset %d", off)
						}
						if rng.IntN(3) == 0 {
							time.Sleep(time.Duration(rng.IntN(8)) * time.Millisecond) // the moments of appends are random
						}
					}
				})
			}
			for range c.cuts {
				time.Sleep(15 * time.Millisecond) // the moment of a cut does not matter, only that some are amid appends
				net.cut()
			}
			wg.Wait()
			want := fromBroker(t, opts)
			acked.Range(func(off, data any) bool {
				if i := off.(int64); i >= int64(len(want)) || string(want[i]) != data.(string) {
					t.Errorf("L1: record %d was acknowledged and is not there", i)
				}
				return true
			})
			fa.compare(t, "the first", want)
			fb.compare(t, "the second", want)
			sa, sb := a.Stats(), b.Stats()
			t.Logf("%d records, the first: %d from memory in %d batches, %d fetches, %d reconnects; the second: %d, %d, %d", len(want),
				sa.OwnRecords, sa.OwnBatches, sa.Fetches, sa.Reconnects, sb.OwnRecords, sb.OwnBatches, sb.Fetches)
			if sa.OwnRecords == 0 || sa.Fetches == 0 || sb.OwnRecords == 0 || sb.Fetches == 0 || c.cuts > 0 && sa.Retries == 0 {
				t.Errorf("not the test it should be: %+v", sa)
			}
		})
	}
}

// TestFollowerTakesItsOwnFromMemoryL2: a node that writes alone fetches next to
// nothing, and what it reads is what the log has.
func TestFollowerTakesItsOwnFromMemoryL2(t *testing.T) {
	opts := shared(t)
	l := mustOpen(t, opts)
	f := follow(t, l, nil)
	slow := uint64(0) // appends for which the follower may have asked the broker
	for i := range int64(300) {
		begin := time.Now()
		mustAppend(t, l, 0, logtest.Payload(i, 300))
		if time.Since(begin) > followFor/2 {
			slow++
		}
	}
	want := fromBroker(t, opts)
	f.compare(t, "the follower", want)
	s := l.Stats()
	t.Logf("%d of %d records came from memory, there were %d fetches", s.OwnRecords, len(want), s.Fetches)
	if s.OwnRecords+slow < 200 || s.Fetches > 50+2*slow {
		t.Errorf("%d records came from memory, there were %d fetches", s.OwnRecords, s.Fetches)
	}
}

// TestNothingUnacknowledgedIsHandedOverL1: a record that waits to be sent, or
// whose answer is missing, is not read.
func TestNothingUnacknowledgedIsHandedOverL1(t *testing.T) {
	net := chaos{heldFrom: 1000} // fetches pass
	opts := shared(t)
	opts.dial = net.dial
	l := mustOpen(t, opts)
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mustAppend(t, l, 0, []byte("first"))
	if e, err := r.Next(within(t, time.Minute)); err != nil || string(e.Data) != "first" {
		t.Fatalf("%q, %v", e.Data, err)
	}
	second := logtest.Payload(2, 50_000)
	release := sync.OnceFunc(net.hold())
	defer release()
	done := make(chan error, 1)
	go func() { _, err := l.Append(context.Background(), 0, second); done <- err }()
	eventually.Holds(t, "the record waits", func() bool { return l.Stats().QueueRecords != 0 })
	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if e, err := r.Next(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%q, %v: it is not in the log", e.Data, err)
	}
	release()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if e, err := r.Next(within(t, time.Minute)); err != nil || string(e.Data) != string(second) || e.Offset != 1 {
		t.Fatalf("%d %.20q, %v", e.Offset, e.Data, err)
	}
}

// TestWokenNodeReadsWhatOthersWroteL2: a node stands still, as one that is frozen
// does, with batches of its own in memory and while others write. Whatever it does
// first when it continues, it reads all of it in order: by itself, because a barrier
// says that there is more, or because what it appends next leaves a gap.
func TestWokenNodeReadsWhatOthersWroteL2(t *testing.T) {
	for _, first := range []string{"nothing", "barrier", "append"} {
		t.Run(first, func(t *testing.T) {
			opts := shared(t)
			a, b := mustOpen(t, opts), mustOpen(t, opts)
			r, err := a.Read(0, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			var want []string
			write := func(l *Log, data string) {
				t.Helper()
				mustAppend(t, l, 0, []byte(data))
				want = append(want, data)
			}
			next := 0
			catchUp := func() {
				t.Helper()
				for ; next < len(want); next++ {
					if e, err := r.Next(within(t, time.Minute)); err != nil || e.Offset != int64(next) || string(e.Data) != want[next] {
						t.Fatalf("record %d: %d, %q, %v, want %q", next, e.Offset, e.Data, err, want[next])
					}
				}
			}
			for i := range 5 {
				write(a, fmt.Sprintf("before %d", i))
				catchUp()
			}
			// It stands still: Next is not called.
			write(a, "own, in memory")
			write(a, "own, in memory too")
			write(b, "another's")
			write(a, "own, behind a gap")
			write(b, "another's, at the end")
			if a.partitions[0].own.mu.bytes == 0 {
				t.Fatal("nothing is in memory: not the test it should be")
			}
			switch first {
			case "barrier":
				if _, end, err := a.Bounds(t.Context(), 0); err != nil || end != int64(len(want)) {
					t.Fatal(end, err)
				}
			case "append":
				write(a, "own, after it woke")
			}
			catchUp()
			write(b, "another's, later")
			catchUp()
			write(a, "own, later")
			catchUp()
		})
	}
}

// TestMemoryIsBoundedWhileNobodyReadsQ1: a follower that does not read keeps no
// more in memory than it may, and then reads all.
func TestMemoryIsBoundedWhileNobodyReadsQ1(t *testing.T) {
	opts := shared(t)
	opts.OwnBytes = 100_000
	l := mustOpen(t, opts)
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	mustAppend(t, l, 0, []byte("x"))
	if _, err := r.Next(within(t, time.Minute)); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.Next(short); !errors.Is(err, context.DeadlineExceeded) { // it follows from here on
		t.Fatal(err)
	}
	for i := range int64(60) {
		mustAppend(t, l, 0, logtest.Payload(i, 5000))
	}
	o := &l.partitions[0].own
	o.mu.Lock()
	kept := o.mu.bytes
	o.mu.Unlock()
	if kept == 0 || kept > opts.OwnBytes {
		t.Fatalf("%d bytes are kept, the limit is %d", kept, opts.OwnBytes)
	}
	for i := range int64(60) {
		e, err := r.Next(within(t, time.Minute))
		if err != nil || e.Offset != i+1 || string(e.Data) != string(logtest.Payload(i, 5000)) {
			t.Fatalf("record %d: %d, %v", i, e.Offset, err)
		}
	}
	if s := l.Stats(); s.OwnRecords == 0 || s.Fetches == 0 {
		t.Errorf("not the test it should be: %+v", s)
	}
}

// TestRetentionUnderAFollowerL2: retention takes records that a follower has in
// memory, and all there are; it hands over what it has and continues.
func TestRetentionUnderAFollowerL2(t *testing.T) {
	l := mustOpen(t, shared(t))
	r, err := l.Read(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	next := int64(0)
	read := func(upTo int64) {
		t.Helper()
		for ; next < upTo; next++ {
			e, err := r.Next(within(t, time.Minute))
			if err != nil || e.Offset != next || string(e.Data) != string(logtest.Payload(next, 100)) {
				t.Fatalf("record %d: %d, %v", next, e.Offset, err)
			}
		}
	}
	write := func(n int64) {
		t.Helper()
		for range n {
			_, end, err := l.Bounds(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, 0, logtest.Payload(end, 100))
		}
	}
	write(3)
	read(3)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.Next(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	write(5)
	deleteRecords(t, l, 0, 8)
	read(8)
	write(4)
	read(12)
}
