package settings

import (
	"io"

	"github.com/musterhq/muster/messaging/email"
)

// Options configure a [API]. All must be set but PublicURL.
type Options struct {
	Rand io.Reader
	// PublicURL is where people reach the service.
	PublicURL string
	// DNS looks up what sender domains publish.
	DNS email.Resolver
	// WriteKeyLastUsed is when a write key of a source was used last, in Unix
	// milliseconds, where that is not recorded yet.
	WriteKeyLastUsed func(account uint64, sourceID, keyID string) (ms int64)
}

// API answers the calls about settings, sender domains and sources.
type API struct{ opts Options }

// New returns the calls about settings, sender domains and sources.
func New(opts Options) *API { return &API{opts} }
