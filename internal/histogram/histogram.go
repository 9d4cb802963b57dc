// Package histogram counts durations in buckets that Prometheus reads: fixed upper
// bounds in the label le. (The histograms of VictoriaMetrics/metrics have buckets
// that only VictoriaMetrics reads, and newer versions of it, which have these, write
// to standard error at every start on a machine without pressure stall information.)
package histogram

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// Histogram counts durations. Its methods may be called from any goroutine and
// allocate nothing.
type Histogram struct {
	bounds []time.Duration
	counts []atomic.Uint64 // one more than bounds: the rest
	sum    atomic.Int64    // nanoseconds
}

// New returns a histogram with the upper bounds, which ascend, and has set write it
// as name with labels, such as `endpoint="event"`, or none.
func New(set *metrics.Set, name, labels string, bounds ...time.Duration) *Histogram {
	if len(bounds) == 0 || !slices.IsSorted(bounds) {
		panic(fmt.Sprintf("histogram %s: bounds %v do not ascend", name, bounds))
	}
	h := &Histogram{bounds: bounds, counts: make([]atomic.Uint64, len(bounds)+1)}
	set.RegisterMetricsWriter(func(w io.Writer) { h.write(w, name, labels) })
	return h
}

// Observe counts one duration.
func (h *Histogram) Observe(d time.Duration) {
	i := 0
	for i < len(h.bounds) && d > h.bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	h.sum.Add(int64(d))
}

func (h *Histogram) write(w io.Writer, name, labels string) {
	bucket, all := "{", ""
	if labels != "" {
		bucket, all = "{"+labels+",", "{"+labels+"}"
	}
	// The buckets are added up as they are written, so count is theirs whatever is
	// observed meanwhile.
	var n uint64
	for i := range h.counts {
		n += h.counts[i].Load()
		le := "+Inf"
		if i < len(h.bounds) {
			le = strconv.FormatFloat(h.bounds[i].Seconds(), 'g', -1, 64)
		}
		metrics.WriteCounterUint64(w, fmt.Sprintf("%s_bucket%sle=%q}", name, bucket, le), n)
	}
	metrics.WriteCounterFloat64(w, name+"_sum"+all, time.Duration(h.sum.Load()).Seconds())
	metrics.WriteCounterUint64(w, name+"_count"+all, n)
}
