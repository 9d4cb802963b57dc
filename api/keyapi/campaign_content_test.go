package keyapi

import (
	"encoding/json"
	"strings"
	"testing"
)

// badContents are texts and addresses that could be sent to nobody, with what the
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
