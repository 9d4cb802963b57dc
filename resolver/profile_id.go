package resolver

import "github.com/musterhq/muster/resolver/internal/profile"

// ProfileID names a profile for good: a merged profile's id stays valid as an
// alias of the winner's.
type ProfileID = profile.ID

// ParseProfileID reads an id as clients send it; ok is false when it is none.
func ParseProfileID(s string) (id ProfileID, ok bool) { return profile.ParseID(s) }
