package evaluation

import (
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/internal/histogram"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/node"
)

// Options configure an [Evaluator]. All must be set.
type Options struct {
	Node    *node.Node
	History query.History
	// Chain has the instant of calls.
	Chain *handler.Chain
	// Evaluations bounds questions to history, Combinations those that the engine knows
	// the answers to.
	Evaluations, Combinations *handler.Semaphore
	// Timeout bounds a question to history.
	Timeout time.Duration
	// TimelineEvents is up to how many events of a profile its segments are worked out from
	// its own history.
	TimelineEvents int
	Metrics        *metrics.Set
	// Logger takes faults of the service itself.
	Logger *slog.Logger
}

// Evaluator answers questions about definitions. It is safe for concurrent use.
type Evaluator struct {
	opts      Options
	columns   *columnMaker
	durations *histogram.Histogram
	snapshots *metrics.Counter
}

// New returns an Evaluator. [Evaluator.Close] must follow.
func New(opts Options) *Evaluator {
	e := &Evaluator{
		opts:    opts,
		columns: newColumnMaker(),
		durations: histogram.New(opts.Metrics, "muster_console_evaluation_duration_seconds", "",
			time.Millisecond, 5*time.Millisecond, 10*time.Millisecond, 25*time.Millisecond, 50*time.Millisecond, 100*time.Millisecond,
			250*time.Millisecond, 500*time.Millisecond, time.Second, 2500*time.Millisecond, 5*time.Second, 10*time.Second, time.Minute),
		snapshots: opts.Metrics.GetOrCreateCounter("muster_console_profile_snapshots_total"),
	}
	opts.Evaluations.Register(opts.Metrics, "evaluation")
	opts.Combinations.Register(opts.Metrics, "combination")
	return e
}

// Close ends the making of columns.
func (e *Evaluator) Close() { e.columns.close() }
