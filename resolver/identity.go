package resolver

import (
	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// IdentityKind is a kind of identifier. Lower kinds rank higher: resolution asks
// e-mail, then external id, then phone, then anonymous id.
type IdentityKind = identifier.Kind

// The kinds of identifiers, in order of rank. Numbers are on disk.
const (
	IdentityEmail      = identifier.Email
	IdentityExternalID = identifier.ExternalID
	IdentityPhone      = identifier.Phone
	// IdentityAnonymous is what an SDK made up for a device: it identifies nobody.
	IdentityAnonymous = identifier.Anonymous
)

// IdentityKinds is the number of kinds.
const IdentityKinds = identifier.Kinds

// maxAnonymousIDs is how many anonymous ids a profile can have, beside the identifiers that
// identifier_cap counts. Those beyond stay with a profile of their own: none is dropped,
// because an erasure must find all that were the person's.
const maxAnonymousIDs = 200

// identifiersOf are the identifiers of an event, by kind.
func identifiersOf(ev *eventlog.Event) [identifier.Kinds][]byte {
	return [identifier.Kinds][]byte{ev.Email, ev.ExternalID, ev.Phone, ev.AnonymousID}
}
