package profiles

import (
	"time"

	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/query"
)

// Options configure an [API]. All but PublicURL must be set.
type Options struct {
	History query.History
	// Chain has the instant of calls.
	Chain      *handler.Chain
	Evaluation *evaluation.Evaluator
	Now        func() time.Time
	// AllowPrivate permits push services on private addresses.
	AllowPrivate bool
	// PublicURL is where people reach the service.
	PublicURL string
}

// API answers the calls about profiles, their devices, lists and erasures.
type API struct{ opts Options }

// New returns the calls about profiles, their devices, lists and erasures.
func New(opts Options) *API { return &API{opts} }
