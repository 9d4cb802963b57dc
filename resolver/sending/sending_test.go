package sending

import (
	"testing"

	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment/engine"
)

// named is a host of which only the command's name is asked.
type named struct {
	Host
	command string
}

func (n named) Command() string { return n.command }

// TestEventsHaveTheDomain: events of e-mails have the domain of the recipient's newest
// address in lower case, unless the command is of a log in which they had none.
func TestEventsHaveTheDomain(t *testing.T) {
	address := func(values ...string) *profile.Document {
		d := new(profile.Document)
		for _, v := range values {
			d.Identifiers = append(d.Identifiers, profile.Identifier{Value: []byte(v)})
		}
		return d
	}
	for _, c := range []struct {
		command, channel string
		d                *profile.Document
		want             any
	}{
		{messages.CommandOutboxDone, "email", address("a@old.example", "a@Shop.Example "), "shop.example"},
		{messages.CommandOutboxDone1, "email", address("a@shop.example"), nil},
		{messages.CommandEngagement1, "email", address("a@shop.example"), nil},
		{messages.CommandEngagement, "sms", address("a@shop.example"), nil},
		{messages.CommandEngagement, "email", address("nobody@"), nil},
		{messages.CommandEngagement, "email", address(), nil},
	} {
		p := feature.Properties{}
		(&State{host: named{command: c.command}}).NoteDomain(p, c.channel, c.d)
		if p[messages.PropertyDomain] != c.want {
			t.Errorf("%s of %s: %v, expected %v", c.command, c.channel, p[messages.PropertyDomain], c.want)
		}
	}
}

// TestResultsAreNoted: a sent message counts, a bounce blocks the channel once, and a failure
// changes nothing of the profile.
func TestResultsAreNoted(t *testing.T) {
	tx := &feature.Tx{AtMs: 7}
	var d profile.Document
	for _, c := range []struct {
		result, event string
		fields        engine.Fields
	}{
		{outbox.ResultSent, "email_sent", engine.FieldEngagement},
		{outbox.ResultFailed, "email_failed", 0},
		{outbox.ResultBounced, "email_bounced", engine.FieldConsents},
		{outbox.ResultBounced, "email_bounced", 0},
	} {
		event := feature.Event{Properties: feature.Properties{}}
		if fields := new(State).NoteResult(tx, &d, &event, "email", c.result, "why"); fields != c.fields || event.Type != c.event {
			t.Errorf("%s: %s, fields %b", c.result, event.Type, fields)
		}
	}
	if d.Engaged.Sent != 1 || d.Engaged.LastSentMs != 7 || d.GravestSuppression(profile.ChannelEmail) != profile.SuppressionBounced {
		t.Errorf("%+v", d)
	}
}
