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
	// Captured are the messages that development senders kept; nil for none.
	Captured messages.Captured
	// CapturesEmail reports that e-mails are captured too, because there is no relay.
	CapturesEmail bool
	// Imports keeps uploaded CSV files; nil takes none.
	Imports Imports
	// DNS looks up what sender domains publish; default the system's resolver.
	DNS email.Resolver
	// KeyLastUsed is when an API key was used last, in Unix milliseconds, where
	// that is not recorded yet; nil knows of none.
	KeyLastUsed func(account uint64, keyID string) (ms int64)
	// WriteKeyLastUsed is when a write key of a source was used last, likewise.
	WriteKeyLastUsed func(account uint64, sourceID, keyID string) (ms int64)
	// Events takes the texts that people write as events; see ingest.Handler.
	Events interface {
		Record(account uint64, event []byte) (profile resolver.ProfileID, warning string, err error)
	}
	// PublicURL is how providers reach the service: what their signatures cover.
	PublicURL string
	// AllowPrivate permits push services and providers on private addresses.
	AllowPrivate bool
	// SNS authenticates what Amazon SES reports; nil makes one over the network.
	SNS *inbound.SNS
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
	// PublishWait is how long publishing a flow waits for it to go live; it goes on
	// after that. Default 30 s.
	PublishWait time.Duration
	// EvaluationTimeout bounds a question to history; default 30 s.
	EvaluationTimeout time.Duration
	// ListTimeout bounds what the counts of a list of segments may take
	// together; segments not counted by then have a null count. Default 5 s.
	ListTimeout time.Duration
	// Evaluations is how many questions to history run at once (default 2),
	// EvaluationQueue how many more may wait (default 32).
	Evaluations     int
	EvaluationQueue int
	// Exports is how many exports run at once, and how many more may wait; default
	// 2.
	Exports int
	// TimelineEvents is up to how many events of a profile its segments are
	// worked out from its own history; default 2,000.
	TimelineEvents int

	// Password is the cost of a password check. Each takes its memory; at most
	// PasswordChecks (default 2) of strangers run at once and PasswordQueue (default
	// 32) wait. One more is for people who are signed in or show a known device.
	Password       password.Params
	PasswordChecks int
	PasswordQueue  int
	// LoginThrottleEntries bounds the table of failed sign-ins; default 40,000.
	LoginThrottleEntries int
	// SessionTTL is how long a session lasts; default 14 days.
	SessionTTL time.Duration
	// Heartbeat is the pause between signs of life to who watches live events;
	// default 15 s.
	Heartbeat time.Duration
}

func (o Options) withDefaults() Options {
	o.BodyBytes = cmp.Or(o.BodyBytes, 1<<20)
	if o.Memory == nil {
		o.Memory = ingest.NewMemory(256 << 20)
	}
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 10*time.Second)
	o.PublishWait = cmp.Or(o.PublishWait, 30*time.Second)
	o.EvaluationTimeout = cmp.Or(o.EvaluationTimeout, 30*time.Second)
	o.ListTimeout = cmp.Or(o.ListTimeout, 5*time.Second)
	o.Evaluations = cmp.Or(o.Evaluations, 2)
	o.EvaluationQueue = cmp.Or(o.EvaluationQueue, 32)
	o.TimelineEvents = cmp.Or(o.TimelineEvents, 2000)
	o.Exports = cmp.Or(o.Exports, 2)
	if o.DNS == nil {
		o.DNS = net.DefaultResolver
	}
	o.Password = cmp.Or(o.Password, password.Default)
	o.PasswordChecks = cmp.Or(o.PasswordChecks, 2)
	o.PasswordQueue = cmp.Or(o.PasswordQueue, 32)
	o.LoginThrottleEntries = cmp.Or(o.LoginThrottleEntries, 40_000)
	o.SessionTTL = cmp.Or(o.SessionTTL, 14*24*time.Hour)
	o.Heartbeat = cmp.Or(o.Heartbeat, 15*time.Second)
	if o.SNS == nil {
		o.SNS = inbound.NewSNS(inbound.NewHTTPFetcher(nil))
	}
	if o.KeyLastUsed == nil {
		o.KeyLastUsed = func(uint64, string) int64 { return 0 }
	}
	if o.WriteKeyLastUsed == nil {
		o.WriteKeyLastUsed = func(uint64, string, string) int64 { return 0 }
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
		{"ReadTimeout", int64(o.ReadTimeout)}, {"EvaluationTimeout", int64(o.EvaluationTimeout)}, {"PublishWait", int64(o.PublishWait)}, {"ListTimeout", int64(o.ListTimeout)},
		{"Evaluations", int64(o.Evaluations)}, {"EvaluationQueue", int64(o.EvaluationQueue)}, {"TimelineEvents", int64(o.TimelineEvents)}, {"Exports", int64(o.Exports)},
		{"PasswordChecks", int64(o.PasswordChecks)}, {"PasswordQueue", int64(o.PasswordQueue)}, {"LoginThrottleEntries", int64(o.LoginThrottleEntries)},
		{"SessionTTL", int64(o.SessionTTL)}, {"Heartbeat", int64(o.Heartbeat)},
	} {
		if f.value < 0 {
			return fmt.Errorf("api: Options.%s is %d; it must not be negative, use 0 for its default", f.name, f.value)
		}
	}
	return nil
}
