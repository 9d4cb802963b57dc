// Package signup carries out submissions of signup forms: it finds or makes the profile that a
// submission concerns, holds what must be confirmed, and makes part of the profile what may
// take effect.
//
// It stands between the machine and features that do not know each other: package forms has
// the forms, their figures and the submissions that are held, contacts have lists and
// consents, sending queues the message that asks to confirm, and the profiles are those of
// package resolution. What it needs beside these it asks of a [Host]. Its own state is among
// the idempotency keys, where the key of a submission keeps a repeat from counting.
package signup

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/forms"
	"github.com/musterhq/muster/resolver/internal/dedup"
	"github.com/musterhq/muster/resolver/internal/feature"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
	"github.com/musterhq/muster/resolver/internal/resolution"
	"github.com/musterhq/muster/resolver/sending"
	"github.com/musterhq/muster/segment/engine"
)

// Host is what submissions need of the rest of an account. Its methods belong to the record
// that is being applied.
type Host interface {
	// Redacted reports whether identifiers of the record may be masked.
	Redacted() bool
	// KeysFromMs is the log time after which idempotency keys count.
	KeysFromMs() int64
	// DoubleOptIn is the account's setting: everybody confirms their e-mail.
	DoubleOptIn() bool
	// IdentifierCap is the account's setting: how many identifiers a profile can have.
	IdentifierCap() int

	// Profile finds the profile that an id stands for, and reads its document. Load reads
	// that of an ordinal.
	Profile(id string) (ordinal uint32, d *profile.Document, r *refuse.Refusal)
	Load(ordinal uint32) *profile.Document
	// MakeProfile makes the profile of identifiers that no profile has.
	MakeProfile(of eventlog.Event) (ordinal uint32, r *refuse.Refusal)
	// Update stores a document that was changed, says which fields have changed, and
	// records events on the profile.
	Update(ordinal uint32, d *profile.Document, changed engine.Fields, events ...feature.Event)
	// NotifyContact queues the webhook event that a contact was made or changed.
	NotifyContact(ordinal uint32, event string)
}

// Parts are the features of the account that submissions concern.
type Parts struct {
	Profiles *resolution.State
	Forms    *forms.State
	Contacts *contacts.State
	Sending  *sending.State
	Erasure  *erasure.State
	Keys     *dedup.Keys // of all accounts
}

// State is the signing up of an account's people.
type State struct {
	host     Host
	profiles *resolution.State
	forms    *forms.State
	contacts *contacts.State
	sending  *sending.State
	erasure  *erasure.State
	keys     *dedup.Keys

	normal []byte // scratch
}

// New returns the signing up of an account, whose parts are given.
func New(p Parts, host Host) *State {
	return &State{host: host, profiles: p.Profiles, forms: p.Forms, contacts: p.Contacts, sending: p.Sending, erasure: p.Erasure, keys: p.Keys}
}

// Commands are submissions and their confirmations.
var Commands = map[string]feature.Command[*State]{
	forms.CommandSubmit:  feature.Do((*State).submit),
	forms.CommandConfirm: feature.Do((*State).confirm),
}
