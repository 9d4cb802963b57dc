package resolver

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/outbox"
)

const mailFlow = `{"name":"Hello","trigger":{"type":"event","event":"signed_up"},"steps":[
	{"id":"mail","type":"email","subject":"Hello","body":"<p>Hello</p>","next":null}]}`

// TestFlowsMailSubscribersOnly: in a new account a flow's e-mail goes to people who
// subscribed, and not to those whom events made.
func TestFlowsMailSubscribersOnly(t *testing.T) {
	t.Parallel()
	r := newRecorder(t, DefaultSettings())
	flow := r.flow(mailFlow)
	r.must(contacts.CommandCreate, contacts.Create{Email: "subscribed@x.io"})
	sign := func(email string) ProfileID {
		return r.events(eventlog.Event{Type: []byte("signed_up"), Email: []byte(email)}).Events[0].Profile
	}
	for i := range 6 {
		r.expectEnrolment(flow, sign(fmt.Sprintf("visitor%d@x.io", i)), "#1 mail:skipped_not_subscribed completed")
	}
	r.expectEnrolment(flow, sign("subscribed@x.io"), "#1 mail:queued completed")
	if mails := r.due(outbox.KindEmail); len(mails) != 1 {
		t.Errorf("%d e-mails are queued, want 1", len(mails))
	}
}

// TestAccountsKeepTheirOptIn: the record that makes an account carries its settings, so an
// account of before require_opt_in was on by default keeps it off.
func TestAccountsKeepTheirOptIn(t *testing.T) {
	t.Parallel()
	settings := map[string]any{}
	if err := json.Unmarshal(must.JSON(DefaultSettings()), &settings); err != nil {
		t.Fatal(err)
	}
	for _, is := range []any{false, nil} {
		if settings["require_opt_in"] = is; is == nil {
			delete(settings, "require_opt_in") // as before the setting existed
		}
		boot := map[string]any{}
		if err := json.Unmarshal(must.JSON(testBootstrap(DefaultSettings())), &boot); err != nil {
			t.Fatal(err)
		}
		boot["settings"] = settings
		r := &recorder{t: t, m: testMachine(t), now: 1_000_000_000_000}
		r.command(CommandBootstrap, boot)
		if r.m.accounts[testAccount].Settings.RequireOptIn {
			t.Errorf("require_opt_in is on in an account made with %v", is)
		}
		flow := r.flow(mailFlow)
		p := r.events(eventlog.Event{Type: []byte("signed_up"), Email: []byte("a@x.io")}).Events[0].Profile
		r.expectEnrolment(flow, p, "#1 mail:queued completed")
	}
}
