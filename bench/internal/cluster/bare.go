package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	kgo "github.com/segmentio/kafka-go"

	"github.com/musterhq/muster/bench/internal/loader"
)

const (
	// batchBytes is a full batch: the most a broker takes by its default.
	batchBytes = 1 << 20
	// inFlight is how many requests of a partition are under way at once when
	// batches are full.
	inFlight = 3
	// sampleRecords of each partition are read back at most.
	sampleRecords = 128
	fetchTimeout  = 30 * time.Second
)

// ends asks for the end offset of each partition.
func (b *backing) ends(ctx context.Context, topic string, partitions int) ([]int64, error) {
	var ask []kgo.OffsetRequest
	for p := range partitions {
		ask = append(ask, kgo.LastOffsetOf(p))
	}
	res, err := b.client.ListOffsets(ctx, &kgo.ListOffsetsRequest{Topics: map[string][]kgo.OffsetRequest{topic: ask}})
	if err != nil {
		return nil, fmt.Errorf("end of topic %s: %w", topic, err)
	}
	out := make([]int64, partitions)
	for _, p := range res.Topics[topic] {
		if p.Error != nil {
			return nil, fmt.Errorf("end of topic %s: %w", topic, p.Error)
		}
		out[p.Partition] = p.LastOffset
	}
	return out, nil
}

// sample reads records back that were written since the partitions ended there,
// those of a size that only events have.
func (b *backing) sample(ctx context.Context, topic string, since []int64, atLeast int) (out [][]byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	until, err := b.ends(ctx, topic, len(since))
	if err != nil {
		return nil, err
	}
	for p := range since {
		from := max(since[p], until[p]-sampleRecords)
		if from >= until[p] {
			continue
		}
		r := kgo.NewReader(kgo.ReaderConfig{Brokers: b.brokers, Topic: topic, Partition: p, MaxBytes: 16 << 20, MaxWait: 100 * time.Millisecond})
		if err := r.SetOffset(from); err != nil {
			return nil, errors.Join(err, r.Close())
		}
		for at := from; at < until[p]; {
			m, err := r.ReadMessage(ctx)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("reading records back: %w", err), r.Close())
			}
			if at = m.Offset + 1; len(m.Value) >= atLeast {
				out = append(out, m.Value)
			}
		}
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there are no records of %d bytes or more in topic %s", atLeast, topic)
	}
	return out, nil
}

// produced is what the bare client did.
type produced struct {
	records, requests, bytes uint64
	elapsed                  time.Duration
	latency                  *hdrhistogram.Histogram // of requests, in µs
}

// produce sends the records over and over with acks=all, perRequest of them at
// once, from so many goroutines that wait for the answer, to the partitions in
// turn.
func (b *backing) produce(ctx context.Context, topic string, partitions int, records [][]byte, perRequest, senders int, d time.Duration) (produced, error) {
	transport := &kgo.Transport{}
	defer transport.CloseIdleConnections()
	client := &kgo.Client{Addr: kgo.TCP(b.brokers...), Transport: transport, Timeout: fetchTimeout}
	begun := time.Now()
	end := begun.Add(d)
	parts, errs := make([]produced, senders), make([]error, senders)
	var turn atomic.Uint64
	var wg sync.WaitGroup
	for i := range senders {
		parts[i].latency = loader.NewHistogram()
		wg.Go(func() {
			p := &parts[i]
			batch := make([]kgo.Record, perRequest)
			for at := i; time.Now().Before(end) && ctx.Err() == nil; {
				var bytes uint64
				for j := range batch {
					r := records[at%len(records)]
					batch[j], bytes, at = kgo.Record{Value: kgo.NewBytes(r)}, bytes+uint64(len(r)), at+1
				}
				sent := time.Now()
				res, err := client.Produce(ctx, &kgo.ProduceRequest{
					Topic: topic, Partition: int(turn.Add(1) % uint64(partitions)), RequiredAcks: kgo.RequireAll, Records: kgo.NewRecordReader(batch...),
				})
				if err == nil {
					err = res.Error
				}
				if err != nil {
					errs[i] = fmt.Errorf("bare produce: %w", err)
					return
				}
				loader.Record(p.latency, time.Since(sent))
				p.records += uint64(perRequest)
				p.bytes += bytes
				p.requests++
			}
		})
	}
	wg.Wait()
	total := produced{elapsed: time.Since(begun), latency: loader.NewHistogram()}
	for _, p := range parts {
		total.records += p.records
		total.bytes += p.bytes
		total.requests += p.requests
		total.latency.Merge(p.latency)
	}
	return total, errors.Join(append(errs, ctx.Err())...)
}
