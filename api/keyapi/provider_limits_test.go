package keyapi

import (
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/messaging/text"
)

// TestMessagesThatAProviderNeverTakes: a campaign or a flow with one is refused when it is saved,
// sent or published, by the field; without a provider they are kept, whatever their length, and templates without a language.
func TestMessagesThatAProviderNeverTakes(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	const fits = "body Input should have at most 1600 characters, which is what the provider of sms takes"
	long := strings.Repeat("a", 1601)
	sms := func(body string) string {
		return `{"name":"n","channel":2,"type":2,"date":"2026-01-01","body":"` + body + `"}`
	}
	var before, c record.Campaign
	x.call("success", "POST", "/campaign", sms(long), &before)
	config, err := text.Twilio("AC0123", "tok", "+15550001111", x.remote.URL, false)
	ok(t, err)
	x.put("message", "sms", config)
	refused := func(method, path, body, want string) {
		t.Helper()
		if m := x.call("failure", method, path, body, nil); !strings.HasPrefix(m, want) {
			t.Errorf("%s %s: %s", method, path, m)
		}
	}
	refused("POST", "/campaign", sms(long), fits+"; without its merge tags it has 1601")
	x.call("success", "POST", "/campaign", sms(long[1:]+"{{first_name}}"), &c)
	refused("PATCH", "/campaign/"+c.ID, `{"body":"`+long+`"}`, fits)
	refused("POST", "/campaign", `{"name":"n","channel":1,"channels":[{"channel":"push","subject":"s"},{"channel":"sms","body":"`+long+`"}]}`, "channels[1]."+fits)
	// A link that is counted is longer than the one that was written.
	counted := func(n int) string { return sms(long[:n] + ` https://x.io","track_links":true,"sender":"Shop`) }
	room := 1600 - len("http://127.0.0.1:8080/t/") - 58 - len(" ")
	x.call("success", "POST", "/campaign", counted(room), &c)
	refused("POST", "/campaign", counted(room+1), fits+"; with the links that Muster makes, and without its other merge tags, it has 1601")
	const untold = `{"name":"n","channel":1,"channels":[{"channel":"whatsapp","whatsapp":{"template":"t"}}]}`
	x.call("success", "POST", "/campaign", untold, nil) // whether it needs a language is known with the provider
	cloud, err := text.WhatsAppCloud("v21.0", "1062840", "tok", x.remote.URL)
	ok(t, err)
	x.put("message", "whatsapp", cloud)
	refused("POST", "/campaign", untold, "channels[0].whatsapp.language Input should be given")
	// What was saved before the provider was set up is refused when it is sent.
	refused("POST", "/campaign/"+before.ID+"/send", `{"all_contacts":true}`, fits)
	refused("POST", "/campaign/"+c.ID+"/ab-test/start", `{"all_contacts":true,"variants":[{"body":"a"},{"body":"`+long+`"}]}`, "variants[1]."+fits)
	var saved struct {
		ID string `json:"_id"`
	}
	x.console1("POST", "/templates", `{"name":"Long","subject":"s","html":"`+long+`"}`, &saved)
	refused("POST", "/campaign", `{"name":"n","channel":2,"type":2,"date":"2026-01-01","template_id":"`+saved.ID+`"}`, "template_id Input should have at most 1600")

	publish := func(step string) (string, string) {
		var f struct {
			ID string `json:"_id"`
		}
		x.console1("POST", "/flows", `{"name":"f","trigger":{"type":"event","event":"e"},"steps":[`+step+`]}`, &f)
		_, faults := x.send("GET", api.Prefix+"/flows/"+f.ID+"/validate", "", "Authorization", "Bearer "+x.token)
		_, b := x.send("POST", api.Prefix+"/flows/"+f.ID+"/publish", "", "Authorization", "Bearer "+x.token)
		return b, faults
	}
	for step, want := range map[string]string{
		`{"id":"s","type":"sms","text":"` + long + `"}`:                                                                         "text must have at most 1600 characters",
		`{"id":"s","type":"whatsapp","template":"t"}`:                                                                           "language must be given",
		`{"id":"s","type":"whatsapp","template":"t","language":"en","parameters":["a\nb"]}`:                                     "parameters[0] must have no line break",
		`{"id":"s","type":"omnichannel","channels":[{"channel":"push","title":"t"},{"channel":"sms","text":"` + long + `"}]}`:   "channels[1].text must have at most 1600",
		`{"id":"s","type":"sms","track_links":true,"text":"` + long[:1400] + ` https://x.io/` + strings.Repeat("b", 100) + `"}`: "text must have at most 1600 characters, which is what the provider of sms takes; with the links",
	} {
		b, faults := publish(step)
		if !strings.Contains(b, "the flow is not complete: steps[0] (s): "+want) || !strings.Contains(faults, strings.SplitN(want, " ", 2)[1]) {
			t.Errorf("%.80s: %s, %s", step, b, faults)
		}
	}
	if b, _ := publish(`{"id":"s","type":"sms","text":"` + long[1:] + `{{first_name}}"}`); strings.Contains(b, "characters") {
		t.Error(b)
	}
}
