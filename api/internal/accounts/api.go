package accounts

import (
	"fmt"
	"io"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/internal/password"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node"
)

// Options configure an [API]. Peers may be nil; all others must be set.
type Options struct {
	Node *node.Node
	// Peers are the nodes of a cluster; nil where this one has all accounts.
	Peers Peers
	Now   func() time.Time
	Rand  io.Reader
	// KeyLastUsed is when an API key was used last, in Unix milliseconds, where
	// that is not recorded yet.
	KeyLastUsed func(account uint64, keyID string) (ms int64)
	// CapturedChannels lists the channels whose messages the server keeps.
	CapturedChannels func(v *resolver.View) []string

	// Password is the cost of a password check. Each takes its memory; at most
	// PasswordChecks of strangers run at once and PasswordQueue wait. One more is for
	// people who are signed in or show a known device.
	Password       password.Params
	PasswordChecks int
	PasswordQueue  int
	// LoginThrottleEntries bounds the table of failed sign-ins.
	LoginThrottleEntries int
	// SessionTTL is how long a session lasts.
	SessionTTL time.Duration
	Metrics    *metrics.Set
}

// API lets people in: sessions, users, API keys and companies.
type API struct {
	opts   Options
	logins *loginThrottle
	// passwords are password computations for people who are signed in or show a known
	// device, UnauthenticatedPasswords those for all others: a flood of sign-ins leaves
	// room for the former.
	passwords, UnauthenticatedPasswords *handler.Semaphore
	// decoy is the hash that the password of an unknown e-mail is checked
	// against, so that the answer takes as long.
	decoy   string
	signIns [signInResults]*metrics.Counter
}

// New returns the calls about sessions, users, API keys, companies and the audit log.
func New(opts Options) (*API, error) {
	a := &API{
		opts:                     opts,
		logins:                   newLoginThrottle(opts.Now, opts.LoginThrottleEntries),
		passwords:                handler.NewSemaphore(1, opts.PasswordQueue, "too many passwords are being set"),
		UnauthenticatedPasswords: handler.NewSemaphore(opts.PasswordChecks, opts.PasswordQueue, "too many people are signing in"),
	}
	var err error
	if a.decoy, err = password.Decoy(opts.Rand, opts.Password); err != nil {
		return nil, err
	}
	for i, result := range [signInResults]string{"ok", "refused", "paused"} {
		a.signIns[i] = opts.Metrics.GetOrCreateCounter(fmt.Sprintf(`muster_console_sign_ins_total{result=%q}`, result))
	}
	opts.Metrics.GetOrCreateGauge("muster_console_sign_in_throttle_entries", func() float64 { return float64(a.logins.size()) })
	a.UnauthenticatedPasswords.Register(opts.Metrics, "password")
	a.passwords.Register(opts.Metrics, "password_known")
	return a, nil
}
