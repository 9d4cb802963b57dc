package evaluation

import (
	"fmt"
	"strings"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/catalog"
	"github.com/musterhq/muster/segment"
)

// maxWarnings bounds the warnings of a definition.
const maxWarnings = 20

// Warnings are what is probably a mistake in a definition, each with its place:
// types of events that there have never been, properties and attributes that none of
// those looked at have, and comparisons with values of a JSON type that none of them has.
// They are no errors, since the events may come yet.
func Warnings(v *resolver.View, root *segment.Node) []string {
	w := warner{view: v, list: []string{}}
	root.Walk(func(path string, n *segment.Node) {
		switch n.Kind {
		case segment.KindActivity:
			w.activity(path, n.Activity)
		case segment.KindAttribute:
			w.attribute(path, n.Attribute)
		}
	})
	return w.list
}

// warner collects the warnings of one definition.
type warner struct {
	view  *resolver.View
	types []string // all of the catalog, nil before they were asked for
	list  []string
}

// nearType ends a warning with the type of events that was probably meant.
func (w *warner) nearType(name string) string {
	if w.types == nil {
		w.types = w.view.EventTypes().Keys()
	}
	return didYouMean(name, w.types)
}

func (w *warner) add(path, format string, args ...any) {
	if len(w.list) < maxWarnings {
		w.list = append(w.list, path+": "+fmt.Sprintf(format, args...))
	}
}

// didYouMean ends a warning with the name that was probably meant.
func didYouMean(name string, known []string) string {
	if near := jsonform.Near(name, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

func (w *warner) activity(path string, a *segment.Activity) {
	if a.Event == segment.AnyEvent {
		return
	}
	if w.view.EventTypes().Get(a.Event) == nil {
		if !segment.OwnEvent(a.Event) && len(w.list) < maxWarnings {
			w.add(jsonform.Join(path, "event"), "there has never been an event of the type %s%s", a.Event, w.nearType(a.Event))
		}
		return
	}
	s := w.view.EventTypes().Properties(a.Event)
	if s == nil {
		return
	}
	looked := lookedAt{s, "property", fmt.Sprintf("%d events of the type %s that were looked at", s.Looked(), a.Event)}
	for i := range a.Where {
		// Filters are kept in an order of their own: the property says which it is.
		w.predicate(jsonform.Join(path, "where"), looked, &a.Where[i])
	}
	if g := a.Aggregate; g != nil {
		at := jsonform.Join(jsonform.Join(path, "aggregate"), "property")
		f := w.find(at, looked, g.Property)
		if f != nil && g.Fn != segment.FnDistinct && f.Kinds[catalog.Number] == 0 {
			w.add(at, "%s must be a number for %s, but is %s", strings.Join(g.Property, "."), g.Fn, looked.kinds(f))
		}
	}
}

func (w *warner) attribute(path string, a *segment.Attribute) {
	s := w.view.EventTypes().Attributes()
	if first := a.Predicate.Path[0]; s == nil || first != segment.FieldAttributes && first != segment.FieldGeo {
		return
	}
	looked := lookedAt{s, "attribute", fmt.Sprintf("%d changes of profiles that were looked at", s.Looked())}
	w.predicate(jsonform.Join(path, "field"), looked, &a.Predicate)
}

// lookedAt is a sketch with the words for what it has seen.
type lookedAt struct {
	*catalog.Sketch
	what string // property or attribute
	all  string // how many were looked at, and of what
}

// find finds a field. It warns and returns nil where there is none, and returns nil where
// that is not known.
func (w *warner) find(at string, s lookedAt, path []string) *catalog.Field {
	f, known := s.Find(path)
	if f == nil && known {
		var names []string
		for _, f := range s.Fields() {
			names = append(names, f.Path)
		}
		name := strings.Join(path, ".")
		w.add(at, "none of the %s has the %s %s%s", s.all, s.what, name, didYouMean(name, names))
	}
	return f
}

// predicate warns of a comparison of what was never there, or never of that JSON type.
func (w *warner) predicate(at string, s lookedAt, p *segment.Predicate) {
	f := w.find(at, s, p.Path)
	if f == nil {
		return
	}
	with, ok := "", false
	switch p.Op {
	case segment.OpExists, segment.OpNotExists:
		return
	case segment.OpBefore, segment.OpAfter, segment.OpInLastDays, segment.OpNotInLastDays:
		with, ok = "a time, which is a text", f.Compares(catalog.Text)
	default:
		for _, v := range p.Values {
			kind := valueKinds[v.Kind]
			ok = ok || f.Compares(kind)
			if name := withArticle(kind); !strings.Contains(with, name) {
				if with != "" {
					with += " and "
				}
				with += name
			}
		}
	}
	if !ok {
		w.add(at, "%s is compared with %s, but is %s", f.Path, with, s.kinds(f))
	}
}

var valueKinds = map[segment.ValueKind]catalog.Kind{segment.ValueString: catalog.Text, segment.ValueNumber: catalog.Number, segment.ValueBool: catalog.Boolean}

func withArticle(k catalog.Kind) string {
	if k == catalog.Object {
		return "an object"
	}
	return "a " + k.String()
}

// kinds says how often a field is of which JSON type, among those that have it.
func (s lookedAt) kinds(f *catalog.Field) string {
	var parts []string
	for _, k := range f.ByKind() {
		if k.Kind != catalog.Null {
			n := f.Kinds[k.Kind]
			parts = append(parts, fmt.Sprintf("%s in %s", withArticle(k.Kind), percent(n, f.Seen())))
		}
	}
	return fmt.Sprintf("%s of those that have it among the %s", strings.Join(parts, ", "), s.all)
}

// percent is a share in whole percents; one that is not all or nothing is neither 100 nor 0.
func percent(n, of uint64) string {
	p := (100*n + of/2) / of
	switch {
	case n == of:
		return "100 %"
	case p == 0:
		return "less than 1 %"
	}
	return fmt.Sprintf("%d %%", min(p, 99))
}
