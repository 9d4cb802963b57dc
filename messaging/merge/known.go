package merge

import (
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/jsonform"
)

// Known says which tags a text may have.
type Known struct {
	// Names are whole tags, such as first_name.
	Names []string
	// Groups begin tags of any further name, such as attributes of attributes.plan.
	Groups []string
	// Other reports whether any other path may have a value; nil: none may.
	Other func(path []string) bool
}

// Profile returns the tags that stand for what is known of a profile, and the names
// given.
func Profile(names ...string) *Known {
	return &Known{
		Names:  append([]string{"first_name", "last_name", "email", "phone", "external_id", "profile_id"}, names...),
		Groups: []string{"geo", "attributes"},
	}
}

// Has reports whether a path may have a value.
func (k *Known) Has(path []string) bool {
	switch {
	case len(path) == 1 && slices.Contains(k.Names, path[0]), len(path) > 1 && slices.Contains(k.Groups, path[0]):
		return true
	}
	return k.Other != nil && k.Other(path)
}

// Near returns the tag that is probably meant by a path, "" for none.
func (k *Known) Near(path []string) string {
	if len(path) > 1 {
		if near := jsonform.Near(path[0], k.Groups); near != "" && near != path[0] {
			return near + "." + strings.Join(path[1:], ".")
		}
	}
	if near := jsonform.Near(strings.Join(path, "."), k.Names); near != "" {
		return near
	}
	return ""
}

// UnknownTagError reports that a text has a tag that never has a value.
type UnknownTagError struct {
	Tag string // its path, joined by dots
	// Near is the tag that is probably meant, "" for none.
	Near string
	// Known are the tags that there are.
	Known string
}

// Error says what to write instead.
func (e *UnknownTagError) Error() string {
	s := "{{" + e.Tag + "}} is not a merge tag of this text"
	if e.Near != "" {
		return s + ". Did you mean {{" + e.Near + "}}?"
	}
	return s + "; write " + e.Known + `, or give it a default: {{` + e.Tag + ` | default: "…"}}`
}

// Check finds the first tag that is not known and has no default, an
// *[UnknownTagError].
func (t *Template) Check(k *Known) error {
	for i := range t.parts {
		p := &t.parts[i]
		if p.path == nil || p.defaulted || k.Has(p.path) {
			continue
		}
		e := &UnknownTagError{Tag: strings.Join(p.path, "."), Near: k.Near(p.path), Known: strings.Join(k.Names, ", ")}
		for _, g := range k.Groups {
			e.Known += ", " + g + ".…"
		}
		return e
	}
	return nil
}
