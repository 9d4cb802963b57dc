package profile

import "bytes"

// NoteConflict records a conflict once; it returns whether that was new. Of one with
// another profile the value does not matter, of one with none it is all there is to tell.
func (d *Document) NoteConflict(c Conflict) bool {
	for _, have := range d.Conflicts {
		if have.Kind == c.Kind && have.Reason == c.Reason && have.Other == c.Other && (c.Other != NoOrdinal || bytes.Equal(have.Value, c.Value)) {
			return false
		}
	}
	if len(d.Conflicts) >= MaxConflicts {
		d.Conflicts = append(d.Conflicts[:0], d.Conflicts[1:]...)
	}
	d.Conflicts = append(d.Conflicts, c)
	return true
}
