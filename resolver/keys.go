package resolver

import (
	"encoding/binary"

	"github.com/musterhq/muster/resolver/internal/identifier"
)

// The first byte of a key in the store names its table. Bytes are on disk:
// never reuse one.
const (
	tableIdentity = 'I' // account, hash → ordinal
	tableHeader   = 'H' // account, page → page of headers
	tableDocument = 'D' // account, ordinal → document
	tableEntity   = 'E' // account, kind, name → entity
	tablePayload  = 'P' // account, number → payload of an outbox item
	tableText     = 'T' // account, kind, id → text
	// account, number of a flow, ordinal → what is known of the profile in the flow
	tableEnrolment    = 'F'
	tableProfileIndex = 'N' // account, field, text, ordinal, see profile_index.go
	tableEmail        = 'M' // account 0: the directory of contacts' e-mails, see emailKey
	tableOrigin       = 0   // one entry, of no account: which log and offset the store is of
)

// Kinds of entities, the byte behind the account in an entity's key. An
// account's own is read first, so none is smaller.
const (
	entityAccount     = 'a'
	entityUser        = 'u'
	entitySession     = 's'
	entityAPIKey      = 'k'
	entitySegment     = 'g'
	entityType        = 't'
	entityImport      = 'i'
	entityTask        = 'q'
	entityList        = 'l'
	entitySet         = 'b' // a piece of an profile.OrdinalSet
	entityReservation = 'r' // hash of an e-mail among all accounts
	entityAlike       = 'z' // hashes of an e-mail's folded form and of the e-mail
	entityErased      = 'e' // a mark that keeps an identifier out, or what history has yet to erase
	entityTemplate    = 'm'
	entityDomain      = 'd'
	entityCampaign    = 'c'
	entityRun         = 'x' // of a campaign
	entityContent     = 'y' // what a campaign was last sent with, under rules before version 5
	entityCredential  = 'v' // group and name
	entityOutbox      = 'o' // item of the outbox by number; without a name the newest number
	entityEndpoint    = 'w' // of webhooks; without a name what their day began with
	entityDead        = 'p' // dead letter: endpoint and number
	entityDelivery    = 'n' // line of the log of deliveries: endpoint and number of the item
	entityFlow        = 'f'
	entityFlowCounts  = 'h'
	entityWaiting     = 'j' // who is to be enrolled in flows, by number
	entitySketch      = '~' // of the properties of an event type, or of profiles' attributes
	entityChange      = '|' // entry of the audit log, by number
)

func accountKey(dst []byte, table byte, account uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, table), account)
}

func identityKey(dst []byte, account uint64, h identifier.Hash) []byte {
	return append(accountKey(dst, tableIdentity, account), h[:]...)
}

func pageKey(dst []byte, account uint64, page uint32) []byte {
	return binary.BigEndian.AppendUint32(accountKey(dst, tableHeader, account), page)
}

func documentKey(dst []byte, account uint64, ordinal uint32) []byte {
	return binary.BigEndian.AppendUint32(accountKey(dst, tableDocument, account), ordinal)
}

func entityKey(account uint64, kind byte, name string) string {
	k := accountKey(make([]byte, 0, 10+len(name)), tableEntity, account)
	return string(append(append(k, kind), name...))
}

const keyHead = 1 + 8 // table and account
