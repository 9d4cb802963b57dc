package flows

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/localtime"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/messaging/whatsapp"
	"github.com/musterhq/muster/segment"
)

// JSON is the definition in one fixed form, minified: what has a default is
// written out, what is empty is left out. [Parse] gives an equal flow back.
func (f *Flow) JSON() []byte {
	w := &writer{unknown: f.unknown}
	w.open('{')
	w.text("name", f.Name)
	w.raw("trigger", f.Trigger.json())
	w.text("reentry", string(orElse(f.Reentry, Once)))
	w.key("steps")
	w.open('[')
	for i := range f.Steps {
		w.element()
		w.step(jsonform.Index("steps", i), &f.Steps[i], f.Steps)
	}
	w.close(']')
	w.close('}')
	return w.b
}

func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// writer appends JSON; it knows when a comma is due.
type writer struct {
	b       []byte
	unknown map[string]string
}

func (w *writer) open(c byte) { w.b = append(w.b, c) }

func (w *writer) close(c byte) { w.b = append(w.b, c) }

func (w *writer) element() {
	if n := len(w.b); n > 0 && w.b[n-1] != '{' && w.b[n-1] != '[' {
		w.b = append(w.b, ',')
	}
}

func (w *writer) key(name string) {
	w.element()
	w.b = append(rawjson.AppendString(w.b, name), ':')
}

func (w *writer) raw(name string, value []byte) {
	w.key(name)
	w.b = append(w.b, value...)
}

func (w *writer) text(name, value string) {
	w.key(name)
	w.b = rawjson.AppendString(w.b, value)
}

// given is text for what may be empty.
func (w *writer) given(name, value string) {
	if value != "" {
		w.text(name, value)
	}
}

// yes writes true, and nothing for false.
func (w *writer) yes(name string, value bool) {
	if value {
		w.raw(name, []byte("true"))
	}
}

func (w *writer) integer(name string, n int64) {
	w.key(name)
	w.b = strconv.AppendInt(w.b, n, 10)
}

func (w *writer) texts(name string, values []string) {
	if len(values) == 0 {
		return
	}
	w.key(name)
	w.open('[')
	for _, v := range values {
		w.element()
		w.b = rawjson.AppendString(w.b, v)
	}
	w.close(']')
}

// ref writes a reference to a step, which stands at path.
func (w *writer) ref(path, name string, to int, steps []Step) {
	switch {
	case to >= 0 && to < len(steps):
		w.text(name, steps[to].ID)
	case to == End:
		w.raw(name, []byte("null"))
	default:
		// Nothing for a branch that is not given.
		w.given(name, w.unknown[jsonform.Join(path, name)])
	}
}

func (t *Trigger) json() []byte {
	if t.Type == "" {
		return []byte("null")
	}
	w := &writer{}
	w.open('{')
	w.text("type", t.Type)
	w.given("list_id", t.ListID)
	w.given("segment_id", t.SegmentID)
	if e := t.Event; e != nil {
		w.given("event", e.Event)
		if len(e.Where) > 0 {
			w.raw("where", segment.AppendWhere(nil, e.Where))
		}
	}
	if d := t.Date; d != nil {
		w.given("field", d.Field)
		w.integer("offset_days", int64(d.OffsetDays))
		w.text("at", fmt.Sprintf("%02d:%02d", d.AtMinutes/60, d.AtMinutes%60))
		w.text("repeat", choose(d.Yearly, repeatYearly, repeatOnce))
		w.text("timezone", localtime.OrUTC(d.Zone).String())
	}
	w.close('}')
	return w.b
}

func choose(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// step writes the step at path.
func (w *writer) step(path string, s *Step, steps []Step) {
	w.open('{')
	w.text("id", s.ID)
	w.text("type", s.Type)
	switch {
	case s.Type == StepOmnichannel:
		w.key("channels")
		w.open('[')
		for i := range s.Messages {
			w.element()
			w.open('{')
			w.text("channel", s.Messages[i].Channel)
			w.message(&s.Messages[i])
			w.close('}')
		}
		w.close(']')
	case len(s.Messages) > 0:
		w.message(&s.Messages[0])
	case s.Wait != nil:
		w.wait(s.Wait)
	case s.Condition != nil:
		if s.Condition.Root != nil {
			w.raw("if", s.Condition.If)
		}
		w.yes("open_cart", s.Condition.OpenCart)
		w.ref(path, "yes", s.Condition.Yes, steps)
		w.ref(path, "no", s.Condition.No, steps)
	case s.Split != nil:
		w.split(jsonform.Join(path, "branches"), s.Split, steps)
	case s.Tag != nil:
		w.texts("add", s.Tag.Add)
		w.texts("remove", s.Tag.Remove)
	case s.Update != nil:
		w.key("set")
		w.open('{')
		for _, a := range s.Update.Set {
			w.raw(a.Field, a.Value)
		}
		w.close('}')
	case s.Webhook != nil:
		w.webhook(s.Webhook)
	}
	if s.hasNext() {
		w.ref(path, "next", s.Next, steps)
	}
	w.close('}')
}

// message writes what is sent on a channel.
func (w *writer) message(m *Message) {
	switch {
	case m.Email != nil:
		x := m.Email
		w.given("template_id", x.TemplateID)
		w.given("subject", x.Subject)
		w.given("body", x.Body)
		w.given("text", x.Text)
		w.given("sender", x.Sender)
		w.given("sender_name", x.SenderName)
		w.given("reply_to", x.ReplyTo)
	case m.SMS != nil:
		w.given("text", m.SMS.Text)
		w.yes("track_links", m.SMS.TrackLinks)
	case m.WhatsApp != nil:
		x := m.WhatsApp
		w.given("text", x.Text)
		w.template(&x.Template)
		w.yes("track_links", x.TrackLinks)
	case m.Push != nil:
		x := m.Push
		w.given("title", x.Title)
		w.given("body", x.Body)
		w.given("link", x.Link)
		w.given("image", x.Image)
		if x.TTLSeconds != 0 {
			w.integer("ttl_seconds", x.TTLSeconds)
		}
		w.given("collapse", x.Collapse)
		w.yes("track_links", x.TrackLinks)
	case m.InApp != nil:
		x := m.InApp
		w.given("title", x.Title)
		w.given("body", x.Body)
		w.given("link", x.Link)
		w.given("image", x.Image)
		w.given("display", x.Display)
		if x.Priority != 0 {
			w.integer("priority", int64(x.Priority))
		}
		if x.TTLHours != 0 {
			w.integer("ttl_hours", int64(x.TTLHours))
		}
	}
	w.yes(ignoresLimits, m.IgnoresLimits)
}

// template writes a template of WhatsApp.
func (w *writer) template(t *whatsapp.Template) {
	w.given("template", t.Name)
	w.given("language", t.Language)
	w.texts("parameters", t.Parameters)
	w.given("header", t.Header)
	if len(t.Named) > 0 {
		w.key("named_parameters")
		w.open('{')
		for _, name := range t.Names() {
			w.text(name, t.Named[name])
		}
		w.close('}')
	}
	w.given("header_type", t.HeaderType)
	w.given("header_name", t.HeaderName)
	w.given("header_filename", t.HeaderFilename)
	if l := t.Location; l != nil {
		w.key("header_location")
		w.open('{')
		w.given("latitude", l.Latitude)
		w.given("longitude", l.Longitude)
		w.given("name", l.Name)
		w.given("address", l.Address)
		w.close('}')
	}
	if len(t.Buttons) == 0 {
		return
	}
	w.key("buttons")
	w.open('[')
	for _, b := range t.Buttons {
		w.element()
		w.open('{')
		w.text("type", b.Type)
		w.integer("index", int64(b.Index))
		w.text("value", b.Value)
		w.close('}')
	}
	w.close(']')
}

func (w *writer) wait(x *Wait) {
	if x.Seconds != 0 {
		w.integer("seconds", x.Seconds)
	}
	if x.Until != nil {
		w.text("until", x.Until.String())
		if !x.Until.absolute() {
			w.text("timezone", localtime.OrUTC(x.Until.Zone).String())
		}
	}
}

func (w *writer) split(path string, s *Split, steps []Step) {
	w.key("branches")
	w.open('[')
	for i, b := range s.Branches {
		w.element()
		w.open('{')
		if b.Weight != 0 {
			w.integer("weight", int64(b.Weight))
		}
		w.ref(jsonform.Index(path, i), "next", b.Next, steps)
		w.close('}')
	}
	w.close(']')
}

func (w *writer) webhook(x *Webhook) {
	w.given("url", x.URL)
	w.text("method", orElse(x.Method, methods[0]))
	if len(x.Headers) > 0 {
		w.key("headers")
		w.open('{')
		for _, h := range x.Headers {
			w.text(h.Name, h.Value)
		}
		w.close('}')
	}
	if x.isJSON {
		w.raw("body", []byte(x.Body))
	} else {
		w.given("body", x.Body)
	}
	w.integer("timeout_seconds", int64(orElse(x.TimeoutSeconds, defaultTimeoutSeconds)))
	w.integer("attempts", int64(orElse(x.Attempts, defaultAttempts)))
	w.text("on_failure", choose(x.ExitOnFailure, onExit, onContinue))
}

// hasNext reports whether the step has a next one, and does not lead elsewhere or nowhere.
func (s *Step) hasNext() bool {
	return !slices.Contains([]string{StepCondition, StepSplit, StepExit}, s.Type)
}
