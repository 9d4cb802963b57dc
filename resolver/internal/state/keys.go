package state

import (
	"encoding/binary"

	"github.com/musterhq/muster/resolver/internal/identifier"
)

// The first byte of a key in the store names its table. Bytes are on disk:
// never reuse one.
const (
	TableIdentity = 'I' // account, hash → ordinal
	TableHeader   = 'H' // account, page → page of headers
	TableDocument = 'D' // account, ordinal → document
	TableEntity   = 'E' // account, kind, name → entity
	TablePayload  = 'P' // account, number → payload of an outbox item
	TableText     = 'T' // account, kind, id → text
	// account, number of a flow, ordinal → what is known of the profile in the flow
	TableEnrolment    = 'F'
	TableProfileIndex = 'N' // account, field, text, ordinal, see profile_index.go
	TableEmail        = 'M' // account 0: the directory of contacts' e-mails, see emailKey
	TableOrigin       = 0   // one entry, of no account: which log and offset the store is of
)

// Kinds of entities, the byte behind the account in an entity's key. An
// account's own is read first, so none is smaller.
const (
	EntityAccount     = 'a'
	EntityUser        = 'u'
	EntitySession     = 's'
	EntityAPIKey      = 'k'
	EntitySegment     = 'g'
	EntityType        = 't'
	EntityImport      = 'i'
	EntityTask        = 'q'
	EntityList        = 'l'
	EntitySet         = 'b' // a piece of an profile.OrdinalSet
	EntityReservation = 'r' // hash of an e-mail among all accounts
	EntityCaseFold    = 'z' // hashes of an e-mail's folded form and of the e-mail
	EntityErased      = 'e' // a mark that keeps an identifier out, or what history has yet to erase
	EntityTemplate    = 'm'
	EntityDomain      = 'd'
	EntityCampaign    = 'c'
	EntityRun         = 'x' // of a campaign
	EntityCredential  = 'v' // group and name
	EntityOutbox      = 'o' // item of the outbox by number; without a name the newest number
	EntityEndpoint    = 'w' // of webhooks; without a name what their day began with
	EntityDead        = 'p' // dead letter: endpoint and number
	EntityDelivery    = 'n' // line of the log of deliveries: endpoint and number of the item
	EntityFlow        = 'f'
	EntityFlowCounts  = 'h'
	EntityWaiting     = 'j' // pending enrolments in flows, by number
	EntitySketch      = '~' // of the properties of an event type, or of profiles' attributes
	EntityChange      = '|' // entry of the audit log, by number
	EntitySource      = '}' // of the tracking API, with its write keys

	EntityConversation = '{' // when a text last came by WhatsApp: by the hash of the number; under older rules by ordinal

	EntityForm     = 0x90 // signup form
	EntityFormDay  = 0x91 // what happened at a form on a day: form and date; without a date all days
	EntityFormHeld = 0x92 // submissions of a profile that wait to be confirmed, by ordinal

	EntityRevenueDay    = 0x98 // figures of orders on a day: date and currency; without a date all days
	EntityRevenueSource = 0x99 // figures of orders that belong to a campaign or a step of a flow
	EntityInApp         = 0x9a // settings of in-app messages
)

// AccountKey begins each key of an account in a table.
func AccountKey(dst []byte, table byte, account uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, table), account)
}

// IdentityKey is where the owner of an identifier is.
func IdentityKey(dst []byte, account uint64, h identifier.Hash) []byte {
	return append(AccountKey(dst, TableIdentity, account), h[:]...)
}

// PageKey is where a page of headers is.
func PageKey(dst []byte, account uint64, page uint32) []byte {
	return binary.BigEndian.AppendUint32(AccountKey(dst, TableHeader, account), page)
}

// DocumentKey is where a document is.
func DocumentKey(dst []byte, account uint64, ordinal uint32) []byte {
	return binary.BigEndian.AppendUint32(AccountKey(dst, TableDocument, account), ordinal)
}

// EnrolmentKey is where the enrolments of a profile in a flow are, by the flow's number.
func EnrolmentKey(account uint64, flow, ordinal uint32) string {
	k := AccountKey(make([]byte, 0, KeyHead+8), TableEnrolment, account)
	return string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(k, flow), ordinal))
}

// WaitingKey is where a deferred enrolment is, by its number.
func WaitingKey(account, seq uint64) string {
	return EntityKey(account, EntityWaiting, string(binary.BigEndian.AppendUint64(nil, seq)))
}

// EntityKey is where an entity is.
func EntityKey(account uint64, kind byte, name string) string {
	k := AccountKey(make([]byte, 0, 10+len(name)), TableEntity, account)
	return string(append(append(k, kind), name...))
}

// TextKey is where a text is.
func TextKey(account uint64, kind byte, id string) string {
	k := AccountKey(make([]byte, 0, 10+len(id)), TableText, account)
	return string(append(append(k, kind), id...))
}

// KeyHead is how long AccountKey is.
const KeyHead = 1 + 8 // table and account
