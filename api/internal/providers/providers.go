package providers

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/messaging/inbound"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

// Options configure a [API]. All must be set.
type Options struct {
	Node *node.Node
	Now  func() time.Time
	Rand io.Reader
	// Memory is what reports are taken from.
	Memory *ingest.Memory
	// Events takes the texts that people write as events; see ingest.Handler.
	Events interface {
		Record(account uint64, event []byte) (profile resolver.ProfileID, warning string, err error)
	}
	// Claims reads the token of a link.
	Claims func(ctx context.Context, token string) (tracking.Claims, error)
	// PublicURL is how providers reach the service: what their signatures cover.
	PublicURL string
	// AllowPrivate permits push services and providers on private addresses.
	AllowPrivate bool
	// SNS authenticates what Amazon SES reports.
	SNS *inbound.SNS
	// Metrics counts what is dropped, and Logger says so.
	Metrics *metrics.Set
	Logger  *slog.Logger
}

// API keeps the keys of providers and takes their reports.
type API struct {
	opts Options
	// withoutNumber counts texts of people whose number is not told; warned is when the log
	// said so last, in Unix seconds.
	withoutNumber *metrics.Counter
	warned        atomic.Int64
}

// New returns the calls about providers.
func New(opts Options) *API {
	return &API{opts: opts, withoutNumber: opts.Metrics.GetOrCreateCounter("muster_inbound_texts_without_number_total")}
}
