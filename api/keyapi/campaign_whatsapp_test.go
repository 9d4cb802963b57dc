package keyapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/conversations"
	"github.com/musterhq/muster/resolver/view"
)

// TestWhatsAppCampaigns: a template goes to all who subscribed, a text only to those who
// wrote within 24 hours; the audience and the preview of it say so before.
func TestWhatsAppCampaigns(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	config, err := text.WhatsAppCloud("v21.0", "1062840", "cloud-token", x.remote.URL)
	ok(t, err)
	x.put("message", "whatsapp", config)
	ada := x.contact(`{"email":"ada@x.io","first_name":"Ada","phone":"+49 (30) 1234567"}`)
	bob := x.contact(`{"email":"bob@x.io","first_name":"Bob","phone":"+49 (30) 1234568"}`)
	x.contact(`{"email":"eve@x.io","first_name":"Eve","phone":"+49 (30) 1234569"}`)
	for _, id := range []string{ada, bob} {
		ok(t, second(x.node.Command(t.Context(), x.account, contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "whatsapp", Status: "subscribed"})))
	}
	// The account's own server may send the event, but opens no conversation by it.
	if res, b := x.with(x.creds.APIKey, "POST", "/v1/events", fmt.Sprintf(`{"email":"ada@x.io","event":%q}`, conversations.Received)); res.StatusCode != 200 {
		t.Fatal(b)
	}
	var open conversations.Open
	ok(t, x.node.Read(t.Context(), x.account, func(v *resolver.View) error {
		open.Number = v.Reach().ConversationNumber("+49301234568")
		return nil
	}))
	ok(t, second(x.node.Command(t.Context(), x.account, conversations.CommandOpen, open)))
	type campaign struct {
		record.Campaign
		audience campaignAudience
		out      sendResult
		stats    campaignStats
	}
	send := func(fields string) (c campaign) {
		t.Helper()
		x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"type":3,"service":"whatsapp","date":"2026-01-01",`+fields+`}`, &c.Campaign)
		path := "/campaign/" + c.ID
		x.call("success", "POST", path+"/audience", `{"all_contacts":true}`, &c.audience)
		x.call("success", "POST", path+"/send", `{"all_contacts":true}`, &c.out)
		x.call("success", "GET", path+"/stats", nil, &c.stats)
		return c
	}
	calls := func() []string {
		x.mu.Lock()
		defer x.mu.Unlock()
		got := x.got
		x.got = nil
		slices.Sort(got)
		return got
	}

	c := send(`"whatsapp":{"template":"january_sale","language":"en_US","parameters":["{{first_name}}","all"],"header":"https://x.example/a.png"}`)
	got := calls()
	if len(got) != 2 || c.out.EmailsSent != 2 || c.audience.Reachable != 2 || c.audience.Skipped["not subscribed"] != 1 || c.stats.Skipped["not subscribed"] != 1 {
		t.Fatalf("%+v %q", c, got)
	}
	for i, name := range []string{"Ada", "Bob"} {
		for _, part := range []string{`"type":"template"`, `"name":"january_sale"`, `"code":"en_US"`, `{"text":"` + name + `","type":"text"}`, `"link":"https://x.example/a.png"`, `"to":"+4930123456`} {
			if !strings.Contains(got[i], part) {
				t.Errorf("no %s in %s", part, got[i])
			}
		}
	}
	if w := c.WhatsApp; *c.Service != "whatsapp" || *c.Type != 3 || w == nil || w.Template != "january_sale" || w.Language != "en_US" || len(w.Parameters) != 2 || w.Header == "" {
		t.Errorf("%+v", c.Campaign)
	}
	var list []recipientActivity
	if x.call("success", "GET", "/campaign/"+c.ID+"/recipients/activity", nil, &list); len(list) != 2 || !list[0].Sent {
		t.Errorf("%+v", list)
	}

	c = send(`"body":"Dear {{first_name}}"`)
	if got = calls(); len(got) != 1 || !strings.Contains(got[0], `"body":"Dear Bob"`) || c.audience.Reachable != 1 || c.audience.Skipped[view.NotInConversation] != 1 || c.stats.Skipped[view.NotInConversation] != 1 || c.out.EmailsSent != 1 {
		t.Fatalf("%+v %q", c, got)
	}
	var r renderedCampaign
	if x.call("success", "POST", "/campaign/"+c.ID+"/render", `{"email":"ada@x.io"}`, &r); r.Skipped == nil || *r.Skipped != view.NotInConversation || r.Text != "Dear Ada" || r.Channel != "whatsapp" {
		t.Errorf("%+v", r)
	}
	if x.call("success", "POST", "/campaign/"+c.ID+"/render", `{"email":"ada@x.io","body":"","whatsapp":{"template":"t","language":"de","parameters":["{{first_name}}"]}}`, &r); r.Skipped != nil && *r.Skipped != "already sent" || r.Text != "template t (de)\nAda" {
		t.Errorf("%+v", r)
	}
	// A tag without a value keeps a template from those who have none.
	var none campaign
	x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"type":3,"service":"whatsapp","date":"2026-01-01","whatsapp":{"template":"january_sale","language":"en_US","parameters":["{{last_name}}"]}}`, &none.Campaign)
	x.call("success", "POST", "/campaign/"+none.ID+"/audience", `{"all_contacts":true}`, &none.audience)
	x.call("failure", "POST", "/campaign/"+none.ID+"/send", `{"all_contacts":true}`, nil)
	if got = calls(); len(got) != 0 || none.audience.Reachable != 0 || none.audience.Skipped["{{last_name}} has no value for this person, and no default"] != 2 {
		t.Errorf("%+v %q", none, got)
	}
	// Named parameters, a film and buttons; a render shows them.
	var full campaign
	x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"type":3,"service":"whatsapp","date":"2026-01-01","whatsapp":{"template":"t","language":"de","named_parameters":{"name":"{{first_name}}"},"header_type":"video","header":"https://x.example/a.mp4","buttons":[{"type":"url","index":1,"value":"sale?to={{email}}"}]}}`, &full.Campaign)
	if w := full.WhatsApp; w.NamedParameters["name"] != "{{first_name}}" || w.HeaderType != "video" || len(w.Buttons) != 1 || w.Buttons[0].Index != 1 || len(w.Parameters) != 0 {
		t.Errorf("%+v", w)
	}
	if x.call("success", "POST", "/campaign/"+full.ID+"/render", `{"email":"ada@x.io"}`, &r); r.Text != "template t (de)\nhttps://x.example/a.mp4\nname: Ada\nbutton 1: sale?to=ada%40x.io" {
		t.Errorf("%q", r.Text)
	}
	x.call("success", "POST", "/campaign/"+full.ID+"/send", `{"all_contacts":true}`, nil)
	if got = calls(); len(got) != 2 || !strings.Contains(got[0], `{"parameter_name":"name","text":"Ada","type":"text"}`) || !strings.Contains(got[0], `{"index":"1","parameters":[{"text":"sale?to=ada%40x.io","type":"text"}],"sub_type":"url","type":"button"}`) {
		t.Errorf("%q", got)
	}
	// A rendering refuses a place that saving refuses, and one that a person's own values make
	// such, which the send fails for.
	place := func(latitude string) string {
		return `"whatsapp":{"template":"t","language":"de","header_type":"location","header_location":{"latitude":"` + latitude + `","longitude":"13.4"}}`
	}
	wrong := "whatsapp.header_location.latitude Input should be degrees from -90 to 90, such as 52.52"
	for _, latitude := range []string{"91", "{{attributes.none | 91}}", "{{first_name}}"} {
		if m := x.call("failure", "POST", "/campaign/"+full.ID+"/render", `{"email":"ada@x.io",`+place(latitude)+`}`, nil); m != wrong {
			t.Errorf("%s: %s", latitude, m)
		}
	}
	if m := x.call("failure", "PATCH", "/campaign/"+full.ID, `{`+place("91")+`}`, nil); m != wrong {
		t.Errorf("saving: %s", m)
	}
	x.call("success", "POST", "/campaign/"+full.ID+"/render", `{"email":"ada@x.io",`+place("{{attributes.none | 52.5}}")+`}`, nil)
	// A test of a template is the template, without a mark.
	x.call("success", "POST", "/campaign/"+none.ID+"/test-send", `{"to":["+49301234560"],"email":"ada@x.io","whatsapp":{"template":"t","language":"de","parameters":["{{first_name}}"]}}`, nil)
	if got = calls(); len(got) != 1 || !strings.Contains(got[0], `"name":"t"`) || !strings.Contains(got[0], `"text":"Ada"`) {
		t.Errorf("%q", got)
	}
	// A test that is a text goes only to numbers that wrote within 24 hours.
	var test testSendAnswer
	x.call("success", "POST", "/campaign/"+c.ID+"/test-send", `{"to":["+49 (30) 1234567","+49 (30) 1234568"]}`, &test)
	if want := "+49 (30) 1234567 skipped " + view.NotInConversation + ", +49 (30) 1234568 sent"; test.statuses() != want {
		t.Errorf("%s, expected %s", test.statuses(), want)
	}
	if got = calls(); len(got) != 1 || !strings.Contains(got[0], `"body":"[Test] Dear "`) {
		t.Errorf("%q", got)
	}
}

// TestWhatsAppFieldsOfCampaigns: what cannot be sent is refused by its field.
func TestWhatsAppFieldsOfCampaigns(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	for fields, want := range map[string]string{
		`"type":3,"service":"telegram"`:                                                                                  "service Input should be whatsapp",
		`"type":2,"service":"whatsapp"`:                                                                                  "service Input should be left out where channel is not 2 or type not 3",
		`"type":3,"whatsapp":{"template":"t"}`:                                                                           `whatsapp Input should be left out without "service": "whatsapp"`,
		`"type":3,"service":"whatsapp","whatsapp":{"language":"de"}`:                                                     "whatsapp.template Field required",
		`"type":3,"service":"whatsapp","whatsapp":{"template":"` + strings.Repeat("x", 513) + `"}`:                       "whatsapp.template Field required",
		`"type":3,"service":"whatsapp","whatsapp":{"template":"t","parameters":[" "]}`:                                   "whatsapp.parameters[0] Input should have 1 to 1024 bytes",
		`"type":3,"service":"whatsapp","whatsapp":{"template":"t","parameters":["{{x"]}`:                                 "whatsapp.parameters[0]: ",
		`"type":3,"service":"whatsapp","whatsapp":{"template":"t","header":"{{frist_name}}"}`:                            "whatsapp.header: ",
		`"type":3,"service":"whatsapp","body":"b","whatsapp":{"template":"t"}`:                                           "whatsapp Input should be left out where there is a body or template_id",
		`"type":3,"service":"whatsapp","whatsapp":{"template":"t","parameters":[` + strings.Repeat(`"a",`, 20) + `"a"]}`: "whatsapp.parameters Input should have at most 20 entries",
		`"type":3,"service":"whatsapp","whatsapp":{"template":"t","language":"` + strings.Repeat("x", 21) + `"}`:         "whatsapp.language Input should have at most 20 bytes",
		`"type":3,"service":"whatsapp","whatsapp":{"template":"t","header":"` + strings.Repeat("x", 1025) + `"}`:         "whatsapp.header Input should have at most 1024 bytes",
		`"type":3,"service":"whatsapp","whatsapp":{"template":"t","named_parameters":{"name":"{{frist_name}}"}}`:         "whatsapp.named_parameters.name: ",
		`"type":3,"service":"whatsapp","whatsapp":{"template":"t","header_type":"gif","header":"x"}`:                     "whatsapp.header_type Input should be text, image, video, document or location",
		`"type":3,"service":"whatsapp","whatsapp":{"template":"t","buttons":[{"type":"url","value":"{{x"}]}`:             "whatsapp.buttons[0].value: ",
		`"type":3,"service":"whatsapp","whatsapp":{"template":"t","buttons":[{"sub_type":"url"}]}`:                       "whatsapp.buttons[0].sub_type is not a field of this call",
		`"type":3,"service":"whatsapp","whatsapp":"t"`:                                                                   "whatsapp Input should be a valid object",
		`"type":3,"service":"whatsapp","whatsapp":{"name":"t"}`:                                                          "whatsapp.name is not a field of this call",
	} {
		if m := x.call("failure", "POST", "/campaign", `{"name":"n","channel":2,"date":"2026-01-01",`+fields+`}`, nil); !strings.HasPrefix(m, want) {
			t.Errorf("%s: %s", fields, m)
		}
	}
	var c record.Campaign
	x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"type":3,"service":"whatsapp","date":"2026-01-01","whatsapp":{"template":"t","language":"en"}}`, &c)
	// The template is taken away, and so is the service.
	x.call("success", "PATCH", "/campaign/"+c.ID, `{"whatsapp":{},"service":"","body":"b"}`, &c)
	if c.Service != nil || c.WhatsApp != nil || *c.Body != "b" {
		t.Errorf("%+v", c)
	}
}
