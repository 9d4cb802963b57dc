package flows

import "slices"

// SendsEmail reports whether the flow spends e-mail credits.
func (f *Flow) SendsEmail() bool {
	return slices.ContainsFunc(f.Steps, func(s Step) bool { return s.Email() != nil })
}

// AsksForCart reports whether a condition asks for an open cart.
func (f *Flow) AsksForCart() bool {
	return slices.ContainsFunc(f.Steps, func(s Step) bool { return s.Condition != nil && s.Condition.OpenCart })
}

// HasTemplateOptions reports whether a step sends a template of WhatsApp that has more than
// parameters in order and a header.
func (f *Flow) HasTemplateOptions() bool {
	return slices.ContainsFunc(f.Steps, func(s Step) bool {
		return slices.ContainsFunc(s.Messages, func(m Message) bool { return m.WhatsApp != nil && m.WhatsApp.Template.HasOptions() })
	})
}

// Conditions are the indexes of the steps that ask for a condition.
func (f *Flow) Conditions() (steps []int) {
	for i := range f.Steps {
		if c := f.Steps[i].Condition; c != nil && c.Root != nil {
			steps = append(steps, i)
		}
	}
	return steps
}

// UseCurrentFields gives fields in the conditions of a definition that was just sent the
// meaning that they have now: see [segment.Node.UseCurrentFields].
func (f *Flow) UseCurrentFields() {
	for _, i := range f.Conditions() {
		if c := f.Steps[i].Condition; c.Root.UseCurrentFields() {
			c.If = c.Root.Canonical()
		}
	}
}

// References are the ids a flow uses, of its trigger, conditions and steps, sorted.
type References struct{ Segments, Lists, Templates []string }

// References lists what the flow uses itself, not what segments in turn refer to.
func (f *Flow) References() (r References) {
	r.Segments = append(r.Segments, f.Trigger.SegmentID)
	r.Lists = append(r.Lists, f.Trigger.ListID)
	for i := range f.Steps {
		s := &f.Steps[i]
		if x := s.Email(); x != nil {
			r.Templates = append(r.Templates, x.TemplateID)
		}
		if s.Condition != nil && s.Condition.Root != nil {
			r.Segments = append(r.Segments, s.Condition.Root.SegmentIDs()...)
			r.Lists = append(r.Lists, s.Condition.Root.ListIDs()...)
		}
	}
	r.Segments, r.Lists, r.Templates = distinct(r.Segments), distinct(r.Lists), distinct(r.Templates)
	return r
}

func distinct(ids []string) []string {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" })
}
