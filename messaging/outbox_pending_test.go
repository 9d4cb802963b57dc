package messaging_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver"
)

// TestPendingGetSingleMailsAlone: a contact who has not confirmed a subscription
// gets single e-mails, like people who were never asked, and nothing of a flow.
func TestPendingGetSingleMailsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	settings := resolver.DefaultSettings()
	settings.DoubleOptIn = true
	w.must(resolver.CommandSettingsSet, settings)
	template := w.template("<p>Your receipt</p>")
	flow := w.flow(`{"id":"mail","type":"email","subject":"Hi","body":"<p>Hi {{first_name}}</p>","next":null}`)
	var mu sync.Mutex
	var got []string
	w.effects(messaging.MailerFunc(func(m *email.Message) outcome.Result {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, m.Subject)
		return outcome.New(outcome.Accepted, "250", "ok")
	}), nil)
	w.contact("ada@x.io", "")
	w.until("she is asked to confirm", func(v *resolver.View) bool { return empty(v) && count(v, "email_sent") == 1 })
	w.trigger(flow, "ada@x.io", `{}`)
	w.send("ada@x.io", template)
	w.until("the single e-mail is sent", func(v *resolver.View) bool {
		f, _ := v.Flows().Find(flow)
		return empty(v) && count(v, "email_sent") == 2 && f.Counts.Completed == 1
	})
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 2 || !slices.Contains(got, "Hello") || slices.Contains(got, "Hi") {
		t.Errorf("sent %q", got)
	}
}
