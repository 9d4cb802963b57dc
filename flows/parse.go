package flows

import (
	"time"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/localtime"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/internal/zones"
	"github.com/musterhq/muster/segment"
)

// Parse reads a definition from JSON. It is strict: unknown fields, repeated keys
// or ids, wrong types and everything beyond the limits are refused. What a draft
// may lack is no fault here but one of [Flow.Validate]: a name, a trigger, steps,
// what steps do, and the steps that others refer to. null is as good as a field
// that is not given, but for the branches of a condition, where it is the end, and
// the values of update_contact, where it removes.
//
// The error is a *[segment.DefinitionError] for the first fault found.
func Parse(data []byte) (*Flow, error) {
	if len(data) > MaxBytes {
		return nil, jsonform.Faultf("", "must have at most %d bytes, it has %d; save long e-mails as templates", MaxBytes, len(data))
	}
	text, err := jsonform.Compact(data)
	if err != nil {
		return nil, err
	}
	r := &reader{ids: map[string]int{}}
	f := r.flow(text)
	if r.err != nil {
		return nil, r.err
	}
	// A condition may be longer in canonical form, which must be accepted, too.
	if n := len(f.JSON()); n > MaxBytes {
		return nil, jsonform.Faultf("", "must have at most %d bytes, written out it has %d; save long e-mails as templates", MaxBytes, n)
	}
	return f, nil
}

// reader walks the compacted text of one definition. After the first fault its
// methods return zero values.
type reader struct {
	ids     map[string]int    // of steps
	unknown map[string]string // see Flow.unknown
	err     error
}

func (r *reader) refuse(path, reason string, args ...any) {
	if r.err == nil {
		r.err = jsonform.Faultf(path, reason, args...)
	}
}

// object reads an object; after a fault it is empty.
func (r *reader) object(path string, raw []byte) *jsonform.Object {
	if r.err == nil {
		o, err := jsonform.ReadObject(path, raw)
		if err == nil {
			return o
		}
		r.err = err
	}
	return &jsonform.Object{Path: path}
}

func (r *reader) only(o *jsonform.Object, what string, names ...string) {
	if r.err == nil {
		r.err = o.Only(what, names...)
	}
}

// text reads an optional string.
func (r *reader) text(o *jsonform.Object, name string, max int) (s string) {
	if raw := o.Given(name); raw != nil && r.err == nil {
		s, r.err = jsonform.Text(o.At(name), raw, max)
	}
	return s
}

// integer reads an optional whole number.
func (r *reader) integer(o *jsonform.Object, name string, low, high, otherwise int64) int64 {
	n := otherwise
	if raw := o.Given(name); raw != nil && r.err == nil {
		n, r.err = jsonform.Integer(o.At(name), raw, low, high)
	}
	return n
}

// boolean reads an optional true or false, false if it is not given.
func (r *reader) boolean(o *jsonform.Object, name string) (yes bool) {
	if o.Given(name) != nil && r.err == nil {
		yes, r.err = o.Bool(name, false)
	}
	return yes
}

// elements reads an optional array.
func (r *reader) elements(o *jsonform.Object, name, what string, max int) [][]byte {
	raw := o.Given(name)
	if raw == nil || r.err != nil {
		return nil
	}
	parts, err := jsonform.Elements(o.At(name), raw, max)
	if r.err = err; err == nil && len(parts) > max {
		r.refuse(o.At(name), "must have at most %d %s", max, what)
		return nil
	}
	return parts
}

// word reads an optional field that is one of the words, the first if it is not
// given.
func word[T ~string](r *reader, o *jsonform.Object, name string, words ...T) T {
	if o.Given(name) == nil || r.err != nil {
		return words[0]
	}
	w, err := jsonform.OneOf(o, name, words)
	r.err = err
	return w
}

func (r *reader) flow(raw []byte) *Flow {
	o := r.object("", raw)
	r.only(o, "a flow", "name", "trigger", "reentry", "steps")
	f := &Flow{
		Name:    r.text(o, "name", maxNameBytes),
		Reentry: word(r, o, "reentry", Once, AfterExit),
	}
	if raw := o.Given("trigger"); raw != nil {
		f.Trigger = r.trigger(o.At("trigger"), raw)
	}
	var steps []*jsonform.Object
	for i, part := range r.elements(o, "steps", "steps", MaxSteps) {
		s := r.object(jsonform.Index(o.At("steps"), i), part)
		r.id(s, i)
		steps = append(steps, s)
	}
	for _, s := range steps {
		if r.err == nil {
			f.Steps = append(f.Steps, r.step(s))
		}
	}
	f.unknown = r.unknown
	return f
}

// id notes the id of a step, so that others can refer to it.
func (r *reader) id(o *jsonform.Object, i int) {
	if r.err != nil {
		return
	}
	id, err := o.NeedText("id", maxIDBytes)
	if err != nil {
		r.err = err
		return
	}
	if !validID(id) {
		r.refuse(o.At("id"), "must have letters a to z, digits, _ and - only")
		return
	}
	if first, ok := r.ids[id]; ok {
		r.refuse(o.At("id"), "must differ from that of steps[%d]", first)
		return
	}
	r.ids[id] = i
}

func validID(id string) bool {
	for i := 0; i < len(id); i++ {
		c := id[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return false
		}
	}
	return true
}

// ref reads an optional reference to a step.
func (r *reader) ref(o *jsonform.Object, name string) int {
	raw := o.Given(name)
	if raw == nil || r.err != nil {
		return End
	}
	id, err := jsonform.Text(o.At(name), raw, maxIDBytes)
	if err != nil {
		r.err = err
		return End
	}
	if id == "" {
		r.refuse(o.At(name), "must be the id of a step, or null for the end")
		return End
	}
	if i, ok := r.ids[id]; ok {
		return i
	}
	if r.unknown == nil {
		r.unknown = map[string]string{}
	}
	r.unknown[o.At(name)] = id
	return Unknown
}

var triggerTypes = []string{TriggerListJoined, TriggerEvent, TriggerDate, TriggerSegmentEntered, TriggerSegmentExited, TriggerAPI}

func (r *reader) trigger(path string, raw []byte) (t Trigger) {
	o := r.object(path, raw)
	if r.err != nil {
		return t
	}
	if t.Type, r.err = jsonform.OneOf(o, "type", triggerTypes); r.err != nil {
		return t
	}
	what := "a trigger of the type " + t.Type
	switch t.Type {
	case TriggerListJoined:
		r.only(o, what, "type", "list_id")
		t.ListID = r.text(o, "list_id", maxRefBytes)
	case TriggerSegmentEntered, TriggerSegmentExited:
		r.only(o, what, "type", "segment_id")
		t.SegmentID = r.text(o, "segment_id", maxRefBytes)
	case TriggerEvent:
		r.only(o, what, "type", "event", "where")
		t.Event = &EventTrigger{Event: r.text(o, "event", maxEventBytes)}
		if raw := o.Given("where"); raw != nil && r.err == nil {
			t.Event.Where, r.err = segment.ParseWhere(o.At("where"), raw, segment.Limits{})
		}
	case TriggerDate:
		r.only(o, what, "type", "field", "offset_days", "at", "repeat", "timezone")
		t.Date = &DateTrigger{
			Field:      r.text(o, "field", maxFieldBytes),
			OffsetDays: int(r.integer(o, "offset_days", -maxOffsetDays, maxOffsetDays, 0)),
			AtMinutes:  r.minutes(o, "at"),
			Yearly:     word(r, o, "repeat", repeatOnce, repeatYearly) == repeatYearly,
		}
		t.Date.Zone = r.zone(o)
	case TriggerAPI:
		r.only(o, what, "type")
	}
	return t
}

// minutes reads an optional time of the day, otherwise midnight.
func (r *reader) minutes(o *jsonform.Object, name string) int {
	s := r.text(o, name, maxTimeBytes)
	if s == "" {
		return 0
	}
	seconds, ok := localtime.Clock(s)
	if !ok || len(s) != len("HH:MM") {
		r.refuse(o.At(name), `must be a time of the day from "00:00" to "23:59"`)
	}
	return seconds / 60
}

// zone reads an optional time zone, otherwise UTC.
func (r *reader) zone(o *jsonform.Object) *time.Location {
	name := r.text(o, "timezone", maxZoneBytes)
	if name == "" {
		name = "UTC"
	}
	z, ok := zones.Load(name)
	if !ok {
		r.refuse(o.At("timezone"), `must be the name of a time zone of the IANA database, such as "Europe/Berlin"`)
	}
	return z
}

// isContainer reports whether a value is an object or array.
func isContainer(raw []byte) bool {
	k := rawjson.KindOf(raw)
	return k == rawjson.Object || k == rawjson.Array
}
