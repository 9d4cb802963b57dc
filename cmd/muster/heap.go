package main

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/musterhq/muster/internal/idlememory"
)

// Go's collector lets the heap grow to twice the live bytes before it collects, so that
// bodies under way would take twice --max-inflight-bytes. For them there is no need: the
// flag says how much they can become. heapLimit is a memory limit that leaves the
// collector its room for everything else, and none for them.
//
// It is never lower than what can live, by the last collection, so that the collector does
// not run for nothing when the state grows.
func heapLimit(m heapUse, inFlightLimit int64) int64 {
	others := max(0, m.live-m.inFlight)
	return inFlightLimit + inFlightLimit/16 + 2*others + m.overhead + heapSlack
}

// heapSlack is what the heap may have at least beyond the live objects, in bytes.
const heapSlack = 24 << 20

// heapUse is what memory is used for, in bytes.
type heapUse struct {
	collections uint64 // of the heap, since the start of the process
	live        int64  // of the heap, when it was last collected
	overhead    int64  // of the Go runtime beside the heap's objects: stacks, tables
	// inFlight is of the heap, when it was last collected: bodies and answers of requests
	// under way, the most that they can have been. Those of another time say nothing of live:
	// most bodies are there for a moment only.
	inFlight int64
}

// since is a look at the heap after another one; most is the most that was in flight in
// between. Where it was not collected in between, what was in flight then stays.
func (m heapUse) since(before heapUse, most int64) heapUse {
	m.inFlight = before.inFlight
	if m.collections != before.collections {
		m.inFlight = most
	}
	return m
}

// readHeapUse asks the Go runtime, which does not know what is in flight.
func readHeapUse() heapUse {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/gc/cycles/total:gc-cycles"},
	}
	metrics.Read(samples)
	value := func(i int) int64 { return int64(samples[i].Value.Uint64()) }
	return heapUse{collections: uint64(value(6)), live: value(0), overhead: max(0, value(1)-value(2)-value(3)-value(4)-value(5))}
}

// heapCheck is the time between adjustments of the memory limit.
const heapCheck = time.Second

// boundHeap keeps the memory limit adjusted until stop is called. It leaves alone a limit
// that is set (GOMEMLIMIT).
func (c *serveConfig) boundHeap(ctx context.Context) (stop func()) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // bodies come until the server has stopped
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.adjustHeap(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (c *serveConfig) adjustHeap(ctx context.Context) {
	var set int64
	var use heapUse
	check := time.NewTicker(heapCheck)
	defer check.Stop()
	for {
		// Setting it stops the process for a moment: only for a difference.
		use = readHeapUse().since(use, c.ingest.Memory.Most())
		if limit := heapLimit(use, c.ingest.InFlightBytes); limit > set+set/32 || limit < set-set/32 {
			debug.SetMemoryLimit(limit)
			set = limit
		}
		select {
		case <-ctx.Done():
			debug.SetMemoryLimit(math.MaxInt64)
			return
		case <-check.C:
		}
	}
}

// releaseIdleMemory gives memory back to the system whenever the process is idle, until
// stop is called.
func (c *serveConfig) releaseIdleMemory(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		idlememory.Run(ctx, c.log)
	}()
	return func() {
		cancel()
		<-done
	}
}
