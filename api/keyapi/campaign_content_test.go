package keyapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/internal/record"
)

// badContents are texts and addresses that could not be sent, with what the
// answer must say. Each is refused when it is saved, and by its name.
var badContents = []struct{ field, value, want string }{
	{"reply_to", "nope", "reply_to is no e-mail address"},
	{"reply_to", "a@x.io\r\nBcc: all@x.io", "reply_to contains spaces, brackets or control characters"},
	{"reply_to", "a@x.io,b@x.io", "reply_to is no e-mail address"},
	{"reply_to", "Ada <a@x.io>", "reply_to contains spaces, brackets"},
	{"reply_to", strings.Repeat("x", 65) + "@x.io", "reply_to has 65 bytes before the @"},
	{"reply_to", "a@x_y.io", "reply_to has an invalid domain"},
	{"sender", "a@muster.local,b@muster.local", "sender is no e-mail address"},
	{"sender", "a@muster.local b@muster.local", "sender contains spaces"},
	{"sender", "muster.local", "sender is no e-mail address"},
	{"subject", "Hi {{first_name", "subject: "},
	{"sender_name", "{{x | }}", "sender_name: "},
	{"body", "<p>{{first_name", "body: "},
	{"body", "<a href={{attributes.x}}>x</a>", "body: "},
	{"body", "<script>{{first_name}}</script>", "body: "},
	{"body", "<a href=\"https://x.io/{{first_name\">x</a>", "body: "},
}

func TestCampaignFaultsAreToldWhenItIsSaved(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	good := map[string]string{"name": `"n"`, "channel": "1", "subject": `"Hi {{first_name}}"`, "body": `"<p>Hello <a href=\"https://x.io/{{external_id}}\">you</a>"`,
		"sender": `"news@unverified.example"`, "reply_to": `"änne@exämple.de"`}
	body := func(field, value string) string {
		all := map[string]json.RawMessage{}
		for k, v := range good {
			all[k] = json.RawMessage(v)
		}
		if field != "" {
			b, err := json.Marshal(value)
			ok(t, err)
			all[field] = b
		}
		b, err := json.Marshal(all)
		ok(t, err)
		return string(b)
	}
	var x struct {
		ID string `json:"_id"`
	}
	s.a("POST", "/campaign", body("", ""), &x)
	for _, c := range badContents {
		for method, path := range map[string]string{"POST": "/api/v1/campaign", "PATCH": "/api/v1/campaign/" + x.ID} {
			text := body(c.field, c.value)
			if method == "PATCH" {
				b, err := json.Marshal(map[string]string{c.field: c.value})
				ok(t, err)
				text = string(b)
			}
			_, got := s.with(s.creds.APIKey, method, path, text)
			var answer struct{ Status, Message string }
			ok(t, json.Unmarshal([]byte(got), &answer))
			if answer.Status != "failure" || !strings.HasPrefix(answer.Message, c.want) {
				t.Errorf("%s %s %q: %s, expected %q", method, c.field, c.value, got, c.want)
			}
		}
	}
	// Templates: the same faults, by the template's fields.
	for _, c := range badContents {
		field := map[string]string{"subject": "subject", "body": "html"}[c.field]
		if field == "" || strings.Contains(c.value, "https://x.io") {
			continue
		}
		b, err := json.Marshal(map[string]string{"name": "t", field: c.value})
		ok(t, err)
		resp, got := s.send("POST", "/console/api/v1/templates", string(b), "Authorization", "Bearer "+s.token)
		if resp.StatusCode != 400 || !strings.Contains(got, field+": ") {
			t.Errorf("template %s %q: %d %s", field, c.value, resp.StatusCode, got)
		}
	}
	// A message without markup may hold what HTML may not.
	s.a("POST", "/campaign", `{"name":"n","channel":2,"type":2,"date":"2026-01-01","body":"a <a href={{first_name}}> b","sender":"Muster"}`, nil)
}

// TestUnknownMergeTagsAreRefused: a tag that nothing can fill in would leave a hole in
// every message.
func TestUnknownMergeTagsAreRefused(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	campaign := func(fields string) string { return `{"name":"n","channel":1,` + fields + `}` }
	for body, want := range map[string]string{
		campaign(`"subject":"Hi {{frist_name}}","body":"b"`):                            "subject: {{frist_name}} is not a merge tag of this text. Did you mean {{first_name}}?",
		campaign(`"subject":"s","body":"<p>{{order}}</p>"`):                             "body: {{order}} is not a merge tag of this text; write first_name,",
		campaign(`"subject":"s","body":"<a href=\"https://x.io/?p={{pone}}\">x</a>"`):   "{{pone}} is not a merge tag of this text. Did you mean {{phone}}?",
		campaign(`"subject":"s","body":"b","sender_name":"{{company_name}}"`):           "sender_name: {{company_name}} is not a merge tag of this text;",
		`{"name":"n","channel":2,"type":2,"date":"2026-01-01","body":"{{event.code}}"}`: "{{event.code}} is not a merge tag of this text;",
	} {
		if m := x.call("failure", "POST", "/campaign", body, nil); !strings.Contains(m, want) {
			t.Errorf("%s: %s", body, m)
		}
	}
	if m := x.call("failure", "POST", "/push/send", `{"title":"Hi {{name}}"}`, nil); !strings.HasPrefix(m, "title {{name}} is not a merge tag of this text;") {
		t.Error(m)
	}
	var list []record.Campaign
	if x.call("success", "GET", "/campaign", nil, &list); len(list) != 0 {
		t.Errorf("%d campaigns were made", len(list))
	}
	x.call("success", "POST", "/campaign", campaign(`"subject":"Hi {{first_name}} {{attributes.plan}}","body":"<p>{{order | default: \"nothing\"}} {{unsubscribe_url}}</p>"`), nil)

	// Templates may have values of data and of events; where they are used these must be there.
	template := func(html string) string {
		return `{"name":"n","subject":"s","html":"` + html + `"}`
	}
	res, b := x.send("POST", api.Prefix+"/templates", template("<p>{{frist_name}}</p>"), "Authorization", "Bearer "+x.token)
	if res.StatusCode != 400 || !strings.Contains(b, "html: {{frist_name}} is not a merge tag of this text. Did you mean {{first_name}}?") {
		t.Errorf("%d %s", res.StatusCode, b)
	}
	var order, event struct {
		ID string `json:"_id"`
	}
	x.console1("POST", "/templates", template("<p>{{order.id}}</p>"), &order)
	x.console1("POST", "/templates", template("<p>{{event.code}}</p>"), &event)
	var c struct {
		ID string `json:"_id"`
	}
	x.call("success", "POST", "/campaign", campaign(`"subject":"s","body":"b"`), &c)
	if m := x.call("failure", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true,"template_source":"LIST","template_id":"`+order.ID+`"}`, nil); !strings.Contains(m, "{{order.id}} is not a merge tag") {
		t.Error(m)
	}
	if res, b := x.with(x.creds.APIKey, "POST", "/v1/email/send", `{"to":"a@x.io","template_id":"`+event.ID+`"}`); res.StatusCode != 400 || !strings.Contains(b, "{{event.code}} has a value in flows alone") {
		t.Errorf("%d %s", res.StatusCode, b)
	}
	flow := func(template string) (status int, body string) {
		var f struct {
			ID string `json:"_id"`
		}
		x.console1("POST", "/flows", `{"name":"f","trigger":{"type":"event","event":"e"},"steps":[{"id":"m","type":"email","template_id":"`+template+`"},{"id":"o","type":"sms","text":"{{event.x}}"}]}`, &f)
		res, b := x.send("POST", api.Prefix+"/flows/"+f.ID+"/publish", "", "Authorization", "Bearer "+x.token)
		return res.StatusCode, b
	}
	if status, b := flow(order.ID); status != 400 || !strings.Contains(b, "steps[0] (m): template_id cannot be filled in: {{order.id}} is not a merge tag") {
		t.Errorf("%d %s", status, b)
	}
	_, b = flow(event.ID)
	if strings.Contains(b, "merge tag") {
		t.Error(b)
	}
	// Where no event starts the flow, those of events never have a value.
	for trigger, never := range map[string]bool{
		`{"type":"date","field":"created_at","at":"09:00"}`: true, `{"type":"segment_entered","segment_id":"seg_x"}`: true, `{"type":"segment_exited","segment_id":"seg_x"}`: true,
		`{"type":"list_joined","list_id":"lst_x"}`: false, `{"type":"api"}`: false,
	} {
		var f struct {
			ID string `json:"_id"`
		}
		x.console1("POST", "/flows", `{"name":"f","trigger":`+trigger+`,"steps":[{"id":"o","type":"sms","text":"{{event.x}} {{event.y | default: \"\"}}"}]}`, &f)
		_, b := x.send("GET", api.Prefix+"/flows/"+f.ID+"/validate", "", "Authorization", "Bearer "+x.token)
		if says := strings.Contains(b, "cannot be filled in: {{event.x}} is not a merge tag of this text"); says != never {
			t.Errorf("%s: %s", trigger, b)
		}
	}
}
