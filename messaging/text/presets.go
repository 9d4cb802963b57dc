package text

import (
	"errors"
	"net/url"
	"regexp"
	"strings"
)

// Twilio returns the Config of Twilio's Messages API and of services that copy
// it. from is a number, a name or, beginning with MG, a messaging service.
// base is another server than Twilio's with the same API, "" for none; whatsapp addresses
// WhatsApp instead of SMS. What becomes of messages is reported to {{vars.status_url}}.
func Twilio(accountSID, authToken, from, base string, whatsapp bool) (Config, error) {
	if accountSID == "" || strings.Trim(accountSID, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") != "" {
		return Config{}, errors.New("text: account sid is missing or malformed; it begins with AC")
	}
	if authToken == "" {
		return Config{}, errors.New("text: auth token is missing")
	}
	if sender := strings.TrimPrefix(from, twilioWhatsApp); !isTwilioService(sender) && !twilioPhone.MatchString(sender) && !isTwilioName(sender) {
		return Config{}, errors.New("text: from must be a number such as +15005550006, a short code, a name of at most 11 letters, digits and spaces, or a messaging service, which begins with MG")
	}
	prefix := ""
	if whatsapp {
		prefix = twilioWhatsApp
	}
	return Config{
		URL:      baseURL(base, "https://api.twilio.com") + "/2010-04-01/Accounts/" + url.PathEscape(accountSID) + "/Messages.json",
		Username: accountSID, Password: authToken, Format: Form, From: from,
		Form:      []Field{{"To", prefix + "{{to}}"}, {twilioNumber, prefix + "{{from}}"}, {"Body", "{{body}}"}, {"MediaUrl", "{{media_url}}"}, {"StatusCallback", `{{vars.status_url | default: ""}}`}},
		Templates: TwilioContent,
		IDPath:    "sid", CodePath: "code", ErrorPath: "message",
		Codes: map[string]string{
			"20003": "refused",                     // authentication
			"20429": "temporary",                   // too many requests
			"21211": "hard",                        // no such number
			"21214": "hard",                        // cannot be reached
			"21217": "hard",                        // malformed number
			"21614": "hard",                        // no mobile number
			"21610": "opted_out",                   // the recipient answered STOP
			"21408": "permanent",                   // region not enabled
			"21612": "permanent",                   // not reachable from this sender
			"21617": "permanent",                   // text too long
			"21603": "refused", "21606": "refused", // the sender is missing, is no number of ours
			"21611": "temporary",                   // the sender's queue is full
			"21659": "refused", "21660": "refused", // the sender does not belong to the account
			"21703": "refused", "21705": "refused", // the messaging service is empty, unknown
			"63003": "hard", "63024": "hard", // no such recipient on the channel
			"63007": "refused",                         // no such channel sender
			"63016": "permanent", "63018": "temporary", // outside the window for free text; rate limit
		},
	}, nil
}

// Twilio's parameters for the sender, of which a message has one, and what addresses of
// WhatsApp begin with.
const (
	twilioNumber   = "From"
	twilioService  = "MessagingServiceSid"
	twilioWhatsApp = "whatsapp:"
)

// twilioPhone matches numbers and short codes.
var twilioPhone = regexp.MustCompile(`^(\+[1-9][0-9]{6,14}|[0-9]{3,8})$`)

// twilioName matches names, which have a letter and at most maxTwilioName characters.
var twilioName = regexp.MustCompile(`^[0-9 ._&+-]*[A-Za-z][0-9A-Za-z ._&+-]*$`)

const maxTwilioName = 11

func isTwilioName(sender string) bool {
	return len(sender) <= maxTwilioName && twilioName.MatchString(sender)
}

// isTwilioService reports whether a sender is a messaging service; names are shorter.
func isTwilioService(sender string) bool {
	return strings.HasPrefix(sender, "MG") && len(sender) > maxTwilioName
}

// twilioSender is the parameter of a sender, which may be the provider's or a message's own: of a
// messaging service, or of a number or a name.
func twilioSender(to, value string) (name, sender string) {
	sender = strings.ReplaceAll(value, twilioWhatsApp, "") // it may be given with it, as Twilio shows it
	switch {
	case isTwilioService(sender):
		return twilioService, sender
	case strings.HasPrefix(to, twilioWhatsApp):
		return twilioNumber, twilioWhatsApp + sender
	}
	return twilioNumber, sender
}

// WhatsAppCloud returns the Config of Meta's WhatsApp Cloud API for free texts
// within the service window, and for templates. version is the Graph API's, for example
// v21.0; base is as in [Twilio].
func WhatsAppCloud(version, phoneNumberID, token, base string) (Config, error) {
	if phoneNumberID == "" || strings.Trim(phoneNumberID, "0123456789") != "" {
		return Config{}, errors.New("text: phone number id must be digits")
	}
	if !strings.HasPrefix(version, "v") || strings.Trim(version, "v.0123456789") != "" || token == "" {
		return Config{}, errors.New("text: version must look like v21.0, and token is required")
	}
	return Config{
		URL:       baseURL(base, "https://graph.facebook.com") + "/" + version + "/" + phoneNumberID + "/messages",
		Token:     token,
		Format:    JSON,
		Body:      `{"messaging_product":"whatsapp","recipient_type":"individual","to":"{{to}}","type":"text","text":{"preview_url":true,"body":"{{body}}"},"biz_opaque_callback_data":"{{id}}"}`,
		Templates: CloudTemplates,
		// A text may have 4096 characters there.
		MaxBody: 4096, IDPath: "messages.0.id", CodePath: "error.code", ErrorPath: "error.message",
		Codes: map[string]string{
			"0": "refused", "3": "refused", "10": "refused", "190": "refused", // authentication and permissions
			"4": "temporary", "80007": "temporary", "130429": "temporary", "131048": "temporary", "131056": "temporary", // limits
			"1": "temporary", "2": "temporary", "131000": "temporary", "131016": "temporary", "133004": "temporary", // their side
			"131026": "permanent", "131047": "permanent", "131050": "opted_out", // unreachable, window closed, wants no advertising
			// The template: unknown, other placeholders, too long, against the rules, other forms, paused, disabled.
			"132001": "permanent", "132000": "permanent", "132005": "permanent", "132007": "permanent", "132012": "permanent", "132015": "permanent", "132016": "permanent",
			"131021": "hard",                                                                                                                           // sender and recipient are one
			"131031": "refused", "131037": "refused", "131042": "refused", "133010": "refused", "131045": "refused", "368": "refused", "33": "refused", // account locked, unpaid, unregistered
		},
	}, nil
}

// baseURL is the server to call, without a slash at its end.
func baseURL(given, usual string) string {
	if given == "" {
		return usual
	}
	return strings.TrimRight(given, "/")
}
