package uploads

import (
	"fmt"
	"io"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/api"
)

// windowCount counts rows by what became of them.
type windowCount struct{ taken, duplicates, refused uint64 }

// WriteMetrics writes the metrics of uploads in Prometheus' format.
func (s *Uploads) WriteMetrics(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	metrics.WriteCounterUint64(w, "muster_uploads_started_total", s.mu.started)
	for _, status := range []string{api.ImportDone, api.ImportCancelled, api.ImportFailed} {
		metrics.WriteCounterUint64(w, fmt.Sprintf("muster_uploads_ended_total{result=%q}", status), s.mu.ended[status])
	}
	metrics.WriteCounterUint64(w, `muster_upload_rows_total{result="taken"}`, s.mu.rows.taken)
	metrics.WriteCounterUint64(w, `muster_upload_rows_total{result="duplicate"}`, s.mu.rows.duplicates)
	metrics.WriteCounterUint64(w, `muster_upload_rows_total{result="refused"}`, s.mu.rows.refused)
	metrics.WriteGaugeUint64(w, "muster_upload_bytes", uint64(s.mu.bytes))
	metrics.WriteGaugeUint64(w, "muster_upload_limit_bytes", uint64(s.opts.Bytes))
}
