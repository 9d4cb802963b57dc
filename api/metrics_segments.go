package api

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
	"github.com/musterhq/muster/segment/engine"
)

// segmentSizesAge is for how long the sizes of segments are not read again.
const segmentSizesAge = time.Minute

// segmentSizes reads the sizes of segments at a scrape. That goes through all
// their state, and nothing is applied to an account meanwhile: hence seldom.
type segmentSizes struct {
	node *node.Node
	now  func() time.Time
	mu   struct {
		sync.Mutex // guards what follows
		stats      engine.Stats
		read       time.Time
	}
}

func (s *segmentSizes) write(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); s.mu.read.IsZero() || now.Sub(s.mu.read) >= segmentSizesAge {
		s.mu.read, s.mu.stats = now, s.readAll()
	}
	st := &s.mu.stats
	gauge := func(name string, v int64) { metrics.WriteGaugeFloat64(w, name, float64(v)) }
	gauge("muster_segments", int64(st.Segments))
	gauge("muster_segment_building", int64(st.Building))
	gauge("muster_segment_leaves", int64(st.Leaves))
	gauge("muster_segment_states", int64(st.States))
	gauge("muster_segment_values", int64(st.Values))
	gauge("muster_segment_bytes", st.Bytes)
}

func (s *segmentSizes) readAll() (sum engine.Stats) {
	for _, account := range s.node.Accounts() {
		// An account that cannot be read has failed, which its own metric says.
		s.node.Read(context.Background(), account, func(v *resolver.View) error { //nolint:errcheck // see above
			st := v.Segments().Stats()
			sum.Segments += st.Segments
			sum.Building += st.Building
			sum.Leaves += st.Leaves
			sum.States += st.States
			sum.Values += st.Values
			sum.Bytes += st.Bytes
			return nil
		})
	}
	return sum
}
