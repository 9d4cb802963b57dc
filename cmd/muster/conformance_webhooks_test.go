package main

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/musterhq/muster/messaging/webhook"
)

// hook registers a receiver of events and returns its path and its secret.
func (c *check) hook(events ...string) (id, path, secret string) {
	c.Helper()
	path = "/" + c.name("hook")
	a := c.console("POST", "/webhooks", obj{"url": c.remote.plain.URL + path, "events": events}).http(200)
	return a.str("data._id"), path, a.str("data.secret")
}

// told waits for a receiver's delivery of an event and returns it.
func (c *check) told(path, event string) (found delivery) {
	c.Helper()
	c.until("the receiver hears of "+event, func() bool {
		for _, d := range c.remote.received(path) {
			var body struct{ Type string }
			if json.Unmarshal(d.body, &body) == nil && body.Type == event {
				found = d
				return true
			}
		}
		return false
	})
	return found
}

func webhookPart() part {
	return part{"webhooks", []rule{
		{"delivery, open, click and bounce are told, signed", func(c *check) {
			_, path, text := c.hook("email.*")
			e := c.mail("told")
			id := c.campaign(obj{"body": `<p><a href="https://shop.example/a">A</a></p>`})
			c.send(id, c.list(e, c.mail("gone"))).success()
			l := c.links(e)
			c.fetch(l.pixel)
			c.fetch(l.clicks[0])
			c.report(obj{"type": "delivery", "message_id": c.relay.to(e)[0].header.Get("Message-Id")})
			secret, err := webhook.ParseSecret(text)
			ok(c.T, err)
			for _, event := range []string{"email.sent", "email.delivered", "email.opened", "email.clicked", "email.bounced"} {
				d := c.told(path, event)
				if err := webhook.Verify(d.header.Get, d.body, []webhook.Secret{secret}, time.Now()); err != nil {
					c.Errorf("%s: %v", event, err)
				}
				var body struct {
					Timestamp string
					Data      struct {
						CampaignID string `json:"campaign_id"`
					}
				}
				ok(c.T, json.Unmarshal(d.body, &body))
				if !instant.MatchString(body.Timestamp) || body.Data.CampaignID != id {
					c.Errorf("%s: %s", event, d.body)
				}
			}
		}},
		{"analytics are told: changes of segments, campaigns that are done, the day's numbers", func(c *check) {
			names := []string{}
			for _, x := range c.console("GET", "/webhooks/events", nil).http(200).array("data") {
				names = append(names, x.(obj)["name"].(string))
			}
			for _, want := range []string{"analytics.daily", "campaign.sent", "segment.entered", "segment.exited", "contact.created"} {
				if !slices.Contains(names, want) {
					c.Errorf("the events are %v, expected %s", names, want)
				}
			}
			_, path, _ := c.hook("campaign.sent", "segment.*", "analytics.daily")
			seg := c.segment(obj{"kind": "activity", "event": "hooked"})
			e := c.mail("entered")
			c.event("hooked", obj{"email": e}, nil)
			c.a("POST", "/campaign/"+c.campaign(nil)+"/send", obj{"segment_ids": []string{seg}}).success()
			c.told(path, "segment.entered")
			c.told(path, "campaign.sent")
		}},
		{"only subscribed events are delivered", func(c *check) {
			_, path, _ := c.hook("list.joined")
			c.list(c.mail("joined"))
			c.told(path, "list.joined")
			for _, d := range c.remote.received(path) {
				var body struct{ Type string }
				if ok(c.T, json.Unmarshal(d.body, &body)); body.Type != "list.joined" {
					c.Errorf("delivered %s", body.Type)
				}
			}
		}},
		{"a failed delivery is tried again with a pause that grows, under the same id, until it succeeds", func(c *check) {
			id, path, _ := c.hook("list.joined")
			c.remote.mu.Lock()
			c.remote.fails[path] = 2
			c.remote.mu.Unlock()
			c.list(c.mail("retried"))
			// The pauses are random, up to 5 and up to 15 seconds.
			c.until("the third attempt", func() bool { return len(c.remote.received(path)) >= 3 })
			got := c.remote.received(path)
			for _, d := range got[1:] {
				if d.header.Get(webhook.HeaderID) != got[0].header.Get(webhook.HeaderID) || string(d.body) != string(got[0].body) {
					c.Errorf("%s %s was tried again as %s %s", got[0].header, got[0].body, d.header, d.body)
				}
			}
			if first, second := got[1].at.Sub(got[0].at), got[2].at.Sub(got[1].at); first > 15*time.Second || second > 25*time.Second { // and what a busy machine adds
				c.Errorf("the pauses were %v and %v", first, second)
			}
			c.until("it is delivered", func() bool { return c.console("GET", "/webhooks/"+id, nil).http(200).num("data.delivered") == 1 })
			c.console("GET", "/webhooks/"+id, nil).http(200).eq("data.failures", 2).eq("data.failing", 0).eq("data.waiting", 0)
		}},
	}}
}
