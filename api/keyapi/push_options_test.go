package keyapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/messaging/push"
)

// TestPushOptions: a link into an app, a picture, the name of what a message replaces and
// the time to live reach the push services, from campaigns and from POST /push/send; a
// browser, which cannot open apps, gets the message without the link.
func TestPushOptions(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	x.put("push", "fcm", x.firebase())
	ada := x.contact(`{"email":"ada@x.io"}`)
	x.addDevice(ada, "phone", "fcm", fcmOne)
	sent := func(what string) {
		t.Helper()
		x.mu.Lock()
		defer x.mu.Unlock()
		if len(x.got) != 1 {
			t.Fatalf("%s: sent %q", what, x.got)
		}
		for _, part := range []string{`myapp://sale?of=1`, `"image":"https://x.example/a.jpg"`, `"collapse_key":"sale"`, `"ttl":"3600s"`} {
			if !strings.Contains(x.got[0], part) {
				t.Errorf("%s: no %s in %s", what, part, x.got[0])
			}
		}
		x.got = nil
	}
	x.call("success", "POST", "/push/send", `{"title":"Sale","link":"myapp://sale?of=1","image":"https://x.example/a.jpg","collapse":"sale","ttlSeconds":3600}`, nil)
	sent("push/send")
	var c record.Campaign
	x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"type":4,"date":"2026-01-01","subject":"Sale","body":"Now","link":"myapp://sale?of=1","push":{"image":"https://x.example/a.jpg","collapse":"sale","ttl_seconds":3600}}`, &c)
	x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, nil)
	sent("campaign")
	if p := c.Push; p == nil || *p != (record.PushOptions{Image: "https://x.example/a.jpg", Collapse: "sale", TTLSeconds: 3600}) {
		t.Errorf("%+v", c)
	}
	x.call("success", "PATCH", "/campaign/"+c.ID, `{"push":{}}`, &c)
	if c.Push != nil {
		t.Errorf("%+v", c.Push)
	}

	keys, err := push.GenerateWebCredentials("mailto:a@b.example")
	ok(t, err)
	x.put("push", "webpush", keys)
	x.addDevice(ada, "browser", "webpush", x.subscription("/live"))
	var got pushResult
	if x.call("success", "POST", "/push/send", `{"title":"Both","link":"myapp://sale"}`, &got); got.Accepted != 2 {
		t.Errorf("%+v", got)
	}

	// Whom a message leaves out for want of a merge tag's value, a dry run leaves out too.
	bob := x.contact(`{"email":"bob@x.io","first_name":"Bob"}`)
	x.addDevice(bob, "phone", "fcm", fcmTwo)
	for _, dry := range []bool{true, false} {
		if x.call("success", "POST", "/push/send", fmt.Sprintf(`{"title":"Dear {{first_name}}","dryRun":%t}`, dry), &got); got.ContactsInSegment != 2 || got.ReachableContacts != 1 || got.Total != 1 {
			t.Errorf("dry run %t: %+v", dry, got)
		}
	}
	for _, dry := range []bool{true, false} {
		if m := x.call("failure", "POST", "/push/send", fmt.Sprintf(`{"title":"Dear {{attributes.none}}","dryRun":%t}`, dry), nil); !strings.Contains(m, "{{attributes.none}} has no value") {
			t.Errorf("dry run %t: %s", dry, m)
		}
	}
	for fields, want := range map[string]string{
		`"subject":"Sale","body":"` + strings.Repeat("b", 5000) + `"`: "title, body, link and data make", `"service":"in_app","subject":"` + strings.Repeat("s", 201) + `"`: "subject: Input", `"service":"in_app","subject":"Sale","body":"` + strings.Repeat("b", 2001) + `"`: "body: Input",
	} {
		if m := x.call("failure", "POST", "/campaign", `{"name":"n","channel":2,"type":4,"date":"2026-01-01",`+fields+`}`, nil); !strings.HasPrefix(m, want) {
			t.Errorf("%.40s: %s", fields, m)
		}
	}
	if m := x.call("failure", "POST", "/push/send", `{"title":"`+strings.Repeat("x", 999)+`{{first_name}}","dryRun":true}`, nil); m != "title Input should have at most 998 bytes" {
		t.Error(m)
	}

	for fields, want := range map[string]string{
		`"type":2,"push":{"collapse":"a"}`:                                      "push Input should be left out where channel is not 2, type not 4 or service in_app: ",
		`"type":4,"service":"in_app","push":{"collapse":"a"}`:                   "push Input should be left out where channel is not 2, type not 4 or service in_app: ",
		`"type":4,"in_app":{"priority":1}`:                                      "in_app Input should be left out where channel is not 2, type not 4 or service not in_app: ",
		`"type":4,"push":{"image":"http://x.example/a.jpg"}`:                    "push.image Input should be an https URL",
		`"type":4,"push":{"image":"https://` + strings.Repeat("x", 2048) + `"}`: "push.image Input should be an https URL",
		`"type":4,"push":{"collapse":"a b"}`:                                    "push.collapse Input should have at most 32 letters",
		`"type":4,"push":{"collapse":"` + strings.Repeat("x", 33) + `"}`:        "push.collapse Input should have at most 32 letters",
		`"type":4,"push":{"ttl_seconds":-1}`:                                    "push.ttl_seconds Input should be from 0 to 2419200",
		`"type":4,"push":{"ttl_seconds":2419201}`:                               "push.ttl_seconds Input should be from 0 to 2419200",
		`"type":4,"push":{"ttl_seconds":"1"}`:                                   "push.ttl_seconds Input should be",
		`"type":4,"push":{"sound":"x"}`:                                         "push.sound is not a field of this call",
	} {
		if m := x.call("failure", "POST", "/campaign", `{"name":"n","channel":2,"date":"2026-01-01",`+fields+`}`, nil); !strings.HasPrefix(m, want) {
			t.Errorf("%s: %s", fields, m)
		}
	}
	for fields, want := range map[string]string{
		`"link":"javascript://x"`: "link", `"link":"file:///etc/passwd"`: "link", `"link":"{{attributes.link}}"`: "link", `"link":"myapp:sale"`: "link",
		`"image":"/a.jpg"`: "image", `"image":"myapp://a"`: "image", `"collapse":"a b"`: "collapse", `"ttlSeconds":-1`: "ttl", `"ttlSeconds":2419201`: "ttl",
	} {
		for _, title := range []string{"Sale", "Sale {{first_name | you}}"} {
			if m := x.call("failure", "POST", "/push/send", `{"title":"`+title+`","dryRun":true,`+fields+`}`, nil); !strings.Contains(m, want) {
				t.Errorf("%s: %s", fields, m)
			}
		}
	}
}

// TestSegmentsOfAnSMS: the rendering for one person says how many segments are charged.
func TestSegmentsOfAnSMS(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	x.contact(`{"email":"ada@x.io","first_name":"Ada"}`)
	x.contact(`{"email":"yu@x.io","first_name":"Юлия"}`)
	var c record.Campaign
	x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"type":2,"date":"2026-01-01","body":"Dear {{first_name}} `+strings.Repeat("a", 150)+`"}`, &c)
	for email, want := range map[string]string{"ada@x.io": "1 GSM-7", "yu@x.io": "3 UCS-2"} {
		var r renderedCampaign
		x.call("success", "POST", "/campaign/"+c.ID+"/render", `{"email":"`+email+`"}`, &r)
		if r.Segments == nil || fmt.Sprint(*r.Segments, " ", *r.Encoding) != want {
			t.Errorf("%s: %+v", email, r)
		}
	}
	x.call("success", "POST", "/campaign", `{"name":"n","channel":1,"subject":"s","body":"b"}`, &c)
	var r renderedCampaign
	if x.call("success", "POST", "/campaign/"+c.ID+"/render", `{"email":"ada@x.io"}`, &r); r.Segments != nil || r.Encoding != nil {
		t.Errorf("%+v", r)
	}
}
