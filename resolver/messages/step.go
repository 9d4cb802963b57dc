package messages

import (
	"encoding/json"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/resolver/campaigns"
)

// OfStep is the payload of a message of a step of a flow, but for an e-mail, which has a
// recipient of its own. event is what started the flow, a JSON object or empty.
func OfStep(m *flows.Message, event json.RawMessage) any {
	switch {
	case m.SMS != nil:
		return Text{Text: m.SMS.Text, TrackLinks: m.SMS.TrackLinks, Event: event}
	case m.WhatsApp != nil:
		x := m.WhatsApp
		t := Text{Text: x.Text, TrackLinks: x.TrackLinks, Event: event}
		if x.Template.Name != "" {
			t.Template = &x.Template
		}
		return t
	case m.Push != nil:
		x := m.Push
		n := Push{Title: x.Title, Body: x.Body, Link: x.Link, TrackLinks: x.TrackLinks, Event: event}
		if x.Image != "" || x.TTLSeconds != 0 || x.Collapse != "" {
			n.Options = &campaigns.PushOptions{Image: x.Image, TTLSeconds: int(x.TTLSeconds), Collapse: x.Collapse}
		}
		return n
	default:
		return InApp{Card: *m.InApp, Event: event}
	}
}

// CallOf is the payload of a call of a webhook step, see [OfStep].
func CallOf(x *flows.Webhook, event json.RawMessage) Request {
	r := Request{URL: x.URL, Method: x.Method, TimeoutMs: int64(x.TimeoutSeconds) * 1000, Attempts: x.Attempts, Event: event}
	for _, l := range x.Headers {
		r.Headers = append(r.Headers, HeaderLine(l))
	}
	return r
}
