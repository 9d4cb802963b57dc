package kafka

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kgo "github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/internal/services"
)

// events is a record as ingestion makes them: 100 events of some 320 bytes of
// JSON, none like the other.
func events(seed int) []byte {
	var b bytes.Buffer
	for i := range 100 {
		n := seed*100 + i
		fmt.Fprintf(&b, `{"event":"order.completed","external_id":"user-%d","email":"person%d@example.org","timestamp":"2026-03-%02dT%02d:%02d:%02d.%03dZ","properties":{"order_id":"%08x-%04x","currency":"EUR","value":%d.%02d,"items":%d,"coupon":"SPRING%d","channel":"web","page":"/checkout/done?ref=%x","session":"%016x"}}`,
			n%100_000, n%100_000, n%28+1, n%24, n%60, n*7%60, n*131%1000, uint32(n)*2654435761, n%65536, n%500, n%100, n%9+1, n%50, n*40503, uint64(n)*11400714819323198485)
	}
	return b.Bytes()
}

// perRound is how many records each of the compared appends in a round.
const perRound = 2000

// run has appenders share perRound calls.
func run(b *testing.B, appenders int, one func() error) time.Duration {
	b.Helper()
	var left atomic.Int64
	left.Store(perRound)
	begin := time.Now()
	var wg sync.WaitGroup
	for range appenders {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := one(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return time.Since(begin)
}

// BenchmarkAppend compares, round by round, appends from many goroutines that
// each wait for their record with kafka-go's own produce of the same records:
// Client.Produce, acks=all, batches of the same 1 MiB made before, as many
// requests at once. The shared Kafka is warm when it was used before.
func BenchmarkAppend(b *testing.B) {
	for _, compression := range []string{"none", "lz4", "zstd"} {
		for _, appenders := range []int{1, 64, 256} {
			b.Run(fmt.Sprintf("compression=%s/appenders=%d", compression, appenders), func(b *testing.B) {
				opts := Options{Brokers: services.Kafka(b), TopicOptions: TopicOptions{Topic: services.TopicName(b)}, Compression: compression}
				l := mustOpen(b, opts)
				raw := opts
				raw.Topic += ".raw"
				mustOpen(b, raw).Close()
				transport := &kgo.Transport{}
				defer transport.CloseIdleConnections()
				client := &kgo.Client{Addr: kgo.TCP(opts.Brokers...), Transport: transport, Timeout: 30 * time.Second}

				records := make([][]byte, 256)
				total := 0
				for i := range records {
					records[i] = events(i)
					total += len(records[i])
				}
				size := total / len(records)
				perBatch := 1
				if appenders > 1 {
					perBatch = maxBatchBytes / size
				}
				var codec kgo.Compression
				switch compression {
				case "lz4":
					codec = kgo.Lz4
				case "zstd":
					codec = kgo.Zstd
				}
				var n atomic.Int64
				ours := func() error {
					_, err := l.Append(context.Background(), 0, records[n.Add(1)%256])
					return err
				}
				produce := func() time.Duration {
					begin := time.Now()
					var left atomic.Int64
					left.Store(perRound)
					var wg sync.WaitGroup
					for range min(appenders, DefaultMaxInFlight) {
						wg.Go(func() {
							for {
								k := min(int64(perBatch), left.Add(-int64(perBatch))+int64(perBatch))
								if k <= 0 {
									return
								}
								batch := make([]kgo.Record, k)
								for i := range batch {
									batch[i].Value = kgo.NewBytes(records[n.Add(1)%256])
								}
								res, err := client.Produce(context.Background(), &kgo.ProduceRequest{
									Topic: raw.Topic, RequiredAcks: kgo.RequireAll, Compression: codec, Records: kgo.NewRecordReader(batch...),
								})
								if err == nil {
									err = res.Error
								}
								if err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					wg.Wait()
					return time.Since(begin)
				}
				run(b, appenders, ours)
				produce()
				before := l.Stats()
				var mine, theirs time.Duration
				rounds := 0
				for b.Loop() {
					// The second one meets what the first has left.
					if rounds%2 == 0 {
						mine += run(b, appenders, ours)
						theirs += produce()
					} else {
						theirs += produce()
						mine += run(b, appenders, ours)
					}
					rounds++
				}
				after := l.Stats()
				mb := float64(rounds*perRound*size) / 1e6
				b.ReportMetric(mb/mine.Seconds(), "MB/s")
				b.ReportMetric(mb/theirs.Seconds(), "raw-MB/s")
				b.ReportMetric(theirs.Seconds()/mine.Seconds(), "of-raw")
				b.ReportMetric(float64(after.Appended-before.Appended)/float64(after.Batches-before.Batches), "records/batch")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkReplay reads a partition from its start, as a start without a
// checkpoint does.
func BenchmarkReplay(b *testing.B) {
	for _, compression := range []string{"none", "lz4", "zstd"} {
		b.Run("compression="+compression, func(b *testing.B) {
			l := mustOpen(b, Options{Brokers: services.Kafka(b), TopicOptions: TopicOptions{Topic: services.TopicName(b)}, Compression: compression})
			data := events(1)
			run(b, 256, func() error { _, err := l.Append(context.Background(), 0, data); return err })
			b.SetBytes(int64(perRound * len(data)))
			b.ReportAllocs()
			for b.Loop() {
				r, err := l.Read(0, 0)
				if err != nil {
					b.Fatal(err)
				}
				for range perRound {
					if _, err := r.Next(context.Background()); err != nil {
						b.Fatal(err)
					}
				}
				r.Close()
			}
		})
	}
}

// BenchmarkBounds measures the read barrier, alone and shared.
func BenchmarkBounds(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			l := mustOpen(b, Options{Brokers: services.Kafka(b), TopicOptions: TopicOptions{Topic: services.TopicName(b)}, Limits: Limits{MaxRecordBytes: 1000}})
			begin := time.Now()
			calls := 0
			for b.Loop() {
				run(b, callers, func() error { _, _, err := l.Bounds(context.Background(), 0); return err })
				calls += perRound
			}
			b.ReportMetric(float64(calls)/time.Since(begin).Seconds(), "calls/s")
			b.ReportMetric(float64(calls)/float64(l.Stats().Questions), "calls/question")
			b.ReportMetric(0, "ns/op")
		})
	}
}
