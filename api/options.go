package api

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/api/internal/accounts"
	"github.com/musterhq/muster/api/internal/messages"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/password"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/inbound"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

// Options configure an [API]. Node, History, Now and Rand are required; a zero
// value elsewhere means the default.
type Options struct {
	// Node is the state, History the store of resolved events that it feeds.
	Node    *node.Node
	History query.History

	// Peers are the nodes of a cluster; nil where this one has all accounts.
	Peers accounts.Peers

	// Now is the wall clock, Rand the source of tokens and secrets. Both must be
	// safe for concurrent use.
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
	// ReadTimeout bounds a read of the state and a command; default 10 s.
	ReadTimeout time.Duration
	// Heartbeat is the pause between signs of life to watchers of live events;
	// default 15 s.
	Heartbeat time.Duration

	SignIn     SignInOptions
	Evaluation EvaluationOptions
	Captured   CapturedOptions
	Providers  ProviderOptions
	LastUsed   LastUsedOptions

	// AllowPrivate permits push services and providers on private addresses.
	AllowPrivate bool
	// PublishWait is how long publishing a flow waits for it to go live; it continues
	// after that. Default 30 s.
	PublishWait time.Duration
	// Imports keeps uploaded CSV files; nil takes none.
	Imports Imports
	// Exports is how many exports run at once, and how many more may wait; default
	// 2.
	Exports int
}

// SignInOptions bound the work for people who sign in.
type SignInOptions struct {
	// Password is the cost of a password check. Each takes its memory; at most
	// Checks (default 2) of strangers run at once and Queue (default 32) wait. One
	// more is for people who are signed in or show a known device.
	Password password.Params
	Checks   int
	Queue    int
	// ThrottleEntries bounds the table of failed sign-ins; default 40,000.
	ThrottleEntries int
	// SessionTTL is how long a session lasts; default 14 days.
	SessionTTL time.Duration
}

// EvaluationOptions bound questions about definitions.
type EvaluationOptions struct {
	// AtOnce is how many questions to history run at once (default 2), Queue how many
	// more may wait (default 32).
	AtOnce int
	Queue  int
	// Timeout bounds a question to history; default 30 s.
	Timeout time.Duration
	// ListTimeout bounds what the counts of a list of segments may take
	// together; segments not counted by then have a null count. Default 5 s.
	ListTimeout time.Duration
	// TimelineEvents is up to how many events of a profile its segments are
	// worked out from its own history; default 2,000.
	TimelineEvents int
}

// CapturedOptions are the messages that development senders keep.
type CapturedOptions struct {
	// Messages are those that were kept; nil for none.
	Messages messages.Captured
	// Email reports that e-mails are captured too, because there is no relay.
	Email bool
}

// ProviderOptions are about what comes from outside: reports of providers and records of
// sender domains.
type ProviderOptions struct {
	// Events takes the texts that people write as events; see ingest.Handler.
	Events interface {
		Record(account uint64, event []byte) (profile resolver.ProfileID, warning string, err error)
	}
	// PublicURL is how providers reach the service: what their signatures cover.
	PublicURL string
	// SNS authenticates what Amazon SES reports; nil makes one over the network.
	SNS *inbound.SNS
	// DNS looks up what sender domains publish; default the system's resolver.
	DNS email.Resolver
}

// LastUsedOptions tell when keys were used last, in Unix milliseconds, where that is not
// recorded yet; nil means there are none.
type LastUsedOptions struct {
	APIKey func(account uint64, keyID string) (ms int64)
	// WriteKey is of a source of the tracking API.
	WriteKey func(account uint64, sourceID, keyID string) (ms int64)
}

func (o Options) withDefaults() Options {
	o.BodyBytes = cmp.Or(o.BodyBytes, 1<<20)
	if o.Memory == nil {
		o.Memory = ingest.NewMemory(256 << 20)
	}
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 10*time.Second)
	o.PublishWait = cmp.Or(o.PublishWait, 30*time.Second)
	o.Evaluation.Timeout = cmp.Or(o.Evaluation.Timeout, 30*time.Second)
	o.Evaluation.ListTimeout = cmp.Or(o.Evaluation.ListTimeout, 5*time.Second)
	o.Evaluation.AtOnce = cmp.Or(o.Evaluation.AtOnce, 2)
	o.Evaluation.Queue = cmp.Or(o.Evaluation.Queue, 32)
	o.Evaluation.TimelineEvents = cmp.Or(o.Evaluation.TimelineEvents, 2000)
	o.Exports = cmp.Or(o.Exports, 2)
	if o.Providers.DNS == nil {
		o.Providers.DNS = net.DefaultResolver
	}
	o.SignIn.Password = cmp.Or(o.SignIn.Password, password.Default)
	o.SignIn.Checks = cmp.Or(o.SignIn.Checks, 2)
	o.SignIn.Queue = cmp.Or(o.SignIn.Queue, 32)
	o.SignIn.ThrottleEntries = cmp.Or(o.SignIn.ThrottleEntries, 40_000)
	o.SignIn.SessionTTL = cmp.Or(o.SignIn.SessionTTL, 14*24*time.Hour)
	o.Heartbeat = cmp.Or(o.Heartbeat, 15*time.Second)
	if o.Providers.SNS == nil {
		o.Providers.SNS = inbound.NewSNS(inbound.NewHTTPFetcher(nil))
	}
	if o.LastUsed.APIKey == nil {
		o.LastUsed.APIKey = func(uint64, string) int64 { return 0 }
	}
	if o.LastUsed.WriteKey == nil {
		o.LastUsed.WriteKey = func(uint64, string, string) int64 { return 0 }
	}
	if o.Metrics == nil {
		o.Metrics = metrics.NewSet()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o *Options) validate() error {
	if o.Node == nil || o.History == nil || o.Now == nil || o.Rand == nil {
		return errors.New("api: Options.Node, History, Now and Rand must be set")
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"BodyBytes", int64(o.BodyBytes)},
		{"ReadTimeout", int64(o.ReadTimeout)}, {"Evaluation.Timeout", int64(o.Evaluation.Timeout)}, {"PublishWait", int64(o.PublishWait)}, {"Evaluation.ListTimeout", int64(o.Evaluation.ListTimeout)},
		{"Evaluation.AtOnce", int64(o.Evaluation.AtOnce)}, {"Evaluation.Queue", int64(o.Evaluation.Queue)}, {"Evaluation.TimelineEvents", int64(o.Evaluation.TimelineEvents)}, {"Exports", int64(o.Exports)},
		{"SignIn.Checks", int64(o.SignIn.Checks)}, {"SignIn.Queue", int64(o.SignIn.Queue)}, {"SignIn.ThrottleEntries", int64(o.SignIn.ThrottleEntries)},
		{"SignIn.SessionTTL", int64(o.SignIn.SessionTTL)}, {"Heartbeat", int64(o.Heartbeat)},
	} {
		if f.value < 0 {
			return fmt.Errorf("api: Options.%s is %d; it must not be negative, use 0 for its default", f.name, f.value)
		}
	}
	return nil
}
