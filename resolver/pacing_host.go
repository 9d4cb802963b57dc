package resolver

import (
	"github.com/musterhq/muster/resolver/internal/account"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/pacing"
)

// mayGo asks the account's limits about a message, see [pacing.State.Ask]. Campaigns, flows and
// whatever else sends ask here, and nowhere else.
func (m *Machine) mayGo(a *account.State, ordinal uint32, channel string, id pacing.MessageID) (untilMs int64, reason string) {
	if !a.Pacing.Limited() {
		return 0, ""
	}
	d := &m.tx.other
	if err := a.Profiles.Load(ordinal, d); err != nil {
		panic(err) // the store is at fault; the record is named
	}
	x, err := a.Pacing.Ask(m.logTime, ordinal, d, channel, id)
	if err != nil {
		panic(err) // likewise
	}
	return x.UntilMs, x.Reason
}

// countMessage counts a message that was claimed.
func (m *Machine) countMessage(a *account.State, ordinal uint32, channel string, id pacing.MessageID) {
	if err := a.Pacing.Count(m.logTime, ordinal, channel, id); err != nil {
		panic(err) // the store is at fault; the record is named
	}
}

// messageOf is the message of an item of the outbox.
func messageOf(it *outbox.Item) pacing.MessageID {
	return pacing.OfItem(it.Queued, it.Nth)
}

// uncountMessage takes a message back that was claimed and has not gone out.
func uncountMessage(a *account.State, ordinal uint32, id pacing.MessageID) {
	if err := a.Pacing.Uncount(ordinal, id); err != nil {
		panic(err) // the store is at fault; the record is named
	}
}
