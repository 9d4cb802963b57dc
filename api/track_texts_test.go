package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
)

// TestLinksOfTextsAreCounted: with track_links the links of an SMS and of a push message lead
// to where their author wrote, and clicks on them count for the campaign and are events of
// their channel. Without it they stay as they are.
func TestLinksOfTextsAreCounted(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	var ada contacts.Reply
	m.command(contacts.CommandCreate, contacts.Create{Email: "ada@x.io", Phone: "+491701234567", FirstName: "Ada"}, &ada)
	m.command(contacts.CommandConsentSet, contacts.ConsentSet{ID: ada.ID, Channel: "sms", Status: "subscribed"}, nil)
	m.command(contacts.CommandDeviceAdd, contacts.DeviceAdd{Profile: ada.ID, Device: "phone", Kind: "fcm", Address: "token-one-1234567890"}, nil)
	const first, second = "https://shop.example/a?name={{first_name}}", "https://shop.example/b"
	send := func(x campaigns.Campaign) capture.Message {
		t.Helper()
		x.Name, x.Channel, x.Date = "n", campaigns.ChannelSingle, "2026-01-01"
		m.command(campaigns.CommandSave, x, &m.campaign)
		content, err := compose.PrepareCampaign(&x, campaigns.Content{Subject: x.Subject, HTML: x.Body, Link: x.Link})
		ok(t, err)
		_, err = m.dispatcher.Send(t.Context(), m.account, campaigns.Start{ID: m.campaign.ID, Everybody: true, Plan: campaigns.Plan{BatchSize: 10}, Variants: []campaigns.Content{content}}, audit.Author{})
		ok(t, err)
		list, _, err := m.capture.List(capture.Filter{Channel: x.Medium()}, 0, 0)
		ok(t, err)
		return list[0]
	}
	follow := func(text string, want ...string) {
		t.Helper()
		links := trackedLink.FindAllStringSubmatch(text, -1)
		if len(links) != len(want) {
			t.Fatalf("%d links in %s", len(links), text)
		}
		for i, l := range links {
			if res, _ := m.visit("GET", l[1], browser, ""); res.StatusCode != 302 || res.Header.Get("Location") != want[i] {
				t.Errorf("%s: %d %s", l[1], res.StatusCode, res.Header.Get("Location"))
			}
		}
	}
	body := "Hi {{first_name}}, see " + first + " or (" + second + ")."
	sms := send(campaigns.Campaign{Type: campaigns.TypeSMS, Message: campaigns.Message{Body: body}, ChannelOptions: campaigns.ChannelOptions{TrackLinks: true}})
	if !strings.HasPrefix(sms.Body, "Hi Ada, see http://127.0.0.1:8080/t/") || !strings.HasSuffix(sms.Body, ").") {
		t.Errorf("%s", sms.Body)
	}
	follow(sms.Body, "https://shop.example/a?name=Ada", second)
	if r, n := m.run(); r.Clicks != 2 || n.Clicked != 1 || !slices.Equal(r.ByLink, []uint64{1, 1}) {
		t.Errorf("%+v %+v", r, n)
	}
	push := send(campaigns.Campaign{Type: campaigns.TypePush, Message: campaigns.Message{Subject: "Sale", Body: "Now"}, ChannelOptions: campaigns.ChannelOptions{Link: first, TrackLinks: true}})
	follow(push.Headers["Link"], "https://shop.example/a?name=Ada")
	if r, _ := m.run(); r.Clicks != 1 {
		t.Errorf("%+v", r)
	}
	for typ, want := range map[string]uint64{"sms_clicked": 2, "push_clicked": 1, "email_clicked": 0} {
		if n := m.count(typ); n != want {
			t.Errorf("%d events %s, expected %d", n, typ, want)
		}
	}

	if sms = send(campaigns.Campaign{Type: campaigns.TypeSMS, Message: campaigns.Message{Body: body}}); sms.Body != "Hi Ada, see https://shop.example/a?name=Ada or (https://shop.example/b)." {
		t.Errorf("%s", sms.Body)
	}
	// A place in an app cannot be counted on the way to it.
	if push = send(campaigns.Campaign{Type: campaigns.TypePush, Message: campaigns.Message{Subject: "Sale", Body: "Now"}, ChannelOptions: campaigns.ChannelOptions{Link: "myapp://sale", TrackLinks: true}}); push.Headers["Link"] != "myapp://sale" {
		t.Errorf("%+v", push.Headers)
	}
}
