package api

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/node"
)

// usageAge is for how long the size of history is not asked again.
const usageAge = 10 * time.Second

// RegisterStateMetrics adds the numbers of the log, which log writes, of the
// state and of history to set. now is the clock that ages the sizes of history
// and of segments. stop must be called before history is closed.
func RegisterStateMetrics(set *metrics.Set, node *node.Node, log func(io.Writer), history query.History, now func() time.Time) (stop func()) {
	usage := &usageCache{history: history, now: now}
	usage.ctx, usage.cancel = context.WithCancel(context.Background())
	segments := &segmentSizes{node: node, now: now}
	set.RegisterMetricsWriter(func(w io.Writer) {
		log(w)
		for _, s := range node.Stats() {
			writePartition(w, s)
		}
		segments.write(w)
		usage.write(w)
	})
	return usage.close
}

func writePartition(w io.Writer, s node.Stats) {
	label := fmt.Sprintf(`{partition="%d"}`, s.Partition)
	gauge := func(name string, v int64) { metrics.WriteGaugeFloat64(w, name+label, float64(v)) }
	counter := func(name string, v uint64) { metrics.WriteCounterUint64(w, name+label, v) }
	seconds := func(name string, ns int64) { metrics.WriteCounterFloat64(w, name+label, time.Duration(ns).Seconds()) }
	gauge("muster_applied_offset", s.Applied)
	gauge("muster_apply_backlog_records", s.Backlog)
	seconds("muster_apply_seconds_total", s.ApplyNanoseconds)
	counter("muster_applied_records_total", s.Records)
	counter("muster_applied_events_total", s.Events)
	counter("muster_applied_duplicates_total", s.Duplicates)
	counter("muster_applied_refused_total", s.Refused)
	counter("muster_profiles_created_total", s.ProfilesCreated)
	counter("muster_merges_total", s.Merges)
	counter("muster_identity_conflicts_total", s.Conflicts)
	counter("muster_segment_transitions_total", s.Transitions)
	counter("muster_flow_enrolments_total", s.Enrolments)
	counter("muster_flow_loops_cut_total", s.FlowLoops)
	gauge("muster_flow_waiting_events", s.FlowsWaiting)
	gauge("muster_emails_reserved", s.EmailsReserved)
	gauge("muster_emails_to_release", s.EmailsToRelease)
	counter("muster_webhooks_dropped_total", s.WebhooksDropped)
	counter("muster_segment_chunks_total", s.Chunks)
	gauge("muster_profiles", s.Profiles)
	gauge("muster_identities", s.Identities)
	gauge("muster_idempotency_keys", s.IdempotencyKeys)
	counter("muster_checkpoints_total", uint64(s.Checkpoints))
	seconds("muster_checkpoint_seconds_total", s.CheckpointNanoseconds)
	metrics.WriteGaugeFloat64(w, "muster_checkpoint_freeze_max_seconds"+label, time.Duration(s.FreezeMaxNanoseconds).Seconds())
	gauge("muster_checkpoint_offset", s.LastCheckpoint)
	if s.Shared {
		gauge("muster_shared_checkpoint_offset", s.SharedOffset)
		counter("muster_shared_checkpoint_failures_total", uint64(s.SharedFailures))
		metrics.WriteGaugeFloat64(w, "muster_shared_checkpoint_failing"+label, flag(s.SharedFailing))
	}
	gauge("muster_history_offset", s.HistoryPosition)
	gauge("muster_history_lag_records", max(0, s.Applied-s.HistoryPosition))
	gauge("muster_history_waiting_rows", s.WaitingRows)
	gauge("muster_history_waiting_bytes", s.WaitingBytes)
	gauge("muster_history_spool_bytes", s.SpoolBytes)
	metrics.WriteGaugeFloat64(w, "muster_history_failing"+label, flag(s.HistoryFailing))
	metrics.WriteGaugeFloat64(w, "muster_history_rebuilding"+label, flag(s.HistoryRebuilding))
	metrics.WriteCounterUint64(w, "muster_repairs_total"+label, uint64(s.Repairs))
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// usageCache asks history for its size now and then, in the background: a scrape
// must not wait for a query.
type usageCache struct {
	history query.History
	now     func() time.Time
	ctx     context.Context // ends when the cache is closed
	cancel  context.CancelFunc
	done    sync.WaitGroup
	mu      struct {
		sync.Mutex // guards what follows
		usage      query.Usage
		known      bool
		asked      time.Time
		asking     bool
	}
}

func (u *usageCache) close() {
	u.mu.Lock()
	u.cancel() // under the lock: no question is begun behind it
	u.mu.Unlock()
	u.done.Wait()
}

func (u *usageCache) write(w io.Writer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if now := u.now(); u.ctx.Err() == nil && !u.mu.asking && (u.mu.asked.IsZero() || now.Sub(u.mu.asked) >= usageAge) {
		u.mu.asking, u.mu.asked = true, now
		u.done.Go(u.ask)
	}
	if !u.mu.known {
		return
	}
	metrics.WriteGaugeFloat64(w, "muster_history_rows", float64(u.mu.usage.Rows))
	metrics.WriteGaugeFloat64(w, "muster_history_disk_bytes", float64(u.mu.usage.Bytes))
	if u.mu.usage.Rows > 0 {
		metrics.WriteGaugeFloat64(w, "muster_history_bytes_per_event", float64(u.mu.usage.Bytes)/float64(u.mu.usage.Rows))
	}
}

func (u *usageCache) ask() {
	ctx, cancel := context.WithTimeout(u.ctx, usageAge)
	defer cancel()
	usage, err := u.history.Usage(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.mu.asking = false
	if err == nil {
		u.mu.usage, u.mu.known = usage, true
	}
}
