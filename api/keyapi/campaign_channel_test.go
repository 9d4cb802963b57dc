package keyapi

import (
	"testing"

	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
)

// TestChannelOfASentCampaignStays: once a campaign was sent, another channel is refused with
// the remedy, since its statistics are of e-mails; everything else can be changed. A draft
// takes another channel.
func TestChannelOfASentCampaignStays(t *testing.T) {
	t.Parallel()
	s := withMailer(t, func(*email.Message) outcome.Result { return outcome.New(outcome.Accepted, "", "") })
	p := person{s, s.token}
	var x struct {
		ID   string `json:"_id"`
		Type int
		Name string
	}
	p.must("POST", "/contacts", `{"email":"ada@x.io"}`, nil)
	p.must("POST", "/campaigns", `{"name":"n","channel":2,"type":1,"date":"2020-01-01","subject":"S","body":"<p>B</p>"}`, &x)
	campaign := "/campaigns/" + x.ID
	p.must("PATCH", campaign, `{"type":2}`, nil)
	p.must("PATCH", campaign, `{"type":1}`, nil)
	p.must("POST", campaign+"/send", `{"all_contacts":true}`, nil)
	status, a := p.do("PATCH", campaign, `{"type":2,"name":"m"}`)
	if status != 409 || a.Message != "type: the campaign was sent by email, and its statistics are of that; create another campaign to send by sms" {
		t.Errorf("another channel: %d %s", status, a.Message)
	}
	p.must("GET", campaign, "", &x)
	if x.Type != 1 || x.Name != "n" {
		t.Errorf("refused, and yet %+v", x)
	}
	p.must("PATCH", campaign, `{"type":1,"name":"m"}`, &x)
	p.must("PATCH", campaign, `{"channel":1}`, &x) // by e-mail, too
	if x.Name != "m" {
		t.Errorf("changed: %+v", x)
	}
}
