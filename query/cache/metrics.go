package cache

import (
	"io"

	"github.com/VictoriaMetrics/metrics"
)

// WriteMetrics writes the cache's counters in the text format of Prometheus.
func (h *History) WriteMetrics(w io.Writer) {
	s := h.Stats()
	answers := func(from string, n uint64) {
		metrics.WriteCounterUint64(w, `muster_query_cache_answers_total{from="`+from+`"}`, n)
	}
	answers("memory", s.Hits)
	answers("newer_events", s.Extended)
	answers("history", s.Misses)
	answers("uncached", s.Bypassed)
	metrics.WriteGaugeFloat64(w, "muster_query_cache_bytes", float64(s.Bytes))
	metrics.WriteGaugeFloat64(w, "muster_query_cache_limit_bytes", float64(s.Limit))
}
