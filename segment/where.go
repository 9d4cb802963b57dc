package segment

// ParseWhere reads filters on the properties of an event, as an activity's where
// has them, out of compacted JSON. They come back sorted and without repetition.
// The error is a *[DefinitionError] whose path begins with path.
func ParseWhere(path string, raw []byte, limits Limits) ([]Predicate, error) {
	d := &decoder{limits: limits.withDefaults()}
	return d.where(path, raw)
}

// AppendWhere appends the canonical JSON of filters.
func AppendWhere(dst []byte, where []Predicate) []byte {
	dst = append(dst, '[')
	for i := range where {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendFilter(dst, &where[i])
	}
	return append(dst, ']')
}
