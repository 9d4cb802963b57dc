package contest

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/musterhq/muster/bench/internal/loader"
	"github.com/musterhq/muster/bench/internal/server"
	"github.com/musterhq/muster/bench/internal/stalls"
	"github.com/musterhq/muster/bench/internal/topology"
	"github.com/musterhq/muster/internal/pause"
)

const (
	// slow is how long a request takes that is looked into.
	slow = 20 * time.Millisecond
	// A trace begins after a pause and is not longer than longestTrace: its size and the
	// memory to read it grow with it. maxTraceBytes bounds it in any case.
	beforeTrace   = time.Second
	longestTrace  = 20 * time.Second
	maxTraceBytes = 256 << 20
)

// traced runs a watched phase while a trace of the server is recorded, and explains its slow requests.
func (o Options) traced(ctx context.Context, s *topology.Single, into *Muster, phase func() (*loader.Result, error)) func() (*loader.Result, error) {
	return func() (*loader.Result, error) {
		type recorded struct {
			trace []byte
			err   error
		}
		ready := make(chan recorded, 1)
		go func() {
			trace, err := record(ctx, s, min(longestTrace, o.Duration-2*beforeTrace))
			ready <- recorded{trace, err}
		}()
		r, err := phase()
		got := <-ready
		if err != nil {
			return r, err
		}
		if got.err != nil {
			return r, fmt.Errorf("recording a trace, which is smaller with a shorter --duration: %w", got.err)
		}
		into.Stalls, err = stalls.Explain(bytes.NewReader(got.trace), r.Slow(slow), slow, into.Processors.Phases)
		return r, err
	}
}

// record records a trace of the server for a while.
func record(ctx context.Context, s *topology.Single, length time.Duration) ([]byte, error) {
	if err := pause.For(ctx, beforeTrace); err != nil {
		return nil, err
	}
	return server.Get(ctx, s.Address(), fmt.Sprintf("/debug/pprof/trace?seconds=%g", max(length, time.Second).Seconds()), maxTraceBytes)
}
