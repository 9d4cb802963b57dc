package flows

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/segment"
)

// World is what a definition refers to.
type World interface {
	// Segment and List report whether there is one with the id.
	Segment(id string) bool
	List(id string) bool
	// Template is the subject of a template.
	Template(id string) (subject string, ok bool)
	// Sender says why an address cannot send, empty if it can: "must be …".
	Sender(address string) string
	// CheckCondition refuses definitions that refer to what is not there. A
	// *[segment.DefinitionError] keeps its path.
	CheckCondition(root *segment.Node) error
}

// Validate lists everything that keeps the flow from going live, in the order of
// the definition.
func (f *Flow) Validate(w World) Faults {
	v := &validator{f: f, w: w}
	if strings.TrimSpace(f.Name) == "" {
		v.fault("name", "is missing")
	}
	v.trigger()
	if len(f.Steps) == 0 {
		v.fault("steps", "must have at least one step")
	}
	reached, loops := f.reached(), f.loops()
	for i := range f.Steps {
		s := &f.Steps[i]
		v.step, v.path = s.ID, jsonform.Index("steps", i)
		if !reached[i] {
			v.fault(v.path, "cannot be reached from the first step; lead a step to it, or remove it")
		}
		if loop := loops[i]; loop != nil {
			v.fault(v.path, "begins a loop, which never ends: "+loop.through(f))
		}
		v.content(s)
		v.refs(s)
	}
	return v.faults
}

type validator struct {
	f      *Flow
	w      World
	faults Faults
	// step and path are where the check is, empty for the flow.
	step, path string
}

func (v *validator) fault(path, message string) {
	v.faults = append(v.faults, Fault{v.step, path, message})
}

// at is the path of a field of the step.
func (v *validator) at(field string) string { return jsonform.Join(v.path, field) }

// need finds fault with a field that is blank.
func (v *validator) need(field, value string) bool {
	if strings.TrimSpace(value) == "" {
		v.fault(v.at(field), "is missing")
		return false
	}
	return true
}

// tags checks the merge tags of a text; nil if they are wrong.
func (v *validator) tags(path, text string, mode merge.Mode) *merge.Template {
	t, err := merge.Parse(text, mode)
	if err != nil {
		v.fault(path, "cannot be filled in: "+err.Error())
		return nil
	}
	return t
}

func (v *validator) trigger() {
	t := &v.f.Trigger
	v.path = "trigger"
	switch t.Type {
	case "":
		v.fault("trigger", "is missing")
	case TriggerListJoined:
		if v.need("list_id", t.ListID) && !v.w.List(t.ListID) {
			v.fault(v.at("list_id"), fmt.Sprintf("must be the id of a list, there is no %q", t.ListID))
		}
	case TriggerSegmentEntered, TriggerSegmentExited:
		if v.need("segment_id", t.SegmentID) && !v.w.Segment(t.SegmentID) {
			v.fault(v.at("segment_id"), fmt.Sprintf("must be the id of a segment, there is no %q", t.SegmentID))
		}
	case TriggerEvent:
		if t.Event == nil || !v.need("event", t.Event.Event) {
			return
		}
		if name := t.Event.Event; !segment.ValidEventType(name) {
			if key, ok := segment.SnakeCase(name); ok {
				v.fault(v.at("event"), fmt.Sprintf("must be a snake_case key; did you mean %q?", key))
			} else {
				v.fault(v.at("event"), `must be a snake_case key, such as "item_purchased"`)
			}
		}
	case TriggerDate:
		if t.Date != nil && v.need("field", t.Date.Field) && t.Date.Field != segment.FieldCreatedAt && !free(t.Date.Field) {
			v.fault(v.at("field"), "must be created_at, or begin with attributes. or geo.")
		}
	}
}

// free reports whether a field is below attributes or geo, which hold anything.
func free(field string) bool {
	keys := strings.Split(field, ".")
	return len(keys) > 1 && len(keys) <= maxFieldKeys && !slices.Contains(keys, "") &&
		(keys[0] == segment.FieldAttributes || keys[0] == segment.FieldGeo)
}

// content checks what a step does.
func (v *validator) content(s *Step) {
	switch {
	case s.Type == StepOmnichannel:
		v.channels(s.Messages)
	case len(s.Messages) > 0:
		v.message(&s.Messages[0])
	case s.Wait != nil:
		switch x := s.Wait; {
		case x.Seconds == 0 && x.Until == nil:
			v.fault(v.path, "must have seconds or until")
		case x.Seconds != 0 && x.Until != nil:
			v.fault(v.at("until"), "must not be given together with seconds")
		}
	case s.Condition != nil:
		if s.Condition.Root == nil {
			v.fault(v.at("if"), "is missing")
		} else if err := v.w.CheckCondition(s.Condition.Root); err != nil {
			var e *segment.DefinitionError
			if errors.As(err, &e) {
				v.fault(jsonform.Below(v.at("if"), e.Path), e.Reason)
			} else {
				v.fault(v.at("if"), "cannot be asked: "+err.Error())
			}
		}
	case s.Split != nil:
		v.split(s.Split)
	case s.Tag != nil:
		v.tag(s.Tag)
	case s.Update != nil:
		v.update(s.Update)
	case s.Webhook != nil:
		v.webhook(s.Webhook)
	}
}

func (v *validator) split(s *Split) {
	path := v.at("branches")
	if len(s.Branches) < 2 {
		v.fault(path, "must have at least two branches")
	}
	for i, b := range s.Branches {
		if b.Weight <= 0 {
			v.fault(jsonform.Join(jsonform.Index(path, i), "weight"), "is missing")
		}
	}
}

func (v *validator) tag(t *Tag) {
	if len(t.Add)+len(t.Remove) == 0 {
		v.fault(v.path, "must have tags to add or remove")
	}
	for i, tag := range t.Add {
		path := jsonform.Index(v.at("add"), i)
		if slices.Contains(t.Remove, tag) {
			v.fault(path, "must not be removed by the same step")
		}
		if strings.Contains(tag, "{{") {
			v.fault(path, "must not have merge tags")
		}
	}
}

// refs finds fault with references to steps that are not there.
func (v *validator) refs(s *Step) {
	v.f.eachRef(v.path, s, func(path string, to int) {
		if to == End || to >= 0 && to < len(v.f.Steps) {
			return
		}
		if id := v.f.unknown[path]; id != "" {
			v.fault(path, fmt.Sprintf("must be the id of a step, there is no %q", id))
		} else {
			v.fault(path, "must be given: the id of a step, or null for the end")
		}
	})
}
