package keyapi

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// usable refuses a campaign with what can never be sent. Of before, which it is to take the place
// of (nil for none), nothing is held against it that was wrong already and stays as it is: an
// earlier release may have saved it, and it is refused when the campaign is sent.
func (k campaignCalls) usable(c *keycall.Call, x, before *campaigns.Campaign) error {
	return c.Read(func(v *resolver.View) error {
		known := map[string]bool{}
		if before != nil {
			err := k.faults(v, before, func(_, fault string) bool { known[fault] = true; return true })
			var wrong *keycall.Failure
			if err != nil && !errors.As(err, &wrong) {
				return err
			}
		}
		return k.faults(v, x, func(field, fault string) bool {
			return known[fault] && reflect.DeepEqual(valueOf(x, field), valueOf(before, field))
		})
	})
}

// faults visits what is wrong with a campaign, one field after the other. The first that known says
// false of is the error.
func (k campaignCalls) faults(v *resolver.View, campaign *campaigns.Campaign, known func(field, fault string) bool) error {
	x := *campaign
	x.Channels = slices.Clone(x.Channels)
	for {
		err := compose.CheckCampaign(&x)
		if err == nil {
			err = k.checkProviders(v, &x)
		}
		var fault *compose.ContentError
		if !errors.As(err, &fault) {
			return err
		}
		// Without what is known, the next fault shows.
		field := firstField(fault)
		if !known(field, fault.Error()) || !clearField(&x, field) {
			return contentFault(err)
		}
	}
}

func (k campaignCalls) checkProviders(v *resolver.View, x *campaigns.Campaign) error {
	contents, err := compose.CampaignContents(v, x)
	if err != nil {
		return err
	}
	return k.sender.CheckProviders(v, x, contents)
}

// firstField is the field of a campaign that a fault is of, or the entry of its channels. The words
// of a fault without a field begin with it.
func firstField(fault *compose.ContentError) string {
	field, _, _ := strings.Cut(fault.Error(), " ")
	field = strings.TrimSuffix(field, ":")
	if entry, _, of := strings.Cut(field, "]"); of && strings.HasPrefix(field, "channels[") {
		return entry + "]"
	}
	field, _, _ = strings.Cut(field, ".")
	switch field {
	case "title":
		return "subject"
	case "text":
		return "body"
	}
	return field
}

// valueOf points to the value of a field, nil for one that no fault can be of.
func valueOf(x *campaigns.Campaign, field string) any {
	for i := range x.Channels {
		if campaigns.ChannelField(i) == field {
			return &x.Channels[i]
		}
	}
	return map[string]any{
		"subject": &x.Subject, "body": &x.Body, "sender": &x.Sender, "sender_name": &x.SenderName, "reply_to": &x.ReplyTo,
		"template_id": &x.TemplateID, "link": &x.Link, "whatsapp": &x.WhatsApp, "push": &x.Push, "in_app": &x.InApp,
	}[field]
}

// clearField empties a field; of an entry of the channels its channel stays. It reports whether
// there was something.
func clearField(x *campaigns.Campaign, field string) bool {
	value := valueOf(x, field)
	if value == nil {
		return false
	}
	if entry, of := value.(*campaigns.ChannelMessage); of {
		full := *entry
		*entry = campaigns.ChannelMessage{Channel: entry.Channel}
		return full != *entry
	}
	there := !reflect.ValueOf(value).Elem().IsZero()
	reflect.ValueOf(value).Elem().SetZero()
	return there
}
