package links

import (
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/resolver/node"
)

// Options configure a [API]. All must be set.
type Options struct {
	Node *node.Node
	Now  func() time.Time
	// Memory is what forms are taken from.
	Memory *ingest.Memory
	// ReadTimeout bounds a read of the state and a command.
	ReadTimeout time.Duration
	Metrics     *metrics.Set
	// Logger takes faults of the service itself.
	Logger *slog.Logger
}

// API answers the links of messages.
type API struct {
	opts      Options
	tracker   *tracker
	views     *formViews
	formRates *formRates
	watchers  *inboxWatchers
}

// New returns what answers the links of messages. close must follow.
func New(opts Options) *API {
	return &API{opts, newTracker(opts.Node, opts.Now, opts.Metrics), newFormViews(opts.Node, opts.ReadTimeout, opts.Logger), newFormRates(), newInboxWatchers()}
}

// Close ends the recording of opens and clicks, and of views of forms, and streams of inboxes.
func (a *API) Close() {
	a.watchers.close()
	a.views.close()
	a.tracker.close()
}
