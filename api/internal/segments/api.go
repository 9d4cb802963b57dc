package segments

import (
	"log/slog"
	"time"

	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver/node"
)

// Options configure an [API]. All must be set.
type Options struct {
	Node    *node.Node
	History query.History
	// Chain has the instant of calls.
	Chain      *handler.Chain
	Evaluation *evaluation.Evaluator
	// Watch watches the transitions of a segment; ok is false where too many do.
	Watch func(account uint64, segment string) (w Watch, ok bool)
	Now   func() time.Time
	// ReadTimeout bounds a read of the state.
	ReadTimeout time.Duration
	// ListTimeout bounds what the counts of a list of segments may take together; segments
	// not counted by then have a null count.
	ListTimeout time.Duration
	// Logger takes faults of the service itself.
	Logger *slog.Logger
}

// API answers the calls about segments.
type API struct{ opts Options }

// New returns the calls about segments.
func New(opts Options) *API { return &API{opts} }
