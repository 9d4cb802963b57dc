package view

import (
	"github.com/musterhq/muster/resolver/erasure"
	"github.com/musterhq/muster/resolver/internal/identifier"
)

// Erasures is the account's marks and tasks of erased persons.
func (v *View) Erasures() *erasure.State { return v.a.Erasure }

// Erased reports whether an identifier is kept out because its person was erased.
func (v Profiles) Erased(kind identifier.Kind, value string) bool {
	var buf []byte
	h, ok := v.a.Profiles.Hasher.HashIdentifier(kind, []byte(value), &buf)
	return ok && v.a.Erasure.Erased(h)
}
