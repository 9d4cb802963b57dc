package keyapi

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
)

// TestNothingIsSentWithAHole: a campaign passes over people for whom a merge tag has neither
// a value nor a default, on every channel; audience, rendering, answer and statistics name
// the tag, and the credit is given back. They get the campaign when they have a value.
func TestNothingIsSentWithAHole(t *testing.T) {
	t.Parallel()
	const missing = "{{first_name}} has no value for this person, and no default"
	for channel, fields := range map[string]string{
		"email": `"channel":1,"body":"<p>Hello</p>","subject":"{{first_name}}, look"`,
		"sms":   `"channel":2,"type":2,"body":"Hello {{first_name}}"`,
		"push":  `"channel":2,"type":4,"body":"Hello","subject":"Hello","link":"https://shop.example/{{first_name}}"`,
	} {
		t.Run(channel, func(t *testing.T) {
			x := newSending(t)
			ada, bob := x.contact(`{"email":"ada@x.io","first_name":"Ada","phone":"+49301"}`), x.contact(`{"email":"bob@x.io","first_name":" ","phone":"+49302"}`)
			x.addDevice(ada, "phone", "fcm", fcmOne)
			x.addDevice(bob, "phone", "fcm", fcmTwo)
			credits := func() (n int64) {
				ok(t, x.node.Read(t.Context(), x.account, func(v *resolver.View) error { n = v.CompanyState().EmailCredits; return nil }))
				return n
			}
			var c record.Campaign
			x.call("success", "POST", "/campaign", `{"name":"n","date":"2026-01-01",`+fields+`}`, &c)
			var audience campaignAudience
			x.console1("POST", "/campaigns/"+c.ID+"/audience", `{"all_contacts":true}`, &audience)
			if audience.Count != 2 || audience.Reachable != 1 || !maps.Equal(audience.Skipped, map[string]uint64{missing: 1}) {
				t.Errorf("audience %+v", audience)
			}
			var rendered renderedCampaign
			x.console1("POST", "/campaigns/"+c.ID+"/render", `{"email":"bob@x.io"}`, &rendered)
			if rendered.Skipped == nil || *rendered.Skipped != missing {
				t.Errorf("rendered %+v", rendered)
			}
			before := credits()
			var out sendResult
			x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, &out)
			if out.EmailsSent != 1 || !slices.Equal(out.Errors, []string{missing}) {
				t.Errorf("sent %+v", out)
			}
			if cost := before - credits(); channel == "email" && cost != 1 {
				t.Errorf("%d credits were spent on one e-mail", cost)
			}
			var stats campaignStats
			x.call("success", "GET", "/campaign/"+c.ID+"/stats", nil, &stats)
			if stats.EmailsSent != 1 || stats.Failed != 0 || !maps.Equal(stats.Skipped, map[string]int{missing: 1}) {
				t.Errorf("statistics %+v", stats)
			}
			if list := x.captured(channel); len(list) != 1 {
				t.Fatalf("sent %+v", list)
			}
			if m := x.call("failure", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, nil); m != missing {
				t.Errorf("it is sent to no recipient: %q", m)
			}
			x.call("success", "PATCH", "/contacts/"+bob, `{"first_name":"Bob"}`, nil)
			x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, &out)
			stats = campaignStats{}
			x.call("success", "GET", "/campaign/"+c.ID+"/stats", nil, &stats)
			// Ada belongs to the audience, and was sent it before.
			if out.TotalMembers != 2 || out.EmailsSent != 1 || stats.TotalMembers != 2 || !maps.Equal(stats.Skipped, map[string]int{campaigns.AlreadySent: 1}) {
				t.Errorf("a later send: %+v, %+v", out, stats)
			}
			if list := x.captured(channel); len(list) != 2 {
				t.Errorf("with a name: sent %+v", list)
			}
		})
	}
}

// TestSingleEmailWithAHole: a single e-mail whose merge tag has no value in data and
// profile, and no default, is refused by the tag, and nothing is queued.
func TestSingleEmailWithAHole(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	x.contact(`{"email":"ada@x.io","first_name":"Ada"}`)
	x.contact(`{"email":"bob@x.io"}`)
	var template struct {
		ID string `json:"_id"`
	}
	x.console1("POST", "/templates", `{"name":"Order","subject":"Order","html":"<p>Hello {{first_name}},</p>"}`, &template)
	key := x.newKey("campaigns:write").Key
	send := func(to, more string) (int, string) {
		res, b := x.with(key, "POST", "/v1/email/send", `{"to":"`+to+`","template_id":"`+template.ID+`"`+more+`}`)
		return res.StatusCode, b
	}
	for _, to := range []string{"bob@x.io", "nobody@x.io"} {
		if status, b := send(to, ""); status != 400 || !strings.Contains(b, "body: {{first_name}} has no value for this person; give data.first_name, or a default in the template") {
			t.Errorf("%s: %d %s", to, status, b)
		}
		if status, b := send(to, `,"data":{"first_name":"You"}`); status != 200 {
			t.Errorf("%s with data: %d %s", to, status, b)
		}
	}
	if status, b := send("ada@x.io", ""); status != 200 {
		t.Errorf("a person with a name: %d %s", status, b)
	}
	// A repeat gets the first answer, though the name is gone by then. Another key does not.
	cyd := x.contact(`{"email":"cyd@x.io","first_name":"Cyd"}`)
	answer := func(key string) (int, string) {
		status, b := send("cyd@x.io", `,"idempotency_key":"`+key+`"`)
		b, _, _ = strings.Cut(b, `,"request_id"`)
		return status, b
	}
	status, first := answer("one")
	x.call("success", "PATCH", "/contacts/"+cyd, `{"first_name":""}`, nil)
	if again, b := answer("one"); status != 200 || again != 200 || b != first {
		t.Errorf("the first answer is %d %s, that of the repeat %d %s", status, first, again, b)
	}
	if status, b := answer("two"); status != 400 || !strings.Contains(b, "template_id: the template cannot be sent: body: {{first_name}} has no value for this person; give data.first_name") {
		t.Errorf("another message: %d %s", status, b)
	}
}
