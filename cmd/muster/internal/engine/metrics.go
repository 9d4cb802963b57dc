package engine

import (
	"io"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/cluster"
	"github.com/musterhq/muster/eventlog/file"
	"github.com/musterhq/muster/eventlog/kafka"
)

// WriteLogMetrics writes the numbers of the log, of its ownership and of the
// storage for checkpoints.
func (e *Engine) WriteLogMetrics(w io.Writer) {
	e.writeCheckpoints(w)
	full := false
	for _, s := range e.Node.Stats() {
		full = full || s.DiskFull
	}
	if e.file != nil {
		s := e.file.Stats()
		writeFiles(w, s)
		e.backups.write(w)
		if e.scrub != nil {
			e.scrub.write(w)
		}
		full = full || s.NoSpace
	}
	metrics.WriteGaugeFloat64(w, "muster_disk_full", flag(full))
	if e.file != nil {
		return
	}
	writeTopic(w, e.topic.Stats())
	writeMember(w, e.member.Stats())
	metrics.WriteGaugeFloat64(w, "muster_cluster_partitions_loading", float64(len(e.Loading())))
}

// shared are the numbers that logs of all kinds have.
type shared struct {
	queueRecords                                int
	queueBytes                                  int64
	records, bytes, commits                     uint64
	refusedFull, refusedTooLarge, refusedFailed uint64
}

func (s shared) write(w io.Writer) {
	gauge, counter := metrics.WriteGaugeFloat64, metrics.WriteCounterUint64
	gauge(w, "muster_log_queue_records", float64(s.queueRecords))
	gauge(w, "muster_log_queue_bytes", float64(s.queueBytes))
	counter(w, "muster_log_records_total", s.records)
	counter(w, "muster_log_bytes_total", s.bytes)
	counter(w, "muster_log_commits_total", s.commits)
	counter(w, `muster_log_refused_total{reason="queue_full"}`, s.refusedFull)
	counter(w, `muster_log_refused_total{reason="too_large"}`, s.refusedTooLarge)
	counter(w, `muster_log_refused_total{reason="failed"}`, s.refusedFailed)
}

func writeFiles(w io.Writer, s file.Stats) {
	gauge, counter := metrics.WriteGaugeFloat64, metrics.WriteCounterUint64
	shared{s.QueueRecords, s.QueueBytes, s.Appended, s.AppendedBytes, s.Batches, s.RefusedFull, s.RefusedTooLarge, s.RefusedFailed}.write(w)
	counter(w, "muster_log_fsyncs_total", s.Fsyncs)
	metrics.WriteCounterFloat64(w, "muster_log_fsync_seconds_total", s.FsyncTime.Seconds())
	counter(w, "muster_log_cut_bytes_total", s.CutBytes)
	gauge(w, "muster_log_segment_files", float64(s.Segments))
	gauge(w, "muster_log_disk_bytes", float64(s.DiskBytes))
	gauge(w, "muster_log_failed", flag(s.Failed))
	counter(w, `muster_log_refused_total{reason="no_space"}`, s.RefusedNoSpace)
}

func writeTopic(w io.Writer, s kafka.Stats) {
	gauge, counter := metrics.WriteGaugeFloat64, metrics.WriteCounterUint64
	shared{s.QueueRecords, s.QueueBytes, s.Appended, s.AppendedBytes, s.Batches, s.RefusedFull, s.RefusedTooLarge, s.RefusedFailed}.write(w)
	counter(w, "muster_log_produces_total", s.Produces)
	metrics.WriteCounterFloat64(w, "muster_log_produce_seconds_total", s.ProduceTime.Seconds())
	counter(w, "muster_log_produce_failures_total", s.ProduceFailures)
	counter(w, "muster_log_produce_retries_total", s.Retries)
	counter(w, "muster_log_barriers_total", s.Questions)
	counter(w, "muster_log_fetches_total", s.Fetches)
	counter(w, "muster_log_fetched_bytes_total", s.FetchedBytes)
	counter(w, "muster_log_own_records_total", s.OwnRecords)
	counter(w, "muster_log_reconnects_total", s.Reconnects)
	counter(w, "muster_log_leader_changes_total", s.LeaderChanges)
	gauge(w, "muster_log_failing_seconds", s.Failing.Seconds())
}

func writeMember(w io.Writer, s cluster.Stats) {
	metrics.WriteGaugeFloat64(w, "muster_cluster_member", flag(s.Confirmed))
	metrics.WriteGaugeFloat64(w, "muster_cluster_generation", float64(s.Generation))
	metrics.WriteCounterUint64(w, "muster_cluster_rejoins_total", s.Rejoins)
	metrics.WriteGaugeFloat64(w, "muster_cluster_nodes", float64(s.Nodes))
	metrics.WriteGaugeFloat64(w, "muster_cluster_partitions_assigned", float64(s.Assigned))
	metrics.WriteGaugeFloat64(w, "muster_cluster_partitions_planned", float64(s.Planned))
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
