package keyapi

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/messaging/text"
)

// TestChangesAreNotHeldToWhatWasWrong: a change of a campaign is refused for what it makes wrong, and
// not for what was wrong before and stays as it is.
func TestChangesAreNotHeldToWhatWasWrong(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	long := strings.Repeat("a", 1601)
	save := func(fields string) string {
		t.Helper()
		var c record.Campaign
		x.call("success", "POST", "/campaign", `{"name":"n","date":"2026-01-01",`+fields+`}`, &c)
		return c.ID
	}
	// Saved before the providers were set up, as an earlier release would save them.
	template := save(`"channel":2,"type":3,"service":"whatsapp","whatsapp":{"template":"t"}`)
	sms := save(`"channel":2,"type":2,"body":"` + long + `"`)
	omni := save(`"channel":1,"channels":[{"channel":"sms","body":"` + long + `"},{"channel":"whatsapp","whatsapp":{"template":"t"}},{"channel":"push","subject":"s"}]`)
	config, err := text.Twilio("AC0123", "tok", "+15550001111", x.remote.URL, false)
	ok(t, err)
	x.put("message", "sms", config)
	cloud, err := text.WhatsAppCloud("v21.0", "1062840", "tok", x.remote.URL)
	ok(t, err)
	x.put("message", "whatsapp", cloud)

	const (
		language = "whatsapp.language Input should be given"
		fits     = "body Input should have at most 1600 characters"
	)
	for _, c := range []struct{ id, change, want string }{
		{template, `{"name":"m"}`, ""},
		{template, `{"whatsapp":{"template":"t"},"name":"o"}`, ""}, // sent along as it is
		{template, `{"whatsapp":{"template":"u"}}`, language},
		{template, `{"whatsapp":{"template":"t","parameters":["a\tb"]}}`, language},
		{template, `{"whatsapp":{"template":"t","language":"en","parameters":["a\tb"]}}`, "whatsapp.parameters[0] Input should have no line break"},
		{sms, `{"list_id":[]}`, ""},
		{sms, `{"sender":"Shop"}`, ""},
		{sms, `{"body":"b` + long + `"}`, fits},
		{sms, `{"sender_name":"{{x"}`, "sender_name: merge tag"},
		{omni, `{"name":"m"}`, ""},
		{omni, `{"channels":[{"channel":"sms","body":"` + long + `"},{"channel":"whatsapp","whatsapp":{"template":"t"}},{"channel":"push","subject":"t"}]}`, ""},
		{omni, `{"channels":[{"channel":"sms","body":"b` + long + `"},{"channel":"whatsapp","whatsapp":{"template":"t"}}]}`, "channels[0]." + fits},
		{omni, `{"channels":[{"channel":"sms","body":"` + long + `"},{"channel":"whatsapp","whatsapp":{"template":"u"}}]}`, "channels[1]." + language},
		{omni, `{"channels":[{"channel":"sms","body":"` + long + `"},{"channel":"push","subject":"{{x"}]}`, "channels[1].subject: merge tag"},
		{sms, `{"body":"b"}`, ""},
		{sms, `{"body":"` + long + `"}`, fits}, // it was right in between
	} {
		status := map[bool]string{true: "success", false: "failure"}[c.want == ""]
		if m := x.call(status, "PATCH", "/campaign/"+c.id, c.change, nil); !strings.HasPrefix(m, c.want) {
			t.Errorf("%.80s: %s", c.change, m)
		}
	}
	if m := x.call("failure", "POST", "/campaign/"+template+"/send", `{"all_contacts":true}`, nil); !strings.HasPrefix(m, language) {
		t.Errorf("sent: %s", m)
	}
}
