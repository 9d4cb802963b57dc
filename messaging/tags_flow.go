package messaging

import (
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

// errMissing is why a message of a flow is not sent to somebody: a merge tag of it would
// leave a hole in the text.
func errMissing(tag string) error { return errBarred(missing(tag)) }

// FlowTagFaults lists the messages of a flow, and the templates that it sends, with merge
// tags that never have a value. It is beside [flows.Flow.Validate], which is a rule of
// the state machine: flows that were published before this check go on. Texts that cannot
// be parsed are left to Validate.
func FlowTagFaults(v *resolver.View, def *flows.Flow) (faults flows.Faults) {
	for i := range def.Steps {
		s := &def.Steps[i]
		find := func(c campaigns.Content, fields map[string]string) {
			x, err := compile(c)
			if err == nil {
				err = x.check(flowTags(def.Trigger.Type))
			}
			var fault *ContentError
			var unknown *merge.UnknownTagError
			if errors.As(err, &fault) && errors.As(err, &unknown) {
				field := fault.Field
				if of := fields[field]; of != "" {
					field = of
				}
				faults = append(faults, flows.Fault{Step: s.ID, Path: jsonform.Join(jsonform.Index("steps", i), field), Message: "cannot be filled in: " + unknown.Error()})
			}
		}
		switch {
		case s.SMS != nil:
			find(campaigns.Content{Text: s.SMS.Text}, nil)
		case s.WhatsApp != nil:
			find(campaigns.Content{Text: s.WhatsApp.Text}, nil)
			find(campaigns.Content{Text: s.WhatsApp.Header}, map[string]string{"text": "header"})
			for _, p := range s.WhatsApp.Parameters {
				find(campaigns.Content{Text: p}, map[string]string{"text": "parameters"})
			}
		case s.Email != nil:
			find(campaigns.Content{Subject: s.Email.Subject, SenderName: s.Email.SenderName, HTML: s.Email.Body, Text: s.Email.Text}, nil)
			if s.Email.TemplateID == "" {
				break
			}
			if t, ok, err := v.Campaigns().WholeTemplate(s.Email.TemplateID); ok && err == nil {
				subject := t.Subject
				if s.Email.Subject != "" {
					subject = "" // the step's own
				}
				const of = "template_id"
				find(campaigns.Content{Subject: subject, HTML: t.HTML, Text: t.Text}, map[string]string{"subject": of, "body": of, "text": of})
			}
		}
	}
	return faults
}
