package file

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// benchDir is a directory on a real disk: $MUSTER_BENCH_DIR or the package's
// own, since /tmp is memory on many machines.
func benchDir(b *testing.B) string {
	root := os.Getenv("MUSTER_BENCH_DIR")
	if root == "" {
		root = "."
	}
	dir, err := os.MkdirTemp(root, "bench-*.tmp")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// BenchmarkAppend measures durable appends: a number of appenders that each
// wait for their record, as HTTP requests do. One reader follows the tail.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{400, 32 << 10} {
		for _, appenders := range []int{1, 16, 64, 256} {
			b.Run(fmt.Sprintf("bytes=%d/appenders=%d", size, appenders), func(b *testing.B) {
				l := mustOpen(b, benchDir(b), Options{})
				stop, wait := followTail(b, l)
				data := make([]byte, size)
				for i := range data {
					data[i] = byte(i)
				}
				before := l.Stats()
				var left atomic.Int64
				left.Store(int64(b.N))
				b.SetBytes(int64(size))
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for range appenders {
					wg.Go(func() {
						for left.Add(-1) >= 0 {
							if _, err := l.Append(context.Background(), 0, data); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.StopTimer()
				after := l.Stats()
				stop()
				wait()
				if n := after.Fsyncs - before.Fsyncs; n > 0 {
					b.ReportMetric(float64(b.N)/float64(n), "records/fsync")
					b.ReportMetric(float64((after.FsyncTime-before.FsyncTime)/time.Microsecond)/float64(n), "µs/fsync")
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			})
		}
	}
}

func followTail(b *testing.B, l *Log) (stop func(), wait func()) {
	r, err := l.Read(0, 0)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		defer r.Close()
		for {
			if _, err := r.Next(ctx); err != nil {
				return
			}
		}
	})
	return cancel, wg.Wait
}

// BenchmarkTailRead measures the way from Append to a reader that waits: one
// record at a time, fsync included.
func BenchmarkTailRead(b *testing.B) {
	l := mustOpen(b, benchDir(b), Options{})
	r, err := l.Read(0, 0)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	data := make([]byte, 32<<10)
	ctx := context.Background()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Append(ctx, 0, data); err != nil {
			b.Fatal(err)
		}
		if _, err := r.Next(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReplay measures reading the files from the start, checksums
// included, as a start after a crash does.
func BenchmarkReplay(b *testing.B) {
	for _, size := range []int{400, 32 << 10} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			l := mustOpen(b, benchDir(b), Options{TailBytes: 1})
			data := make([]byte, size)
			total := 64 << 20 / size
			var wg sync.WaitGroup
			var left atomic.Int64
			left.Store(int64(total))
			for range 256 {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := l.Append(context.Background(), 0, data); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportAllocs()
			b.SetBytes(int64(total * size))
			for b.Loop() {
				r, err := l.Read(0, 0)
				if err != nil {
					b.Fatal(err)
				}
				for range total {
					if _, err := r.Next(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
				r.Close()
			}
		})
	}
}
