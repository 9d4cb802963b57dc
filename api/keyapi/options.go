package keyapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/view"
)

// Events takes events of requests that are authenticated; see ingest.Handler.
type Events interface {
	Record(account uint64, event []byte) (profile resolver.ProfileID, warning string, err error)
}

// State is what is asked of the state machine: a [*node.Node].
type State interface {
	keycall.State
	KeyAccess(account uint64, hash [32]byte) (access resolver.KeyAccess, ok bool, err error)
	RecordKeyUses(ctx context.Context, uses []access.KeyUse) error
}

// Campaigns sends campaigns: a [*messaging.Dispatcher].
type Campaigns interface {
	Send(ctx context.Context, account uint64, start campaigns.Start, by audit.Author) (campaigns.Run, error)
	Start(ctx context.Context, account uint64, start campaigns.Start, by audit.Author) error
	PlanPush(ctx context.Context, account uint64, segment string, content campaigns.Content) (messaging.PushPlan, error)
	NewTest(v *resolver.View, account uint64, x *campaigns.Campaign, content campaigns.Content, p *view.Profile) (*messaging.Tester, error)
	CheckProviders(v *resolver.View, x *campaigns.Campaign, contents []campaigns.Content) error
	OutgoingText(v *resolver.View, account uint64, x *campaigns.Campaign, content campaigns.Content, p *view.Profile) (string, error)
	ValidatePush(ctx context.Context, account uint64, plan messaging.PushPlan, content campaigns.Content) error
}

// Options configure an [API]. Node, Events, Console, Now and Rand are required; a zero
// value elsewhere means the default.
type Options struct {
	Node   State
	Events Events
	// Console answers the calls that keys share with people.
	Console   *api.API
	Campaigns Campaigns
	// History answers what needs past events; without it such calls are not
	// available.
	History keycall.History

	// AllowPrivate permits push services on private addresses.
	AllowPrivate bool

	// Now is the wall clock; its monotonic part measures rates. Rand is the source
	// of request ids. Both must be safe for concurrent use.
	Now  func() time.Time
	Rand io.Reader
	// Metrics takes the counters; nil keeps them to the API.
	Metrics *metrics.Set
	// Logger takes faults of the service itself; nil is silent.
	Logger *slog.Logger

	// BodyBytes is the longest body of a request; default 1 MiB.
	BodyBytes int
	// Memory is what bodies and large answers are taken from, that of the service;
	// default one of 256 MiB.
	Memory *ingest.Memory
	// Timeout bounds a request, unless its route says otherwise; default 10 s.
	Timeout time.Duration
	// PerMinute is how many requests of Surface A a key may make in any 60
	// seconds; default 120. That of Surface C is a setting of the account.
	PerMinute int
	// FlushInterval is the least time between records of when keys were used;
	// default 1 min. A crash loses what came after the last.
	FlushInterval time.Duration
}

const defaultBodyBytes = 1 << 20

func (o Options) withDefaults() Options {
	o.BodyBytes = cmp.Or(o.BodyBytes, defaultBodyBytes)
	if o.Memory == nil {
		o.Memory = ingest.NewMemory(256 << 20)
	}
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.PerMinute = cmp.Or(o.PerMinute, 120)
	o.FlushInterval = cmp.Or(o.FlushInterval, time.Minute)
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o *Options) validate() error {
	if o.Node == nil || o.Events == nil || o.Console == nil || o.Now == nil || o.Rand == nil {
		return errors.New("keyapi: Options.Node, Events, Console, Now and Rand must be set")
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"BodyBytes", int64(o.BodyBytes)}, {"Timeout", int64(o.Timeout)},
		{"PerMinute", int64(o.PerMinute)}, {"FlushInterval", int64(o.FlushInterval)},
	} {
		if f.value < 0 {
			return fmt.Errorf("keyapi: Options.%s is %d; it must not be negative, use 0 for its default", f.name, f.value)
		}
	}
	return nil
}
