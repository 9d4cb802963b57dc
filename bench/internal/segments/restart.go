package segments

import (
	"context"
	"fmt"
	"time"

	"github.com/musterhq/muster/segment/engine"
)

// MemoryUse is what the state takes in memory.
type MemoryUse struct {
	// Bare is the process with the account empty, before it grew at all.
	Bare Memory `json:"bare"`
	// Served is after growing: without segments, caches as they are. Started is
	// after a restart: caches empty. WithSegments is with the live segments.
	Served       Memory `json:"served"`
	Started      Memory `json:"started"`
	WithSegments Memory `json:"with_segments"`

	// The following are Started and Served less Bare, by profile.
	HeapPerProfile       float64 `json:"go_heap_bytes_per_profile"`
	RSSPerProfile        float64 `json:"rss_bytes_per_profile"`
	ServedHeapPerProfile float64 `json:"served_go_heap_bytes_per_profile"`
	ServedRSSPerProfile  float64 `json:"served_rss_bytes_per_profile"`

	Segments engine.Stats `json:"segments"`
	// BytesPerValue is leaf state by value: one profile in one state.
	// SegmentBytesPerProfile is all leaf state by profile.
	BytesPerValue          float64 `json:"leaf_state_bytes_per_value"`
	SegmentBytesPerProfile float64 `json:"leaf_state_bytes_per_profile"`
	// SegmentHeapPerProfile is what the live segments add to the heap.
	SegmentHeapPerProfile float64 `json:"segments_go_heap_bytes_per_profile"`
}

// Restart is a stop and a start from the checkpoint it wrote.
type Restart struct {
	CloseSeconds float64 `json:"close_seconds"`
	OpenSeconds  float64 `json:"open_seconds"`
	// Replayed is how many records the start applied: none is expected.
	Replayed uint64 `json:"replayed_records"`
	// SameMembers is the number of segments whose members at one instant were
	// compared before and after, and are the same.
	SameMembers int `json:"same_members"`
}

// Checkpoint is one checkpoint after a measurement of ingest.
type Checkpoint struct {
	Seconds     float64 `json:"seconds"`
	CPUSeconds  float64 `json:"cpu_seconds"`
	CPUMicros   float64 `json:"cpu_us_per_event"` // of the events since the one before
	FreezeMilli float64 `json:"freeze_max_ms"`    // the longest since the start
	Bytes       int64   `json:"bytes"`
}

// restartAhead is longer than any restart takes.
const restartAhead = 10 * time.Minute

// restart stops the node and starts it again.
func (s *step) restart(ctx context.Context) (*Restart, error) {
	r := &Restart{}
	// An instant to come, so that both sides look ahead to the same.
	before, err := s.a.takeState(ctx, restartAhead)
	if err != nil {
		return nil, err
	}
	before.close()
	begun := time.Now()
	if err := s.a.close(ctx); err != nil {
		return nil, fmt.Errorf("stop: %w", err)
	}
	r.CloseSeconds = time.Since(begun).Seconds()
	begun = time.Now()
	if err := s.a.open(ctx); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	r.OpenSeconds = time.Since(begun).Seconds()
	r.Replayed = s.a.node.Stats()[0].Records
	after, err := s.a.takeStateAt(ctx, func(int64) int64 { return before.atMs })
	if err != nil {
		return nil, err
	}
	after.close()
	for id, want := range before.members {
		got := after.members[id]
		if got == nil {
			return nil, fmt.Errorf("segment %s is not live after a restart", id)
		}
		if err := differ(got, want); err != nil {
			return nil, fmt.Errorf("%w: segment %s after a restart: %w", ErrDiffers, id, err)
		}
		r.SameMembers++
	}
	return r, nil
}

// checkpoint writes a checkpoint now.
func (s *step) checkpoint() (*Checkpoint, error) {
	begun, cpu := time.Now(), cpuTime()
	if err := s.a.node.Checkpoint(); err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	c := &Checkpoint{Seconds: time.Since(begun).Seconds(), CPUSeconds: (cpuTime() - cpu).Seconds()}
	c.FreezeMilli = float64(s.a.node.Stats()[0].FreezeMaxNanoseconds) / 1e6
	var err error
	c.Bytes, err = s.a.newestCheckpoint()
	return c, err
}
