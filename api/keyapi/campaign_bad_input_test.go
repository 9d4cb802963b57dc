package keyapi

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/resolver/contacts"
)

// TestOmniChannelBadInput makes the mistakes that docs/behaviour/messages.md lists of omni-channel
// campaigns: each row has the fields beside the name and channel 1, and the answer.
func TestOmniChannelBadInput(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	page, err := os.ReadFile("../../docs/behaviour/messages.md")
	ok(t, err)
	_, table, _ := strings.Cut(string(page), "**Bad input of omni-channel campaigns.**")
	_, table, _ = strings.Cut(table, "|---|---|\n")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 2 {
			break
		}
		rows++
		fields, want := strings.Trim(cells[0], " `"), strings.Trim(cells[1], " `")
		if m := x.call("failure", "POST", "/campaign", `{"name":"n","channel":1,`+fields+`}`, nil); m != want {
			t.Errorf("%s is answered\n%s, the page has\n%s", fields, m, want)
		}
	}
	if rows < 9 {
		t.Errorf("the page has %d rows", rows)
	}
	// E-mail is what such a campaign is without channels.
	x.call("success", "POST", "/campaign", `{"name":"n","channel":1,"type":1}`, nil)
}

// TestInAppFaultsNameTheField: the text of an in-app message, and of others without markup, is the
// body of the request.
func TestInAppFaultsNameTheField(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	for fields, want := range map[string]string{
		`"channel":2,"type":4,"service":"in_app","date":"2026-01-01","subject":"s","body":"` + strings.Repeat("x", 2001) + `"`: "body: ",
		`"channel":1,"channels":[{"channel":"in_app","subject":"s","body":"` + strings.Repeat("x", 2001) + `"}]`:               "channels[0].body: ",
		`"channel":2,"type":4,"service":"in_app","date":"2026-01-01","subject":"` + strings.Repeat("x", 201) + `","body":"b"`:  "subject: ",
	} {
		m := x.call("failure", "POST", "/campaign", `{"name":"n",`+fields+`}`, nil)
		if !strings.HasPrefix(m, want) {
			t.Errorf("%.60s: %s", fields, m)
		}
	}
	if m := x.call("failure", "POST", "/campaign", `{"name":"n","channel":2,"type":2,"date":"2026-01-01","body":"{{x"}`, nil); !strings.HasPrefix(m, "body") {
		t.Errorf("a text: %s", m)
	}
}

// TestSegmentsAreThoseThatGoOut: a rendering counts the segments of the message that the person
// gets, with the links that the service makes.
func TestSegmentsAreThoseThatGoOut(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	ada := x.contact(`{"email":"ada@x.io","first_name":"Ada","phone":"+49301234567"}`)
	ok(t, second(x.node.Command(t.Context(), x.account, contacts.CommandConsentSet, contacts.ConsentSet{ID: ada, Channel: "sms", Status: "subscribed"})))
	for body, links := range map[string]int{
		`Hi {{first_name}}`: 0, `Bye {{unsubscribe_url}}`: 1, `{{preferences_url}} ` + strings.Repeat("x", 60): 1,
		`See https://shop.example/a and https://shop.example/b.`: 2, "\u0416 {{unsubscribe_url}}": 1,
	} {
		var c record.Campaign
		var r renderedCampaign
		x.call("success", "POST", "/campaign", fmt.Sprintf(`{"name":"n","channel":2,"type":2,"date":"2026-01-01","track_links":true,"body":%q}`, body), &c)
		x.call("success", "POST", "/campaign/"+c.ID+"/render", `{"email":"ada@x.io"}`, &r)
		x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, nil)
		list := x.captured("sms")
		sent := list[0].Body // the newest
		if strings.Count(sent, "http://127.0.0.1:8080/") != links {
			t.Fatalf("%q: sent %q", body, sent)
		}
		if n := text.Segments(sent); *r.Segments != n.Segments || *r.Encoding != string(n.Encoding) {
			t.Errorf("%q: %d segments of %s, and %d of %s go out", body, *r.Segments, *r.Encoding, n.Segments, n.Encoding)
		}
	}
}
