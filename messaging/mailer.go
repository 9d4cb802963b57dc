package messaging

import (
	"context"

	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
)

// Mailer hands e-mails over: an SMTP relay, or the capture of development. It
// is safe for concurrent use.
type Mailer interface {
	// Send hands over one message. A repeat of the same message carries the same
	// Message-ID.
	Send(ctx context.Context, m *email.Message) outcome.Result
}

// MailerFunc makes a function a [Mailer].
type MailerFunc func(m *email.Message) outcome.Result

// Send implements [Mailer].
func (f MailerFunc) Send(_ context.Context, m *email.Message) outcome.Result { return f(m) }
