package resolver

import "github.com/musterhq/muster/resolver/internal/identifier"

// IdentityKind is a kind of identifier. Lower kinds rank higher: resolution asks
// e-mail, then external id, then phone.
type IdentityKind = identifier.Kind

// The kinds of identifiers, in order of rank. Numbers are on disk.
const (
	IdentityEmail      = identifier.Email
	IdentityExternalID = identifier.ExternalID
	IdentityPhone      = identifier.Phone
)
