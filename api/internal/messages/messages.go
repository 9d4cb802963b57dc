package messages

import (
	"io"
	"time"
)

// Options configure a [API]. Captured may be nil; all others must be set.
type Options struct {
	Now  func() time.Time
	Rand io.Reader
	// Captured are the messages that development senders kept; nil for none.
	Captured Captured
	// CapturesEmail reports that e-mails are captured too, because there is no relay.
	CapturesEmail bool
	// AllowPrivate permits webhooks to private addresses.
	AllowPrivate bool
}

// API answers the calls about campaigns, templates, captured messages and webhooks.
type API struct{ opts Options }

// New returns the calls about campaigns, templates, captured messages and webhooks.
func New(opts Options) *API { return &API{opts} }
