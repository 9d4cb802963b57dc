package forms

import (
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/musterhq/muster/internal/clip"
	"github.com/musterhq/muster/resolver/internal/profile"
	"github.com/musterhq/muster/resolver/internal/refuse"
)

// The bounds of a form.
const (
	maxTitleBytes   = 200
	maxTextBytes    = 4000
	maxButtonBytes  = 100
	maxMessageBytes = 1000
	// MaxConsentBytes is how long the text of a consent is; the log of consents keeps it whole.
	MaxConsentBytes  = 1000
	MaxFields        = 30
	maxLabelBytes    = 200
	MaxOptions       = 100
	maxOptionBytes   = 200
	MaxLists         = 20
	MaxOrigins       = 50
	maxRedirectBytes = 2000
)

// channels are those that a form can give a consent for, with the field that has the address.
var channels = map[string]string{"email": FieldEmail, "sms": FieldPhone, "whatsapp": FieldPhone}

// types are those of fields, in the order of messages.
var types = []string{TypeText, TypeNumber, TypeBoolean, TypeDate, TypeChoice}

var attributeName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)

// check says what is wrong with a form, and makes its origins canonical.
func (c *Content) check(hasList func(string) bool) *refuse.Refusal {
	if r := refuse.Name(c.Name); r != nil {
		return r
	}
	for _, x := range [...]struct {
		name, text  string
		least, most int
	}{{"name", c.Name, 1, refuse.MaxNameBytes}, {"title", c.Title, 1, maxTitleBytes}, {"text", c.Text, 0, maxTextBytes}, {"button", c.Button, 1, maxButtonBytes}, {"message", c.Message, 0, maxMessageBytes}} {
		switch {
		case !isText(x.text):
			return refuse.Invalid(x.name, "%s must be UTF-8 text without control characters; line breaks are fine", x.name)
		case len(x.text) > x.most || len(strings.TrimSpace(x.text)) < x.least:
			return refuse.Invalid(x.name, "%s must have %d to %d bytes", x.name, x.least, x.most)
		}
	}
	if r := c.checkFields(); r != nil {
		return r
	}
	if r := c.checkConsent(); r != nil {
		return r
	}
	switch email := c.Field(FieldEmail); {
	case c.DoubleOptIn && (email == nil || !email.Required):
		return refuse.Invalid("double_opt_in", "double_opt_in needs the field email, and that it is required: the confirmation goes there")
	case len(c.Lists) > MaxLists:
		return refuse.Invalid("list_ids", "list_ids must have at most %d entries", MaxLists)
	}
	for i, id := range c.Lists {
		switch {
		case slices.Contains(c.Lists[:i], id):
			return refuse.Invalid("list_ids", "list_ids: %s is given twice", clip.Valid(id, 100))
		case !hasList(id):
			return refuse.NotFound("list_ids", "list_ids: there is no list %s", clip.Valid(id, 100))
		}
	}
	if c.Message == "" && c.RedirectURL == "" {
		return refuse.Invalid("message", "message must not be empty where there is no redirect_url")
	}
	if c.RedirectURL != "" && !mayLead(c.RedirectURL) {
		return refuse.Invalid("redirect_url", "redirect_url must be an https:// address of at most %d bytes, such as https://shop.example/thanks; http:// is for localhost only", maxRedirectBytes)
	}
	return c.checkOrigins()
}

// isText reports whether a text can be shown: UTF-8 without control characters but line
// breaks and tabs.
func isText(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }) < 0
}

func (c *Content) checkFields() *refuse.Refusal {
	if len(c.Fields) > MaxFields {
		return refuse.Invalid("fields", "fields must have at most %d entries", MaxFields)
	}
	reached := false
	for i := range c.Fields {
		f := &c.Fields[i]
		if f.Type == "" {
			f.Type = TypeText
		}
		attribute, isAttribute := strings.CutPrefix(f.Name, AttributePrefix)
		known := slices.Contains([]string{FieldEmail, FieldPhone, FieldFirstName, FieldLastName}, f.Name)
		switch {
		case !known && (!isAttribute || !attributeName.MatchString(attribute)):
			return refuse.Invalid("fields", "fields[%d].name must be email, phone, first_name, last_name, or attributes. and a name of letters, digits and underscores, such as attributes.city", i)
		case slices.ContainsFunc(c.Fields[:i], func(x Field) bool { return x.Name == f.Name }):
			return refuse.Invalid("fields", "fields[%d].name: %s is given twice", i, f.Name)
		case strings.TrimSpace(f.Label) == "" || len(f.Label) > maxLabelBytes || !isText(f.Label):
			return refuse.Invalid("fields", "fields[%d].label must have 1 to %d bytes of text", i, maxLabelBytes)
		case !slices.Contains(types, f.Type):
			return refuse.Invalid("fields", "fields[%d].type Input should be text, number, boolean, date or choice", i)
		case known && f.Type != TypeText:
			return refuse.Invalid("fields", "fields[%d].type must be text, or left out, for %s", i, f.Name)
		case (f.Type == TypeChoice) != (len(f.Options) > 0):
			return refuse.Invalid("fields", "fields[%d].options must be given for the type choice, and for no other", i)
		case len(f.Options) > MaxOptions:
			return refuse.Invalid("fields", "fields[%d].options must have at most %d entries", i, MaxOptions)
		}
		for k, option := range f.Options {
			if option == "" || strings.Join(strings.Fields(option), " ") != option || len(option) > maxOptionBytes || !isText(option) || slices.Contains(f.Options[:k], option) {
				return refuse.Invalid("fields", "fields[%d].options[%d] must have 1 to %d bytes of text, no spaces at its ends or twice, and occur once", i, k, maxOptionBytes)
			}
		}
		reached = reached || f.Required && (f.Name == FieldEmail || f.Name == FieldPhone)
	}
	if !reached {
		return refuse.Invalid("fields", "fields must have email or phone, and one of them must be required")
	}
	return nil
}

func (c *Content) checkConsent() *refuse.Refusal {
	x := c.Consent
	if x == nil {
		return nil
	}
	switch {
	case strings.TrimSpace(x.Text) == "" || len(x.Text) > MaxConsentBytes || !isText(x.Text):
		return refuse.Invalid("consent", "consent.text must have 1 to %d bytes of text: what the person agrees to", MaxConsentBytes)
	case len(x.Channels) == 0:
		return refuse.Invalid("consent", "consent.channels must name a channel at least: email, sms or whatsapp")
	}
	for i, channel := range x.Channels {
		field, known := channels[channel]
		switch {
		case !known:
			return refuse.Invalid("consent", "consent.channels[%d] Input should be email, sms or whatsapp", i)
		case slices.Contains(x.Channels[:i], channel):
			return refuse.Invalid("consent", "consent.channels: %s is given twice", channel)
		case c.Field(field) == nil:
			return refuse.Invalid("consent", "consent.channels: %s needs the field %s", channel, field)
		}
	}
	return nil
}

func (c *Content) checkOrigins() *refuse.Refusal {
	list, r := refuse.Origins(c.AllowedOrigins, MaxOrigins)
	if r != nil {
		return r
	}
	c.AllowedOrigins = list
	return nil
}

// mayLead reports whether a browser may be sent to an address: https, or http on the same
// machine, for trials.
func mayLead(text string) bool {
	if len(text) > maxRedirectBytes || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == '\\' }) {
		return false
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || strings.ContainsAny(u.Host, ";,'\"") {
		return false
	}
	switch u.Scheme {
	case "https":
		return true
	case "http":
		ip := net.ParseIP(u.Hostname())
		return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	}
	return false
}

// Consents are the channels of a form's consent for which an address was given.
func (f *Form) consents(email, phone string) (out []string) {
	if f.Consent == nil {
		return nil
	}
	given := map[string]bool{FieldEmail: email != "", FieldPhone: phone != ""}
	for _, channel := range f.Consent.Channels {
		if given[channels[channel]] && slices.Contains(profile.Channels, channel) {
			out = append(out, channel)
		}
	}
	return out
}
