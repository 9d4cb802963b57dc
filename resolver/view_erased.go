package resolver

// Erased reports whether an identifier is kept out because its person was erased.
func (v *View) Erased(kind IdentityKind, value string) bool {
	var buf []byte
	h, ok := v.a.hasher.HashIdentifier(kind, []byte(value), &buf)
	return ok && v.a.erased(h)
}

// ErasureMarks is how many marks the account keeps of identifiers of erased people. It
// changes with every erasure.
func (v *View) ErasureMarks() int { return len(v.a.erasures) + len(v.a.lifted) }
