package keyapi

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/view"
)

// sourceAPI is the source of consents that a key records without naming one.
const sourceAPI = "api"

// consent is a contact's consent to a channel.
type consent struct {
	Status string `json:"status"`
	Source string `json:"source"`
	Since  string `json:"since"`
}

// consentsOf are the consents on record, by channel.
func consentsOf(p *view.Profile) map[string]consent {
	out := map[string]consent{}
	for _, c := range p.Consents {
		out[c.Channel] = consent{c.Status, c.Source, record.Time(c.SinceMs)}
	}
	return out
}

// consentChanges reads the fields subscribed and consents of a contact to be changed.
func consentChanges(subscribed *bool, consents json.RawMessage) (out []contacts.ConsentChange, err error) {
	if subscribed != nil {
		c := contacts.ConsentChange{Channel: "email", Status: "unsubscribed", Source: sourceAPI}
		if *subscribed {
			c.Status, c.Effective = "subscribed", true
		}
		out = append(out, c)
	}
	if consents, err = keycall.Object("consents", consents); err != nil {
		return out, keycall.Fail(`%s, such as {"sms": {"status": "unsubscribed"}}`, err)
	}
	if consents == nil {
		return out, nil
	}
	var byChannel map[string]json.RawMessage
	if err := keycall.DecodeObject(consents, &byChannel); err != nil {
		return nil, err
	}
	for _, channel := range slices.Sorted(maps.Keys(byChannel)) {
		in := struct {
			Status *string `json:"status"`
			Source string  `json:"source"`
		}{Source: sourceAPI}
		field := "consents." + channel
		raw, err := keycall.Object(field, byChannel[channel])
		switch {
		case err != nil:
			return nil, keycall.Fail(`%s, such as {"status": "unsubscribed"}`, err)
		case raw == nil:
			return nil, keycall.Fail(`%s Input should be a valid object, such as {"status": "unsubscribed"}`, field)
		}
		if err := keycall.DecodeObject(raw, &in); err != nil {
			return nil, keycall.Fail("%s.%s", field, err)
		}
		switch {
		case in.Status == nil:
			return nil, keycall.Fail("%s.status Field required", field)
		case subscribed != nil && channel == "email":
			return nil, keycall.Fail("subscribed and consents.email say the same; send one of them")
		}
		out = append(out, contacts.ConsentChange{Channel: channel, Status: *in.Status, Source: in.Source})
	}
	return out, nil
}
