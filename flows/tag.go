package flows

// Apply is the tags of a profile after the step: those in Remove are gone, those
// in Add that are not there yet come last, and none is there twice. Nothing is
// added beyond [MaxTags]; tags that the profile has stay, however many. tags is not
// changed.
func (t *Tag) Apply(tags []string) []string {
	out := make([]string, 0, len(tags)+len(t.Add))
	passed := make(map[string]bool, len(tags)+len(t.Add)+len(t.Remove))
	for _, tag := range t.Remove {
		passed[tag] = true
	}
	for _, tag := range tags {
		if !passed[tag] {
			passed[tag] = true
			out = append(out, tag)
		}
	}
	for _, tag := range t.Remove {
		passed[tag] = false // what is in both is added
	}
	for _, tag := range t.Add {
		if len(out) < MaxTags && !passed[tag] {
			passed[tag] = true
			out = append(out, tag)
		}
	}
	return out
}
