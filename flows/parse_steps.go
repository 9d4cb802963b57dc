package flows

import (
	"errors"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/messaging/whatsapp"
	"github.com/musterhq/muster/segment"
)

// The words of choices; the first is the default.
const (
	repeatOnce   = "once"
	repeatYearly = "yearly"
	onContinue   = "continue"
	onExit       = "exit"
)

var stepTypes = []string{
	StepEmail, StepSMS, StepWhatsApp, StepPush, StepInApp, StepIM, StepOmnichannel, StepWait, StepCondition, StepSplit, StepTag, StepUpdate, StepWebhook, StepExit,
}

// step reads a step, but for its id, which is known.
func (r *reader) step(o *jsonform.Object) (s Step) {
	s.ID = r.text(o, "id", maxIDBytes)
	if s.Type, r.err = jsonform.OneOf(o, "type", stepTypes); r.err != nil {
		return s
	}
	fields := func(names ...string) {
		r.only(o, "a step of the type "+s.Type, append([]string{"id", "type", "next"}, names...)...)
	}
	switch s.Type {
	case StepEmail, StepSMS, StepWhatsApp, StepPush, StepInApp, StepIM:
		fields(messageFields[s.Type]...)
		s.Messages = []Message{r.message(o, s.Type)}
	case StepOmnichannel:
		fields("channels")
		s.Messages = r.messages(o)
	case StepWait:
		fields("seconds", "until", "timezone")
		s.Wait = r.wait(o)
	case StepCondition:
		fields("if", "open_cart", "yes", "no")
		s.Condition = r.condition(o)
		r.noNext(o, "a condition continues to yes or no")
	case StepSplit:
		fields("branches")
		s.Split = r.split(o)
		r.noNext(o, "each branch of a split has its own")
	case StepTag:
		fields("add", "remove")
		s.Tag = &Tag{Add: r.tags(o, "add"), Remove: r.tags(o, "remove")}
	case StepUpdate:
		fields("set")
		s.Update = r.update(o)
	case StepWebhook:
		fields("url", "method", "headers", "body", "timeout_seconds", "attempts", "on_failure")
		s.Webhook = r.webhook(o)
	case StepExit:
		fields()
		r.noNext(o, "nothing follows an exit")
	}
	s.Next = r.ref(o, "next")
	return s
}

// template reads a template of WhatsApp and the values of its placeholders.
func (r *reader) template(o *jsonform.Object) whatsapp.Template {
	t := whatsapp.Template{Name: r.text(o, "template", maxTemplateName), Language: r.text(o, "language", maxLanguageBytes)}
	for i, raw := range r.elements(o, "parameters", "texts", whatsapp.MaxParameters) {
		s, err := jsonform.Text(jsonform.Index(o.At("parameters"), i), raw, whatsapp.MaxValueBytes)
		if err != nil && r.err == nil {
			r.err = err
		}
		t.Parameters = append(t.Parameters, s)
	}
	t.Named = r.named(o)
	t.Header, t.HeaderType, t.HeaderName = r.text(o, "header", whatsapp.MaxValueBytes), r.text(o, "header_type", maxHeaderType), r.text(o, "header_name", whatsapp.MaxNameBytes)
	t.HeaderFilename = r.text(o, "header_filename", whatsapp.MaxFilenameBytes)
	t.Location = r.location(o)
	for i, raw := range r.elements(o, "buttons", "buttons", whatsapp.MaxButtons) {
		b := r.object(jsonform.Index(o.At("buttons"), i), raw)
		r.only(b, "a button", "type", "index", "value")
		t.Buttons = append(t.Buttons, whatsapp.Button{Type: r.text(b, "type", maxButtonType), Index: int(r.integer(b, "index", 0, whatsapp.MaxButtons-1, 0)), Value: r.text(b, "value", whatsapp.MaxValueBytes)})
	}
	return t
}

// location reads the place that a header shows; one without values is none.
func (r *reader) location(o *jsonform.Object) *whatsapp.Location {
	raw := o.Given("header_location")
	if raw == nil || r.err != nil {
		return nil
	}
	x := r.object(o.At("header_location"), raw)
	if r.err != nil {
		return nil
	}
	r.only(x, "a location", "latitude", "longitude", "name", "address")
	l := whatsapp.Location{Latitude: r.text(x, "latitude", whatsapp.MaxValueBytes), Longitude: r.text(x, "longitude", whatsapp.MaxValueBytes), Name: r.text(x, "name", whatsapp.MaxValueBytes), Address: r.text(x, "address", whatsapp.MaxValueBytes)}
	if l == (whatsapp.Location{}) {
		return nil
	}
	return &l
}

// named reads the values of placeholders with names.
func (r *reader) named(o *jsonform.Object) map[string]string {
	raw := o.Given("named_parameters")
	if raw == nil || r.err != nil {
		return nil
	}
	x := r.object(o.At("named_parameters"), raw)
	if x.Len() == 0 {
		return nil
	}
	if x.Len() > whatsapp.MaxParameters {
		r.refuse(x.Path, "must have at most %d texts", whatsapp.MaxParameters)
	}
	out := map[string]string{}
	_ = x.Each(func(name string, raw []byte) error {
		if len(name) > whatsapp.MaxNameBytes {
			r.refuse(x.Path, "must have names of at most %d bytes", whatsapp.MaxNameBytes)
		}
		if r.err == nil {
			out[name], r.err = jsonform.Text(x.At(name), raw, whatsapp.MaxValueBytes)
		}
		return r.err
	})
	return out
}

func (r *reader) noNext(o *jsonform.Object, why string) {
	if o.Given("next") != nil {
		r.refuse(o.At("next"), "must not be given: %s", why)
	}
}

func (r *reader) email(o *jsonform.Object) *Email {
	x := &Email{
		TemplateID: r.text(o, "template_id", maxRefBytes),
		Subject:    r.text(o, "subject", maxSubjectBytes),
		Body:       r.text(o, "body", maxMailBytes),
		Text:       r.text(o, "text", maxMailBytes),
		Sender:     r.text(o, "sender", maxAddressBytes),
		SenderName: r.text(o, "sender_name", maxSubjectBytes),
		ReplyTo:    r.text(o, "reply_to", maxAddressBytes),
	}
	// As they are written into the outbox.
	if n := len(rawjson.AppendString(rawjson.AppendString(nil, x.Body), x.Text)); n > maxMailBytes {
		r.refuse(o.At("body"), "must have at most %d bytes as JSON, together with text, they have %d; save them as a template", maxMailBytes, n)
	}
	return x
}

func (r *reader) wait(o *jsonform.Object) *Wait {
	w := &Wait{Seconds: r.integer(o, "seconds", 1, maxSeconds, 0)}
	zone := r.zone(o)
	text := r.text(o, "until", maxTimeBytes)
	if text == "" {
		return w
	}
	var ok bool
	if w.Until, ok = parseUntil(text, zone); !ok {
		r.refuse(o.At("until"), `must be the time of a day ("09:00"), a local time ("2030-01-31T09:00"), `+
			`or an instant ("2030-01-31T09:00:00Z"), of the years 1970 to 9999`)
	}
	return w
}

func (r *reader) condition(o *jsonform.Object) *Condition {
	c := &Condition{OpenCart: r.boolean(o, "open_cart"), Yes: Unknown, No: Unknown}
	if raw := o.Given("if"); raw != nil && r.err == nil {
		root, err := segment.Parse(raw, segment.Limits{})
		if err != nil {
			r.err = below(o.At("if"), err)
			return c
		}
		// It is read again from its canonical form, which may be longer.
		c.Root, c.If = root, root.Canonical()
		if most := 256 << 10; len(c.If) > most {
			r.refuse(o.At("if"), "must have at most %d bytes, written out it has %d; refer to segments instead", most, len(c.If))
		}
	}
	if o.Get("yes") != nil {
		c.Yes = r.ref(o, "yes")
	}
	if o.Get("no") != nil {
		c.No = r.ref(o, "no")
	}
	return c
}

// below puts a path in front of a fault's.
func below(path string, err error) error {
	var e *segment.DefinitionError
	if errors.As(err, &e) {
		return &segment.DefinitionError{Path: jsonform.Below(path, e.Path), Reason: e.Reason}
	}
	return err
}

func (r *reader) split(o *jsonform.Object) *Split {
	s := &Split{}
	for i, part := range r.elements(o, "branches", "branches", maxBranches) {
		b := r.object(jsonform.Index(o.At("branches"), i), part)
		r.only(b, "a branch", "weight", "next")
		s.Branches = append(s.Branches, Branch{
			Weight: int(r.integer(b, "weight", 1, maxWeight, 0)),
			Next:   r.ref(b, "next"),
		})
	}
	return s
}

func (r *reader) tags(o *jsonform.Object, name string) (tags []string) {
	for i, raw := range r.elements(o, name, "tags", maxTagsGiven) {
		path := jsonform.Index(o.At(name), i)
		tag, err := jsonform.Text(path, raw, maxTagBytes)
		switch {
		case r.err != nil:
		case err != nil:
			r.err = err
		case strings.TrimSpace(tag) == "":
			r.refuse(path, "must not be empty")
		}
		tags = append(tags, tag)
	}
	return tags
}

func (r *reader) update(o *jsonform.Object) *Update {
	u := &Update{}
	raw := o.Given("set")
	if raw == nil {
		return u
	}
	set := r.object(o.At("set"), raw)
	if set.Len() > maxAssignments {
		r.refuse(set.Path, "must have at most %d fields", maxAssignments)
	}
	scan := jsonscan.New(maxValueDepth, maxValueBytes)
	_ = set.Each(func(field string, raw []byte) error {
		path := set.At(field)
		if len(field) > maxFieldBytes {
			r.refuse(path, "must have a name of at most %d bytes", maxFieldBytes)
		}
		if r.err != nil {
			return r.err
		}
		scan.Reset(raw)
		value, _ := scan.Value(0, 0)
		if value == nil {
			r.refuse(path, "%s", valueFault(scan))
			return r.err
		}
		u.Set = append(u.Set, Assignment{field, append([]byte(nil), value...)})
		scan.DropText()
		return nil
	})
	return u
}

func valueFault(s *jsonscan.Scanner) string {
	if !s.HasFault() {
		return "must be valid JSON"
	}
	switch s.Fault().Kind {
	case jsonscan.FaultDuplicate:
		return "must not have a key twice in one object"
	case jsonscan.FaultDepth:
		return "must not be nested deeper than " + strconv.Itoa(maxValueDepth) + " levels"
	case jsonscan.FaultRange:
		return "must have numbers that fit 64-bit floating point"
	case jsonscan.FaultSurrogate:
		return "must be valid Unicode, without half surrogate pairs"
	case jsonscan.FaultNUL:
		return "must not contain the NUL character"
	}
	return "must have at most " + strconv.Itoa(maxValueBytes) + " bytes"
}

var methods = []string{"POST", "PUT", "PATCH", "GET", "DELETE"}

func (r *reader) webhook(o *jsonform.Object) *Webhook {
	w := &Webhook{
		URL:            r.text(o, "url", maxURLBytes),
		Method:         word(r, o, "method", methods...),
		TimeoutSeconds: int(r.integer(o, "timeout_seconds", 1, maxTimeoutSeconds, defaultTimeoutSeconds)),
		Attempts:       int(r.integer(o, "attempts", 1, maxAttempts, defaultAttempts)),
		ExitOnFailure:  word(r, o, "on_failure", onContinue, onExit) == onExit,
	}
	if raw := o.Given("headers"); raw != nil {
		headers := r.object(o.At("headers"), raw)
		if headers.Len() > maxHeaders {
			r.refuse(headers.Path, "must have at most %d headers", maxHeaders)
		}
		_ = headers.Each(func(name string, raw []byte) error {
			if len(name) > maxHeaderName {
				r.refuse(headers.At(name), "must have a name of at most %d bytes", maxHeaderName)
			}
			if r.err == nil {
				var value string
				value, r.err = jsonform.Text(headers.At(name), raw, maxHeaderValue)
				w.Headers = append(w.Headers, Header{name, value})
			}
			return r.err
		})
	}
	switch raw := o.Given("body"); {
	case raw == nil || r.err != nil:
	case isContainer(raw):
		if len(raw) > maxCallBody {
			r.refuse(o.At("body"), "must have at most %d bytes, it has %d", maxCallBody, len(raw))
		}
		w.Body, w.isJSON = string(raw), true
	case rawjson.KindOf(raw) == rawjson.String:
		w.Body = r.text(o, "body", maxCallBody)
	default:
		r.refuse(o.At("body"), "must be a string, an object or an array, not %s", jsonform.KindName(raw))
	}
	return w
}
