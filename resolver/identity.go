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
	// IdentityAnonymous is what an SDK made up for a device: it identifies nobody.
	IdentityAnonymous = identifier.Anonymous
)

// IdentityKinds is the number of kinds.
const IdentityKinds = identifier.Kinds

// The bounds of anonymous ids, which are beside the identifiers that identifier_cap counts.
const (
	// maxAnonymousIDs is how many a profile shows. Under rules before [identrules.VersionCalls] those
	// beyond stay with a profile of their own; later the oldest make room.
	maxAnonymousIDs = 200
	// maxGivenUp is how many of those that made room are still known to be the person's
	// when the person is erased.
	maxGivenUp = 1000
	// maxMergedAnonymous is how many anonymous profiles can become part of one.
	maxMergedAnonymous = 1000
)
