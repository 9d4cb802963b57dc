package automation

import (
	"time"

	"github.com/musterhq/muster/api/internal/evaluation"
)

// Options configure an [API]. All but PublicURL must be set.
type Options struct {
	Evaluation *evaluation.Evaluator
	// AllowPrivate permits webhooks to private addresses.
	AllowPrivate bool
	// PublicURL is where people reach the service.
	PublicURL string
	// ReadTimeout bounds a read of the state and a command.
	ReadTimeout time.Duration
	// PublishWait is how long publishing a flow waits for it to go live; it continues after
	// that.
	PublishWait time.Duration
}

// API answers the calls about flows.
type API struct{ opts Options }

// New returns the calls about flows.
func New(opts Options) *API { return &API{opts} }
