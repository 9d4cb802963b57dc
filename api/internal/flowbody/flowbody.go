package flowbody

import (
	"errors"

	"github.com/musterhq/muster/internal/jsonform"
	"github.com/musterhq/muster/internal/rawjson"
	"github.com/musterhq/muster/resolver/automation"
)

// maxTextBytes bounds identifiers and keys, as the events' are.
const maxTextBytes = 512

// Status reads a body that has a status and nothing else: paused or live.
func Status(body []byte) (string, error) {
	o, err := object(body)
	if err != nil {
		return "", err
	}
	var other *jsonform.Error
	if errors.As(o.Only("", "status"), &other) {
		return "", jsonform.Faultf(other.Path, "must not be given: this call changes nothing but the status; to change what a flow does, duplicate it, change the copy and publish that")
	}
	if o.Get("status") == nil {
		return "", jsonform.Faultf("status", "must be given: %s or %s", automation.Paused, automation.Live)
	}
	return jsonform.OneOf(o, "status", []string{automation.Paused, automation.Live})
}

// Trigger reads the contact to enrol in a flow, and the data of the enrolment. Fields that it does
// not know are passed over.
func Trigger(flow string, body []byte) (t automation.Trigger, err error) {
	t.ID = flow
	o, err := object(body)
	if err != nil {
		return t, err
	}
	for _, f := range []struct {
		name string
		dst  *string
	}{{"email", &t.Email}, {"external_id", &t.ExternalID}, {"phone", &t.Phone}, {"idempotency_key", &t.Key}} {
		if raw := o.Given(f.name); raw != nil {
			if *f.dst, err = jsonform.Text(f.name, raw, maxTextBytes); err != nil {
				return t, err
			}
		}
	}
	if raw := o.Given("data"); raw != nil {
		if _, err := jsonform.ReadObject("data", raw); err != nil {
			return t, err
		}
		t.Data = raw
	}
	return t, nil
}

// object reads the body.
func object(body []byte) (*jsonform.Object, error) {
	text, err := jsonform.Compact(body)
	var fault *jsonform.Error
	switch {
	case errors.As(err, &fault):
		return nil, jsonform.Faultf("body", "%s", fault.Reason)
	case err != nil:
		return nil, err
	case rawjson.KindOf(text) != rawjson.Object:
		return nil, jsonform.Faultf("body", "must be an object, not %s", jsonform.KindName(text))
	}
	return jsonform.ReadObject("", text)
}
