package compose

import (
	"cmp"
	"errors"

	"github.com/musterhq/muster/flows"
	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// flowTags are the merge tags of messages that a flow sends. What starts one by a date or
// a segment is no event, so that tags event.… have no value there.
func flowTags(trigger string) *merge.Known {
	k := merge.Profile(TagUnsubscribe, TagPreferences)
	switch trigger {
	case flows.TriggerDate, flows.TriggerSegmentEntered, flows.TriggerSegmentExited:
	default:
		k.Groups = append(k.Groups, "event")
	}
	return k
}

// errMissing is why a message of a flow is not sent to a person: a merge tag of it would
// leave a hole in the text.
func errMissing(tag string) error { return Refused(Missing(tag)) }

// FlowTagFaults lists the messages of a flow, and the templates that it sends, with merge
// tags that never have a value. It is beside [flows.Flow.Validate], which is a rule of
// the state machine: flows that were published before this check continue. Texts that cannot
// be parsed are left to Validate.
func FlowTagFaults(v *resolver.View, def *flows.Flow) (faults flows.Faults) {
	eachMessage(def, func(s *flows.Step, m *flows.Message, path string) {
		for _, f := range messageTagFaults(v, def, m) {
			faults = append(faults, flows.Fault{Step: s.ID, Path: jsonform.Below(path, f.Field), Message: "cannot be filled in: " + f.Err.Error()})
		}
	})
	return faults
}

// eachMessage visits the messages of a flow; path is where one stands in the definition.
func eachMessage(def *flows.Flow, visit func(s *flows.Step, m *flows.Message, path string)) {
	for i := range def.Steps {
		s := &def.Steps[i]
		for k := range s.Messages {
			path := jsonform.Index("steps", i)
			if s.Type == flows.StepOmnichannel {
				path = jsonform.Index(jsonform.Join(path, "channels"), k)
			}
			visit(s, &s.Messages[k], path)
		}
	}
}

// messageTagFaults lists the merge tags of a message of a flow that never have a value, by
// its fields.
func messageTagFaults(v *resolver.View, def *flows.Flow, m *flows.Message) (faults []ContentError) {
	find := func(c campaigns.Content, fields map[string]string) {
		x, err := Compile(c)
		if err == nil {
			err = x.check(flowTags(def.Trigger.Type))
		}
		var fault *ContentError
		var unknown *merge.UnknownTagError
		if errors.As(err, &fault) && errors.As(err, &unknown) {
			faults = append(faults, ContentError{cmp.Or(fields[fault.Field], fault.Field), unknown})
		}
	}
	switch {
	case m.SMS != nil:
		find(campaigns.Content{Text: m.SMS.Text}, nil)
	case m.WhatsApp != nil:
		find(campaigns.Content{Text: m.WhatsApp.Text}, nil)
		_, _ = m.WhatsApp.Template.Map(func(field, value string, _ merge.Mode) (string, error) {
			find(campaigns.Content{Text: value}, map[string]string{"text": field})
			return value, nil
		})
	case m.Push != nil:
		find(campaigns.Content{Subject: m.Push.Title, Text: m.Push.Body, Link: m.Push.Link}, map[string]string{"subject": "title", "text": "body"})
	case m.InApp != nil:
		find(campaigns.Content{Subject: m.InApp.Title, Text: m.InApp.Body, Link: m.InApp.Link}, map[string]string{"subject": "title", "text": "body"})
	case m.Email != nil:
		x := m.Email
		find(campaigns.Content{Subject: x.Subject, SenderName: x.SenderName, HTML: x.Body, Text: x.Text}, nil)
		if x.TemplateID == "" {
			break
		}
		if t, ok, err := v.Campaigns().WholeTemplate(x.TemplateID); ok && err == nil {
			subject := t.Subject
			if x.Subject != "" {
				subject = "" // the message's own
			}
			const of = "template_id"
			find(campaigns.Content{Subject: subject, HTML: t.HTML, Text: t.Text}, map[string]string{"subject": of, "body": of, "text": of})
		}
	}
	return faults
}
