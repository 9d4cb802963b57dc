package profile

import (
	"bytes"
	"slices"
)

// NoteConflict records a conflict once; it returns whether that was new. Of one with
// another profile the value matters for a claim alone, of one with none it is all there is to
// tell.
func (d *Document) NoteConflict(c Conflict) bool {
	for _, have := range d.Conflicts {
		if have.Kind == c.Kind && have.Reason == c.Reason && have.Other == c.Other && (c.Other != NoOrdinal && c.Reason != ConflictClaimed || bytes.Equal(have.Value, c.Value)) {
			return false
		}
	}
	if len(d.Conflicts) >= MaxConflicts {
		// What keeps people apart must not be pushed out by what anybody can bring about.
		oldest := max(0, slices.IndexFunc(d.Conflicts, func(have Conflict) bool { return have.Reason != ConflictClaimed }))
		d.Conflicts = slices.Delete(d.Conflicts, oldest, oldest+1)
	}
	d.Conflicts = append(d.Conflicts, c)
	return true
}
