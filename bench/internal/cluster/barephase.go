package cluster

import (
	"context"
	"time"

	"github.com/musterhq/muster/bench/internal/report"
)

// bare is the bare clients of a run.
type bare struct {
	*run
	topic   string
	records map[string][][]byte // by mode
	inserts *bareRows
}

// prepare reads a mode's records back and has the clients work before anything
// counts.
func (b *bare) prepare(ctx context.Context, mode *ModeReport, c contestant) error {
	records, err := b.sampleOf(ctx, mode.Mode, c)
	if err != nil {
		return err
	}
	total := 0
	for _, record := range records {
		total += len(record)
	}
	b.records[mode.Mode.Name], mode.RecordBytes = records, float64(total)/float64(len(records))
	warm := min(warmUp, b.o.Duration)
	if _, err := b.backing.produce(ctx, b.topic, b.o.Partitions, records, 1, mode.Mode.Connections, warm); err != nil {
		return err
	}
	if _, _, err := b.inserts.insert(ctx, warm); err != nil {
		return err
	}
	return b.inserts.empty(ctx)
}

func (b *bare) produce(ctx context.Context, mode *ModeReport, into *Phase, perRequest, senders int) error {
	m, err := b.backing.startMeter(nil)
	if err != nil {
		return err
	}
	done, err := b.backing.produce(ctx, b.topic, b.o.Partitions, b.records[mode.Mode.Name], perRequest, senders, b.o.Duration)
	if err != nil {
		return err
	}
	*into = Phase{Phase: report.Phase{Events: done.records * uint64(max(mode.Mode.Batch, 1)), Requests: done.requests, Seconds: done.elapsed.Seconds()}}
	into.EventsPerSecond, into.BytesPerSecond = report.Ratio(float64(into.Events), into.Seconds), report.Ratio(float64(done.bytes), into.Seconds)
	into.SetLatencies(done.latency)
	if err := into.stop(m); err != nil {
		return err
	}
	b.o.Logf("  bare produce, %d records a request from %d senders: %.0f events/s, %.1f MB/s", perRequest, senders, into.EventsPerSecond, into.BytesPerSecond/1e6)
	return nil
}

// insertPart is the part of a phase's time that inserts take: their rate hardly
// varies.
const insertPart = 2

func (b *bare) insert(ctx context.Context, into *Phase) error {
	m, err := b.backing.startMeter(nil)
	if err != nil {
		return err
	}
	rows, elapsed, err := b.inserts.insert(ctx, max(b.o.Duration/insertPart, time.Millisecond))
	if err != nil {
		return err
	}
	*into = Phase{Phase: report.Phase{Events: rows, Seconds: elapsed.Seconds(), EventsPerSecond: report.Ratio(float64(rows), elapsed.Seconds())}}
	if err := into.stop(m); err != nil {
		return err
	}
	b.o.Logf("  bare inserts: %.0f rows/s", into.EventsPerSecond)
	return b.inserts.empty(ctx)
}
