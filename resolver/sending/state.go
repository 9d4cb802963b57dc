// Package sending queues single messages, and records what becomes of messages: it says who
// may be sent to, spends credits, keeps repeats of a key from being sent twice, and writes
// outcomes and reports to profiles as counts, suppressions and events.
//
// It stands between the machine and features that do not know each other: the outbox has
// the items, campaigns have the templates, domains the senders, and the profiles are those of
// package resolution. What it needs beside these it asks of a [Host]. Its own state is among
// the idempotency keys, where a key of a sent message leads to its answer.
package sending

import (
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/orders"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/segment/engine"
)

// Host is what sending needs of the rest of an account. Its methods belong to the record
// that is being applied.
type Host interface {
	// Command is the name of the record's command: under older names some rules differ.
	Command() string
	// KeysFromMs is the log time after which idempotency keys count.
	KeysFromMs() int64
	// ConfirmTemplate is the template that asks to confirm a subscription, "" for none.
	ConfirmTemplate() string
	// NextCampaign is behind the numbers of all campaigns that were ever made.
	NextCampaign() uint32

	// EmailCredits are those left. SpendCredits takes n of them, or none and returns false.
	// GiveBack returns credits of messages of a medium that did not go out.
	EmailCredits() int64
	SpendCredits(n int64) bool
	GiveBack(medium string, n uint64)

	// Profile finds the profile that an id stands for, and reads its document. ErasedProfile
	// refuses what concerns an erased one, and notes that the record does.
	Profile(id string) (ordinal uint32, d *profile.Document, r *refuse.Refusal)
	ErasedProfile() *refuse.Refusal
	// MakeProfile makes the profile of an e-mail that no profile has.
	MakeProfile(email string) (ordinal uint32, r *refuse.Refusal)
	// Update stores a document that was changed, says which fields have changed, and
	// records events on the profile.
	Update(ordinal uint32, d *profile.Document, changed engine.Fields, events ...feature.Event)

	// CheckOutcome refuses outcomes of an older epoch, but that something was sent.
	CheckOutcome(epoch uint64, result string) *refuse.Refusal
	// NoteOutcome notes that the record is the outcome of a message to a profile, which may
	// be erased. The ordinal need not be one.
	NoteOutcome(ordinal uint32)
	// DropDevices takes devices off the profile in d, by their addresses, whose push service
	// says that they are dead. It returns the events to record.
	DropDevices(ordinal uint32, d *profile.Document, dead []string) []feature.Event
	// Touched notes a click or an open of a message of a source by a profile, see
	// [orders.State.Touch].
	Touched(ordinal uint32, kind string, source orders.Source)
	// NextChannel has the flow of a message that did not reach its profile try the
	// next channel.
	NextChannel(message *outbox.Item, payload []byte)
	// MessageFailed tells the flow of a message that failed and may have gone out.
	MessageFailed(message *outbox.Item)
	// Uncount takes a message back, of those that count for the account's limits.
	Uncount(message *outbox.Item)
	// Deliver puts an in-app message into the inbox of a profile; card is a card.Card as JSON.
	Deliver(message *outbox.Item, ordinal uint32, card []byte)
	// Answer gives the flow of a call its outcome.
	Answer(call *outbox.Item, delivered bool, reason string)
}

// State is the sending of an account.
type State struct {
	account   uint64
	host      Host
	profiles  *resolution.State
	outbox    *outbox.State
	campaigns *campaigns.State
	domains   *domains.State
	keys      *dedup.Keys // of all accounts

	normal []byte // scratch
}

// New returns the sending of an account, whose parts are given.
func New(account uint64, profiles *resolution.State, box *outbox.State, templates *campaigns.State, senders *domains.State, keys *dedup.Keys, host Host) *State {
	return &State{account: account, host: host, profiles: profiles, outbox: box, campaigns: templates, domains: senders, keys: keys}
}

// Commands are the commands that send messages and report on them.
var Commands = map[string]feature.Command[*State]{
	messages.CommandEmailSend:   feature.Do((*State).sendEmail),
	messages.CommandEmailSend1:  feature.Do((*State).sendEmail),
	messages.CommandEmailSend2:  feature.Do((*State).sendEmail),
	messages.CommandOutboxDone:  feature.Do((*State).doneOutbox),
	messages.CommandOutboxDone1: feature.Do((*State).doneOutbox),
	messages.CommandEngagement:  feature.Do((*State).recordEngagement),
	messages.CommandEngagement1: feature.Do((*State).recordEngagement),
	messages.CommandTextAnswer:  feature.Do((*State).answerText),
}
