package keyapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
)

// TestOmniChannelCampaigns: each person gets one message, on the first channel that reaches
// them; where the provider says that one does not, or a text would have a hole, it is the
// next. Audience and rendering say so before, statistics by channel after.
func TestOmniChannelCampaigns(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	x.put("push", "fcm", x.firebase())
	x.verifiedDomain("mail.example.com")
	fields := func(name, more string) string {
		return fmt.Sprintf(`{"email":"%s@x.io","first_name":"%[1]s"%s}`, name, more)
	}
	consent := func(id, channel, status string) {
		t.Helper()
		ok(t, second(x.node.Command(t.Context(), x.account, contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: channel, Status: status})))
	}
	// Contacts with a phone are subscribed to texts.
	ada := x.contact(fields("ada", `,"last_name":"L","phone":"+49 (30) 1234567"`))
	bob := x.contact(fields("bob", `,"last_name":"L","phone":"+49 (30) 1234568"`)) // a dead device
	eve := x.contact(fields("eve", ``))                                            // e-mail alone
	dan := x.contact(fields("dan", `,"last_name":"L","phone":"+49 (30) 1234569"`)) // nothing
	x.contact(fields("fay", `,"phone":"+49 (30) 1234560"`))                        // no last name, which the text has
	gil := x.contact(fields("gil", `,"last_name":"L","phone":"+49 (30) 1234561"`)) // refused push
	const gilsToken = "token-gil-1234567890"
	x.addDevice(ada, "phone", "fcm", fcmOne)
	x.addDevice(bob, "phone", "fcm", fcmTwo)
	x.addDevice(gil, "phone", "fcm", gilsToken)
	consent(gil, "push", "unsubscribed")
	for _, channel := range []string{"sms", "email"} {
		consent(dan, channel, "unsubscribed")
	}
	x.dead = []string{fcmTwo}

	var c record.Campaign
	x.call("success", "POST", "/campaign", `{"name":"n","channel":1,"subject":"Sale","body":"<p>Hello {{first_name}} <a href=\"https://shop.example/a\">a</a></p>","sender":"news@mail.example.com","track_links":true,
		"channels":[{"channel":"push","subject":"Sale","body":"Hello {{first_name}}","link":"https://shop.example/p","push":{"collapse":"sale"}},{"channel":"sms","body":"Dear {{last_name}} https://shop.example/s","sender":"Shop"},{"channel":"email"}]}`, &c)
	if len(c.Channels) != 3 || c.Channels[0].Push.Collapse != "sale" || c.Channels[1].Sender != "Shop" || c.Channels[2].Channel != "email" || c.Type != nil {
		t.Fatalf("%+v", c)
	}
	path := "/campaign/" + c.ID
	var audience campaignAudience
	x.call("success", "POST", path+"/audience", `{"all_contacts":true}`, &audience)
	if audience.Count != 6 || audience.Reachable != 5 || !maps.Equal(audience.Channels, map[string]uint64{"push": 2, "sms": 1, "email": 2}) || !maps.Equal(audience.Skipped, map[string]uint64{campaigns.NoChannel: 1}) {
		t.Errorf("%+v", audience)
	}
	for person, want := range map[string]string{
		ada: `push [] Hello ada`, gil: `sms [] Dear L https://shop.example/s`, eve: `email [] <p>Hello eve`, dan: `push [` + campaigns.NoChannel + `] Hello dan`,
	} {
		var r renderedCampaign
		x.call("success", "POST", path+"/render", fmt.Sprintf(`{"profile_id":%q}`, person), &r)
		skipped := ""
		if r.Skipped != nil {
			skipped = *r.Skipped
		}
		if got := fmt.Sprintf("%s [%s] %s%s", r.Channel, skipped, r.Text, r.HTML); !strings.HasPrefix(got, want) || (r.Segments != nil) != (r.Channel == "sms") {
			t.Errorf("%s, expected %s", got, want)
		}
		if sender := map[string]string{"email": "news@mail.example.com", "sms": "Shop"}[r.Channel]; r.Sender != sender {
			t.Errorf("%s from %q, expected %q", r.Channel, r.Sender, sender)
		}
	}
	var r renderedCampaign
	if x.call("success", "POST", path+"/render", fmt.Sprintf(`{"profile_id":%q,"via":"email"}`, ada), &r); r.Channel != "email" || r.Subject != "Sale" || r.Skipped != nil {
		t.Errorf("%+v", r)
	}

	var out sendResult
	x.call("success", "POST", path+"/send", `{"all_contacts":true}`, &out)
	if out.TotalMembers != 6 || out.EmailsSent != 5 {
		t.Errorf("%+v", out)
	}
	texts, mails := x.captured("sms"), x.captured("email")
	var to []string
	for _, m := range append(texts, mails...) {
		to = append(to, m.To)
	}
	if slices.Sort(to); len(texts) != 2 || !slices.Equal(to, []string{"+49301234561", "+49301234568", "eve@x.io", "fay@x.io"}) {
		t.Errorf("sent to %q", to)
	}
	if len(texts) > 0 && (texts[0].From != "Shop" || !strings.Contains(texts[0].Body, "Dear L http://127.0.0.1:8080/")) {
		t.Errorf("%+v", texts[0])
	}
	x.mu.Lock()
	pushes := slices.Clone(x.got)
	x.mu.Unlock()
	if len(pushes) != 2 || strings.Contains(strings.Join(pushes, ""), gilsToken) {
		t.Errorf("pushed %q", pushes)
	}
	var stats campaignStats
	x.call("success", "GET", path+"/stats", nil, &stats)
	if stats.EmailsSent != 5 || stats.Failed != 0 || !maps.Equal(stats.Skipped, map[string]int{campaigns.NoChannel: 1}) || len(stats.Links) != 3 || len(stats.Channels) != 3 {
		t.Errorf("%+v", stats)
	}
	for i, want := range []string{
		`push 1 1 map[no device:3 unsubscribed:1]`, `sms 2 0 map[no phone:1 unsubscribed:1 {{last_name}} has no value for this person, and no default:1]`, `email 2 0 map[unsubscribed:1]`,
	} {
		n := stats.Channels[i]
		if got := fmt.Sprint(n.Channel, " ", n.EmailsSent, n.Failed, n.Skipped); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
	var activity []recipientActivity
	if x.call("success", "GET", path+"/recipients/activity", nil, &activity); len(activity) != 5 {
		t.Errorf("%+v", activity)
	}
	if m := x.call("failure", "PATCH", path, `{"channels":[]}`, nil); !strings.HasPrefix(m, "channels: the campaign was sent by omni") {
		t.Error(m)
	}
	// Sent again, no recipient gets anything: the one whom no channel reached still has
	// none.
	x.call("success", "POST", path+"/send", `{"all_contacts":true}`, &out)
	if out.EmailsSent != 0 || len(x.captured("sms"))+len(x.captured("email")) != 4 {
		t.Errorf("%+v", out)
	}
}

// TestOmniChannelFaults: errors name the field of their channel.
func TestOmniChannelFaults(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	x.verifiedDomain("mail.example.com")
	create := func(fields string) string { return `{"name":"n","channel":1,` + fields + `}` }
	for fields, want := range map[string]string{
		`"channels":[{"channel":"sms","body":"{{nothing}}"}]`:                `channels[0].body: {{nothing}}`,
		`"channels":[{"channel":"email"},{"channel":"push","subject":"{{"}]`: `channels[1].subject: `,
		`"channels":[{"channel":"email"}],"body":"{{nothing}}"`:              `body: {{nothing}}`,
		`"channels":[{"channel":"fax"}]`:                                     `channels[0].channel Input should be`,
		`"channels":[{"body":"b"}]`:                                          `channels[0].channel Input should be`,
		`"channels":[{"channel":"whatsapp","whatsapp":{"language":"en"}}]`:   `channels[0].whatsapp.template Field required`,
		`"channels":[{"channel":"sms","colour":"red"}]`:                      `colour`,
		`"channels":"sms"`: `channels`,
	} {
		if m := x.call("failure", "POST", "/campaign", create(fields), nil); !strings.Contains(m, want) {
			t.Errorf("%s: %q, expected %q", fields, m, want)
		}
	}
	if m := x.call("failure", "POST", "/campaign", `{"name":"n","channel":2,"type":1,"date":"2026-01-01","channels":[{"channel":"sms"}]}`, nil); !strings.Contains(m, "channels Input should be left out where channel is not 1") {
		t.Error(m)
	}
	var c record.Campaign
	x.call("success", "POST", "/campaign", create(`"subject":"s","body":"b","channels":[{"channel":"push","body":"b"},{"channel":"sms"}]`), &c)
	path := "/campaign/" + c.ID
	for _, f := range []struct{ path, body, want string }{
		{"/send", `{"all_contacts":true}`, "channels[0].subject: Field required"},
		{"/send", `{"all_contacts":true,"template_id":"tpl_x"}`, "template_id Input should be left out: the campaign does not go out by e-mail"},
		{"/ab-test/start", `{"all_contacts":true,"variants":[{},{}]}`, "an A/B test compares texts on one channel"},
		{"/test-send", `{"to":["+49 30 1"],"via":"email"}`, "via Input should be a channel of the campaign: push, sms"},
		{"/test-send", `{"to":["+49 30 1"],"via":"sms"}`, "body Field required"},
		{"/test-send", `{"to":["ann@people.example"],"channels":[{"channel":"fax"}]}`, "channels[0].channel Input should be email"},
		{"/render", `{"email":"ann@people.example","channels":[{"channel":"sms"},{"channel":"sms"}]}`, "channels[1].channel Input should name each channel once"},
		{"/render", `{"email":"ann@people.example","via":"sms","template_id":"tpl_x"}`, "template_id Input should be left out"},
		{"/test-send", `{"to":["+49 30 1"]}`, "a push message goes to devices"},
	} {
		if m := x.call("failure", "POST", path+f.path, f.body, nil); !strings.Contains(m, f.want) {
			t.Errorf("%s: %q, expected %q", f.path, m, f.want)
		}
	}
	x.call("success", "POST", path+"/test-send", `{"to":["+49 30 1"],"via":"sms","channels":[{"channel":"sms","body":"Try {{first_name | default: \"you\"}}"}]}`, nil)
	if got := x.captured("sms"); len(got) != 1 || got[0].Body != "[Test] Try you" {
		t.Errorf("%+v", got)
	}
	x.call("success", "PATCH", path, `{"channels":[]}`, &c)
	if len(c.Channels) != 0 {
		t.Errorf("%+v", c.Channels)
	}
}
