package text

import (
	"maps"
	"net/url"
	"strconv"
	"strings"

	"github.com/musterhq/muster/internal/must"
	"github.com/musterhq/muster/messaging/merge"
	"github.com/musterhq/muster/messaging/whatsapp"
)

// How providers take WhatsApp templates, see [Config.Templates].
const (
	// CloudTemplates is the form of Meta's Cloud API.
	CloudTemplates = "whatsapp_cloud"
	// TwilioContent is that of Twilio: the name is a content SID, which begins with HX.
	TwilioContent = "twilio_content"
)

// Shown is what a message says, for people who look at what was captured.
func (m *Message) Shown() string {
	if m.Template == nil {
		return m.Body
	}
	return m.Template.String()
}

// CheckTemplate says what keeps a template, with its values filled in, from being sent by a
// provider that takes templates as [Config.Templates] says; nil for nothing.
func CheckTemplate(templates string, t *whatsapp.Template) *whatsapp.Fault {
	kind, media := t.Media()
	switch {
	case templates == "":
		return whatsapp.Faultf("template", "should be left out: the provider takes no templates; use the preset whatsapp_cloud or twilio")
	case t.Name == "" || len(t.Name) > 512:
		return whatsapp.Faultf("template", "should have 1 to 512 bytes")
	case templates == TwilioContent && !strings.HasPrefix(t.Name, "HX"):
		return whatsapp.Faultf("template", "should be the template's content SID at Twilio, which begins with HX")
	case templates == CloudTemplates && (t.Language == "" || len(t.Language) > 20):
		return whatsapp.Faultf("language", "should be given: that of the template, such as en_US, in at most 20 bytes")
	case len(t.Parameters) > whatsapp.MaxParameters:
		return whatsapp.Faultf("parameters", "should have at most %d entries", whatsapp.MaxParameters)
	case templates == TwilioContent && len(t.Buttons) > 0:
		return whatsapp.Faultf("buttons", "should be left out with Twilio: there the value of a button is a variable like others; give it in parameters or named_parameters")
	case templates == TwilioContent && t.HeaderFilename != "":
		return whatsapp.Faultf("header_filename", "should be left out with Twilio, which has no name for a document")
	case len(t.Named) > 0 && t.Header != "" && t.HeaderName == "" && (templates == TwilioContent || !media):
		return whatsapp.Faultf("header_name", "should be given beside named_parameters: the name of the header's placeholder")
	case t.HeaderName != "" && templates == CloudTemplates && media:
		return whatsapp.Faultf("header_name", "should be left out beside a file: only the placeholder of a text has a name")
	case t.HeaderName != "" && templates == TwilioContent && len(t.Named) == 0:
		return whatsapp.Faultf("header_name", "should be left out without named_parameters: with Twilio the header is the variable 1 then")
	case templates == TwilioContent && t.Location != nil:
		return whatsapp.Faultf("header_location", "should be left out with Twilio, as its header_type: there the values of a place are variables like others; give them in parameters or named_parameters")
	case media && !isFile(t.Header):
		return whatsapp.Faultf("header", "should be the https URL of the %s", kind)
	case t.Header != "" && strings.TrimSpace(t.Header) == "":
		return whatsapp.Faultf("header", "should not be empty; WhatsApp takes no empty values")
	}
	for i, p := range t.Parameters {
		if strings.TrimSpace(p) == "" {
			return whatsapp.Faultf("parameters["+strconv.Itoa(i)+"]", "should not be empty; WhatsApp takes no empty values")
		}
	}
	if f := t.CheckOptions(); f != nil {
		return f
	}
	var fault *whatsapp.Fault
	_, _ = t.Map(func(field, value string, _ merge.Mode) (string, error) {
		switch {
		case fault != nil:
		case len(value) > whatsapp.MaxValueBytes:
			fault = whatsapp.Faultf(field, "should have at most %d bytes", whatsapp.MaxValueBytes)
		case strings.ContainsAny(value, "\r\n\t") || strings.Contains(value, "     "):
			fault = whatsapp.Faultf(field, "should have no line break, no tab, and no more than 4 spaces in a row; WhatsApp refuses them")
		}
		return value, nil
	})
	return fault
}

// isFile reports whether a file can be fetched from an address.
func isFile(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && !strings.ContainsAny(address, " \r\n\t")
}

type object = map[string]any

// cloudBody is the message in the form of Meta's Cloud API.
func (m *Message) cloudBody() []byte {
	t := m.Template
	var components []object
	if t.Header != "" || t.Location != nil {
		components = append(components, object{"type": "header", "parameters": []object{cloudHeader(t)}})
	}
	var values []object
	for _, p := range t.Parameters {
		values = append(values, object{"type": "text", "text": p})
	}
	for _, name := range t.Names() {
		values = append(values, object{"type": "text", "parameter_name": name, "text": t.Named[name]})
	}
	if values != nil {
		components = append(components, object{"type": "body", "parameters": values})
	}
	for _, b := range t.Buttons {
		value := object{"type": "text", "text": b.Value}
		switch b.Type {
		case whatsapp.ButtonQuickReply:
			value = object{"type": "payload", "payload": b.Value}
		case whatsapp.ButtonCopyCode:
			value = object{"type": "coupon_code", "coupon_code": b.Value}
		}
		components = append(components, object{"type": "button", "sub_type": b.Type, "index": strconv.Itoa(b.Index), "parameters": []object{value}})
	}
	template := object{"name": t.Name, "language": object{"code": t.Language}}
	if components != nil {
		template["components"] = components
	}
	return must.PlainJSON(object{"messaging_product": "whatsapp", "recipient_type": "individual", "to": m.To, "type": "template", "template": template, "biz_opaque_callback_data": m.ID})
}

// cloudHeader is the value of a header.
func cloudHeader(t *whatsapp.Template) object {
	kind, media := t.Media()
	if media {
		file := object{"link": t.Header}
		if t.HeaderFilename != "" {
			file["filename"] = t.HeaderFilename
		}
		return object{"type": kind, kind: file}
	}
	if l := t.Location; l != nil {
		place := object{"latitude": l.Latitude, "longitude": l.Longitude}
		for key, value := range map[string]string{"name": l.Name, "address": l.Address} {
			if value != "" {
				place[key] = value
			}
		}
		return object{"type": kind, kind: place}
	}
	value := object{"type": "text", "text": t.Header}
	if t.HeaderName != "" {
		value["parameter_name"] = t.HeaderName
	}
	return value
}

// contentForm makes the form one of Twilio's Content API, whose variables have numbers or
// names. Of those with numbers the header's value is the first.
func (m *Message) contentForm(form url.Values) {
	t := m.Template
	form.Del("Body")
	form.Set("ContentSid", t.Name)
	variables := map[string]string{}
	maps.Copy(variables, t.Named)
	values := t.Parameters
	switch {
	case t.Header == "":
	case len(t.Named) > 0:
		variables[t.HeaderName] = t.Header
	default:
		values = append([]string{t.Header}, values...)
	}
	for i, v := range values {
		variables[strconv.Itoa(i+1)] = v
	}
	if len(variables) > 0 {
		form.Set("ContentVariables", string(must.PlainJSON(variables)))
	}
}
