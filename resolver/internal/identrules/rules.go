// Package identrules has the rules by which the identifiers of records lead to profiles.
// Rules are never changed: a record goes by those of when it was made.
package identrules

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// Event is the rules that an event was made under.
type Event struct {
	Version uint8 // eventlog.EventRules of its body
	Live    bool  // it was sent when it happened or soon after, and not imported
}

// Identifiers are the rules for the event's identifiers.
func (r Event) Identifiers() Identifiers {
	return Identifiers{Drop: r.Version >= 1, DropErased: r.Version >= 1, NoteSecond: r.Version >= 1, NoteEarlier: r.Version >= 1, KeepAddress: r.Version >= 4, KeepMerged: r.Version >= 5, Calls: r.Version >= VersionCalls, Yields: r.Version >= VersionYield}
}

// JudgedByAge reports whether an event with a time of its own is judged by its age.
func (r Event) JudgedByAge() bool { return r.Live && r.Version >= 1 }

// Sent reports whether an event counts as sent whatever its type. Earlier ones count as
// the service's own where their type is one of its own.
func (r Event) Sent() bool { return r.Version >= 3 }

// Read reports whether features read events of types that say something to them, such as orders.
func (r Event) Read() bool { return r.Version >= VersionOrders }

// Identifiers say how a record's identifiers lead to a profile. Records of
// different kinds and ages have different ones.
type Identifiers struct {
	// Optional: there may be none, and any text is an e-mail. A contact may be made so.
	Optional bool
	// Drop: what is no identifier is left out beside one that is. Else it is a refusal.
	Drop bool
	// DropErased: an identifier of an erased person is left out beside one that ranks
	// higher and says who the record is of. Else it is a refusal.
	DropErased bool
	// NoteSecond: a conflict is noted where a lower-ranked identifier attaches a second
	// value of a kind.
	NoteSecond bool
	// NoteEarlier: an event from before its profile was made is noted as the instant
	// when the person was first seen.
	NoteEarlier bool
	// KeepAddress: the newest e-mail or phone of a profile that is subscribed to a channel
	// that goes there stays the newest, since the consent is of that address. A word of the
	// operator changes it.
	KeepAddress bool
	// KeepMerged: likewise when profiles become one, and only the one merged is subscribed.
	KeepMerged bool
	// FirstOnly: the highest-ranked identifier alone says which profile the record is
	// of. No profiles merge, and the others stay with the profiles that they identify.
	FirstOnly bool
	// Calls: the rules for what SDKs send that came with version 7. What a browser's key
	// attaches is a claim; a profile gives up its oldest anonymous ids, and
	// those of erased persons are free.
	Calls bool
	// Yields: claims yield to what servers say, and where one has kept an identifier from a
	// person, its profile is merged with no other by what else is known.
	Yields bool
}

// VersionCalls is the version of the rules for events from which on [Identifiers.Calls]
// holds, and browsers' keys have a share of the event types.
const VersionCalls = 7

// VersionYield is that of [Identifiers.Yields].
const VersionYield = 8

// VersionOrders is that of [Event.Orders].
const VersionOrders = 9

// The names of contacts.CommandCreate and contacts.CommandListAdd in logs from before version
// 8 of the rules. Their phone and external id lead to a profile as those of an event do, and
// merge. They stand here because the rules depend on them, and this package knows no feature.
const (
	CommandContactCreate1 = "contact.create"
	CommandListAdd1       = "list.add"
)

// OfContact are the rules for the identifiers of a command that makes a contact.
func OfContact(command string) Identifiers {
	now := command != CommandContactCreate1 && command != CommandListAdd1
	return Identifiers{Optional: true, FirstOnly: now, DropErased: now}
}

// Of are the identifiers of an event, by kind.
func Of(ev *eventlog.Event) [identifier.Kinds][]byte {
	return [identifier.Kinds][]byte{ev.Email, ev.ExternalID, ev.Phone, ev.AnonymousID}
}

// KeyHash is the hash of an event's idempotency key, in its namespace.
func KeyHash(h identifier.Hasher, ev *eventlog.Event, buf *[]byte) identifier.Hash {
	if ev.MessageID {
		return h.HashMessageID(ev.IdempotencyKey, buf)
	}
	return h.HashIdempotencyKey(ev.IdempotencyKey, buf)
}
