package messaging

import (
	"context"

	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
)

// CaptureMailer keeps e-mails to look at instead of sending them: what the
// service does while no relay is configured.
type CaptureMailer struct{ Store *capture.Store }

// Send implements [Mailer].
func (c CaptureMailer) Send(_ context.Context, m *email.Message) outcome.Result {
	// A message that no relay would take is not captured either.
	if err := m.Validate(); err != nil {
		return email.Invalid(err)
	}
	x := capture.Message{
		ID: m.ID, Channel: "email", To: m.To.Addr, From: m.From.Addr, Subject: m.Subject, HTML: m.HTML, Text: m.Text,
		SendID: m.SendID, At: m.Date, Headers: map[string]string{},
	}
	for name, value := range map[string]string{"From-Name": m.From.Name, "To-Name": m.To.Name, "Reply-To": m.ReplyTo.Addr, "Feedback-ID": m.FeedbackID} {
		if value != "" {
			x.Headers[name] = value
		}
	}
	if m.Unsubscribe.URL != "" {
		x.Headers["List-Unsubscribe"] = "<" + m.Unsubscribe.URL + ">"
		x.Headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
	}
	if _, err := c.Store.Add(x); err != nil {
		return outcome.Failed(outcome.Temporary, "capture", err)
	}
	return outcome.New(outcome.Accepted, "captured", "")
}
