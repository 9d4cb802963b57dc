package jsonform

import (
	"slices"
	"strings"
)

// maxEdits is how many letters of a name may be wrong for it to be near another.
const maxEdits = 2

// Near is the name among known that a writer of name probably meant: the same
// letters in other case or with other separators, or else the one that differs least,
// by at most two letters and less than half of them. It is "" where there is none, or
// more than one.
func Near(name string, known []string) string {
	letters := plainLetters(name)
	best, edits, several := "", maxEdits+1, false
	for _, k := range known {
		n := 0
		if letters != plainLetters(k) {
			// Other separators and case are no mistakes of their own.
			n = max(1, distance(letters, plainLetters(k)))
		}
		if 2*n >= len(name) && n > 0 {
			continue
		}
		switch {
		case n < edits:
			best, edits, several = k, n, false
		case n == edits && n <= maxEdits:
			several = true
		}
	}
	if several {
		return ""
	}
	return best
}

var separators = strings.NewReplacer("_", "", "-", "", ".", "", " ", "")

func plainLetters(name string) string { return separators.Replace(strings.ToLower(name)) }

// distance is how many letters must be put in, left out, changed, or swapped with
// their neighbour to make b of a; more than maxEdits where the lengths say so.
func distance(a, b string) int {
	if d := len(a) - len(b); d > maxEdits || d < -maxEdits {
		return maxEdits + 1
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// UnknownError reports that there is no field at a path.
type UnknownError struct {
	Path string
	// Near is the path of the field that is probably meant, "" for none.
	Near string
	// Known are the paths of the fields that the object may have, sorted.
	Known []string
	// Instead says what to do in place of leaving the field out, "" for nothing.
	Instead string
}

// maxNamed is how many fields an error names.
const maxNamed = 16

// NoField is the error about the field name of an object at path that has the fields
// known.
func NoField(path, name string, known []string) *UnknownError {
	e := &UnknownError{Path: Join(path, name)}
	for _, k := range known {
		e.Known = append(e.Known, Join(path, k))
	}
	slices.Sort(e.Known)
	if near := Near(name, known); near != "" {
		e.Near = Join(path, near)
	}
	return e
}

func (e *UnknownError) Error() string {
	text := e.Path + " is not a field of this call"
	switch {
	case e.Instead != "":
		return text + ": " + e.Instead
	case e.Near != "":
		return text + ". Did you mean " + e.Near + "?"
	case len(e.Known) == 0 || len(e.Known) > maxNamed:
		return text + "; leave it out"
	}
	return text + "; leave it out, or use " + alternatives(e.Known)
}

// alternatives lists names as "a, b or c".
func alternatives(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
