package resolver

import (
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
	// IdentityAnonymous is an id that an SDK made up for a device: it identifies no
	// person.
	IdentityAnonymous = identifier.Anonymous
)

// IdentityKinds is the number of kinds.
const IdentityKinds = identifier.Kinds
