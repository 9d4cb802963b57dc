package flows

import (
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/messaging/card"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/messaging/tracking"
)

// messageFields are the fields of a message, by its channel.
var messageFields = map[string][]string{
	StepEmail:    {"template_id", "subject", "body", "text", "sender", "sender_name", "reply_to", ignoresLimits},
	StepSMS:      {"text", "track_links", ignoresLimits},
	StepWhatsApp: {"text", "template", "language", "parameters", "header", "named_parameters", "header_type", "header_name", "header_filename", "header_location", "buttons", "track_links", ignoresLimits},
	StepIM:       {"text", "track_links", ignoresLimits},
	StepPush:     {"title", "body", "link", "image", "ttl_seconds", "collapse", "track_links", ignoresLimits},
	StepInApp:    {"title", "body", "link", "image", "display", "priority", "ttl_hours", ignoresLimits},
}

// ignoresLimits is the field that sends a message whatever the account's limits say.
const ignoresLimits = "ignore_sending_limits"

// messageChannels are the channels of omnichannel steps.
var messageChannels = []string{StepEmail, StepSMS, StepWhatsApp, StepPush, StepInApp, StepIM}

// messages reads the messages of an omnichannel step.
func (r *reader) messages(o *jsonform.Object) (out []Message) {
	for i, part := range r.elements(o, "channels", "channels", len(messageChannels)) {
		x := r.object(jsonform.Index(o.At("channels"), i), part)
		if r.err != nil {
			return out
		}
		var channel string
		if channel, r.err = jsonform.OneOf(x, "channel", messageChannels); r.err != nil {
			return out
		}
		r.only(x, "a message of the channel "+channel, append([]string{"channel"}, messageFields[channel]...)...)
		out = append(out, r.message(x, channel))
	}
	return out
}

// message reads what is sent on a channel.
func (r *reader) message(o *jsonform.Object, channel string) Message {
	m := Message{Channel: channel, IgnoresLimits: r.boolean(o, ignoresLimits)}
	switch channel {
	case StepEmail:
		m.Email = r.email(o)
	case StepSMS, StepIM:
		m.SMS = &SMS{Text: r.text(o, "text", maxSMSBytes), TrackLinks: r.boolean(o, "track_links")}
	case StepWhatsApp:
		m.WhatsApp = &WhatsApp{Text: r.text(o, "text", maxSMSBytes), Template: r.template(o), TrackLinks: r.boolean(o, "track_links")}
	case StepPush:
		m.Push = &Push{
			Title: r.text(o, "title", maxPushTitle), Body: r.text(o, "body", maxPushBody), Link: r.text(o, "link", maxURLBytes), Image: r.text(o, "image", maxURLBytes),
			TTLSeconds: r.integer(o, "ttl_seconds", 0, int64(push.MaxTTL/time.Second), 0), Collapse: r.text(o, "collapse", maxCollapse), TrackLinks: r.boolean(o, "track_links"),
		}
	case StepInApp:
		x := &card.Card{Title: r.text(o, "title", card.MaxTitleBytes), Body: r.text(o, "body", card.MaxBodyBytes), Link: r.text(o, "link", card.MaxURLBytes)}
		x.Image, x.Display = r.text(o, "image", card.MaxURLBytes), r.text(o, "display", len(card.Banner))
		x.Priority = int(r.integer(o, "priority", 0, card.MaxPriority, 0))
		x.TTLHours = int(r.integer(o, "ttl_hours", 0, card.MaxTTLHours, 0))
		m.InApp = x
	}
	return m
}

// channels checks the messages of an omnichannel step.
func (v *validator) channels(messages []Message) {
	path := v.at("channels")
	if len(messages) == 0 {
		v.fault(path, "must have at least one channel")
	}
	step := v.path
	for i := range messages {
		v.path = jsonform.Index(path, i)
		same := func(m Message) bool { return m.Channel == messages[i].Channel }
		if slices.IndexFunc(messages, same) < i {
			v.fault(v.at("channel"), "must name each channel once; "+messages[i].Channel+" stands there twice")
		}
		v.message(&messages[i])
	}
	v.path = step
}

// message checks what is sent on a channel.
func (v *validator) message(m *Message) {
	switch {
	case m.Email != nil:
		v.email(m.Email)
	case m.SMS != nil:
		if v.need("text", m.SMS.Text) {
			v.tags(v.at("text"), m.SMS.Text, merge.Text)
		}
	case m.WhatsApp != nil:
		v.whatsApp(m.WhatsApp)
	case m.Push != nil:
		v.push(m.Push)
	case m.InApp != nil:
		v.inApp(m.InApp)
	}
}

// fill checks the merge tags of a field. Unless the text is empty, it stores the text in
// dst, with sample values for the tags.
func (v *validator) fill(field, text string, mode merge.Mode, dst *string) {
	t := v.tags(v.at(field), text, mode)
	if t == nil || strings.TrimSpace(text) == "" {
		return
	}
	if filled, err := t.Render(sample); err == nil {
		*dst = filled
	}
}

// inApp checks an in-app message. Merge tags become longer or shorter: each message is checked
// again when it is made.
func (v *validator) inApp(x *card.Card) {
	filled := *x
	v.need("title", x.Title)
	filled.Title = "x"
	v.fill("title", x.Title, merge.Header, &filled.Title)
	v.fill("body", x.Body, merge.Text, &filled.Body)
	v.fill("link", x.Link, merge.URL, &filled.Link)
	if f := filled.Check(); f != nil {
		v.fault(v.at(f.Field), strings.Replace(f.Text, "should", "must", 1))
	}
}

func (v *validator) whatsApp(x *WhatsApp) {
	t := &x.Template
	switch {
	case t.Name == "" && x.Text == "":
		v.fault(v.at("template"), "is missing; give the name of a template, or text for people who have written within a day")
	case t.Name != "" && x.Text != "":
		v.fault(v.at("text"), "must not be given together with template")
	case t.Name == "" && !t.IsZero():
		v.fault(v.at("template"), "is missing; language, parameters, header and buttons are a template's")
	}
	v.tags(v.at("text"), x.Text, merge.Text)
	for i, p := range t.Parameters {
		if strings.TrimSpace(p) == "" {
			v.fault(jsonform.Index(v.at("parameters"), i), "must not be empty; WhatsApp takes no empty values")
		}
	}
	if f := t.CheckOptions(); f != nil {
		v.fault(jsonform.Below(v.path, f.Field), strings.Replace(f.Text, "should", "must", 1))
	}
	_, _ = t.Map(func(field, value string, mode merge.Mode) (string, error) {
		v.tags(jsonform.Below(v.path, field), value, mode)
		return value, nil
	})
}

func (v *validator) email(x *Email) {
	if x.TemplateID != "" {
		subject, ok := v.w.Template(x.TemplateID)
		switch {
		case !ok:
			v.fault(v.at("template_id"), fmt.Sprintf("must be the id of a template, there is no %q", x.TemplateID))
		case strings.TrimSpace(subject+x.Subject) == "":
			v.fault(v.at("subject"), "is missing, and the template has none")
		}
		for _, own := range []struct{ field, value string }{{"body", x.Body}, {"text", x.Text}} {
			if own.value != "" {
				v.fault(v.at(own.field), "must not be given together with template_id")
			}
		}
	} else {
		v.need("subject", x.Subject)
		v.need("body", x.Body)
	}
	v.tags(v.at("subject"), x.Subject, merge.Header)
	if v.tags(v.at("body"), x.Body, merge.HTML) != nil {
		v.links(x.Body)
	}
	v.tags(v.at("text"), x.Text, merge.Text)
	if x.Sender != "" {
		if reason := v.w.Sender(x.Sender); reason != "" {
			v.fault(v.at("sender"), reason)
		}
	}
	v.tags(v.at("sender_name"), x.SenderName, merge.Header)
	if x.ReplyTo != "" {
		if a, err := mail.ParseAddress(x.ReplyTo); err != nil || a.Name != "" || a.Address != x.ReplyTo {
			v.fault(v.at("reply_to"), "must be an e-mail address, such as name@example.com")
		}
	}
}

// push checks a notification. Merge tags become longer or shorter: each notification is
// checked again when it goes out.
func (v *validator) push(x *Push) {
	v.need("title", x.Title)
	n := &push.Notification{Title: "x", Image: x.Image, TTL: time.Duration(x.TTLSeconds) * time.Second}
	v.fill("title", x.Title, merge.Header, &n.Title)
	v.fill("body", x.Body, merge.Text, &n.Body)
	v.fill("link", x.Link, merge.URL, &n.Link)
	// A browser opens no links into apps: its notification goes without.
	check := func(n *push.Notification) error { return push.CheckNotification(n, push.KindFCM, push.KindAPNs) }
	if err := check(&push.Notification{Title: "x", Collapse: x.Collapse}); err != nil {
		v.fault(v.at("collapse"), strings.TrimPrefix(err.Error(), "collapse "))
	}
	if x.Image != "" && !strings.HasPrefix(x.Image, "https://") {
		v.fault(v.at("image"), "must be an https URL")
	} else if err := check(&push.Notification{Title: "x", Image: x.Image}); err != nil {
		v.fault(v.at("image"), strings.TrimPrefix(err.Error(), "image "))
	}
	if err := check(&push.Notification{Title: "x", Link: n.Link}); err != nil {
		v.fault(v.at("link"), strings.TrimPrefix(err.Error(), "link "))
	} else if err := check(n); err != nil && n.Body != "" {
		v.fault(v.at("body"), "cannot be sent: "+err.Error())
	}
}

// links checks those that clicks are counted of.
func (v *validator) links(body string) {
	_, links, err := tracking.Rewrite(body)
	if err != nil {
		v.fault(v.at("body"), "cannot be sent: "+err.Error())
	}
	for _, link := range links {
		v.tags(v.at("body"), link, merge.URL)
	}
}
