package segment

// DefinitionError says what is wrong with a definition, and where.
type DefinitionError struct {
	// Path is the JSON path of the fault from the definition's root, such as
	// conditions[1].window.last_days; empty for the root itself.
	Path string
	// Reason continues a sentence that begins with the path: "must be …".
	Reason string
}

// Error is the sentence for the user.
func (e *DefinitionError) Error() string {
	if e.Path == "" {
		return "definition " + e.Reason
	}
	return e.Path + " " + e.Reason
}
