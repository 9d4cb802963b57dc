package main

import (
	"strings"
	"time"
)

// pushOptionsPart: how push messages replace each other, how long they are tried, and what they open.
func pushOptionsPart() part {
	var path string
	sent := func(c *check, n int) (topic, ttl string) {
		c.Helper()
		got := c.remote.pushes(path)
		if len(got) != n {
			c.Fatalf("%d messages came, expected %d", len(got), n)
		}
		return got[n-1].Get("Topic"), got[n-1].Get("TTL")
	}
	return part{"push messages: options", []rule{
		{"messages with one collapse replace each other, others do not", func(c *check) {
			c.console("PUT", "/push-credentials/webpush", obj{"generate": true, "subject": "mailto:push@muster.local"}).http(200)
			path = c.device(c.contact(obj{"email": c.mail("device")}), "live")
			topics := map[string]int{}
			for i, body := range []obj{{"collapse": "cart"}, {"collapse": "cart"}, {"collapse": "news"}, {}, {}} {
				body["title"] = "T"
				c.a("POST", "/push/send", body).says("success", "sent").eq("data.accepted", 1)
				topic, _ := sent(c, i+1)
				topics[topic]++
			}
			if len(topics) != 4 || topics[""] != 0 {
				c.Errorf("topics: %v", topics)
			}
		}},
		{"ttlSeconds is how long the service keeps trying", func(c *check) {
			before := len(c.remote.pushes(path))
			c.a("POST", "/push/send", obj{"title": "T", "ttlSeconds": 3600}).says("success", "sent")
			if _, ttl := sent(c, before+1); ttl != "3600" {
				c.Errorf("TTL %s", ttl)
			}
		}},
		{"a campaign and a step have the same options", func(c *check) {
			before := len(c.remote.pushes(path))
			id := c.a("POST", "/campaign", obj{"name": "push", "channel": 2, "type": 4, "date": "2026-01-31", "subject": "T", "body": "B", "push": obj{"collapse": "cart", "ttl_seconds": 60}}).success().str("data._id")
			c.a("POST", "/campaign/"+id+"/send", obj{"all_contacts": true}).success().eq("data.emails_sent", 1)
			topic, ttl := sent(c, before+1)
			kind, e := c.name("pushed_"), c.mail("walker")
			path = c.device(c.contact(obj{"email": e}), "live")
			flow := c.live(onEvent(kind), step("p", "push", "", obj{"title": "T", "collapse": "cart", "ttl_seconds": 60}))
			c.through(flow, c.event(kind, obj{"email": e}, nil))
			c.until("the message of the step comes", func() bool { return len(c.remote.pushes(path)) == 1 })
			if topicOfStep, ttlOfStep := sent(c, 1); topic != topicOfStep || ttl != "60" || ttlOfStep != "60" {
				c.Errorf("topics %s and %s, TTL %s and %s", topic, topicOfStep, ttl, ttlOfStep)
			}
		}},
		{"a link may lead into an app, an image is https", func(c *check) {
			y := c.other() // with no credentials, messages are kept for looking at
			y.a("POST", "/contacts/"+y.contact(obj{})+"/devices", obj{"kind": "fcm", "address": "token-1234567890-abcdef"}).success()
			y.a("POST", "/push/send", obj{"title": "T", "link": "myapp://sale?id=1", "image": "https://shop.example/a.png"}).says("success", "sent").eq("data.accepted", 1)
			y.console("GET", "/outbox?channel=push", nil).http(200).length("data", 1).eq("data.0.headers.Link", "myapp://sale?id=1").eq("data.0.headers.Image", "https://shop.example/a.png")
			for field, body := range map[string]obj{"link": {"link": "javascript:x"}, "image": {"image": "http://shop.example/a.png"}, "collapse": {"collapse": strings.Repeat("x", 200)}, "ttlSeconds": {"ttlSeconds": 28*24*3600 + 1}} {
				body["title"] = "T"
				y.a("POST", "/push/send", body).names(field)
			}
			y.console("GET", "/outbox?channel=push", nil).http(200).length("data", 1)
		}},
	}}
}

// inAppPart: the inbox of a person, as a page of the customer sees it.
func inAppPart() part {
	var person, campaign, token, message string
	// page calls as a page does that has the token of a person.
	page := func(c *check, method, path, token string) *answer {
		return c.do(c.T, method, path, nil, "Authorization", "Bearer "+token)
	}
	send := func(c *check, fields obj) string {
		in := obj{"name": "in-app", "channel": 2, "type": 4, "service": "in_app", "date": "2026-01-31", "subject": "Hi {{first_name}}", "body": "Look", "link": "https://shop.example/sale"}
		for k, v := range fields {
			in[k] = v
		}
		id := c.a("POST", "/campaign", in).success().str("data._id")
		c.a("POST", "/campaign/"+id+"/send", obj{"all_contacts": true}).success().eq("data.emails_sent", 1)
		return id
	}
	return part{"in-app messages", []rule{
		{"a campaign puts a message into the inbox, which the person's token alone opens", func(c *check) {
			keys := c.a("POST", "/in-app/secret", nil).success()
			person = c.contact(obj{"external_id": "ann", "first_name": "Ann"})
			mine := func(subject string) string {
				return personToken(keys.str("data.secret"), keys.str("data.issuer"), subject, time.Hour)
			}
			token = mine("ann")
			page(c, "GET", "/in-app/inbox", token).http(200).length("messages", 0).eq("unseen", 0)
			campaign = send(c, obj{"in_app": obj{"display": "banner", "priority": 3, "ttl_hours": 2}})
			a := page(c, "GET", "/in-app/inbox", token).http(200).length("messages", 1).eq("unseen", 1)
			a.eq("messages.0.title", "Hi Ann").eq("messages.0.body", "Look").eq("messages.0.link", "https://shop.example/sale").eq("messages.0.display", "banner")
			message = a.str("messages.0.id")
			page(c, "GET", "/in-app/inbox", mine("bob")).http(200).length("messages", 0)
			page(c, "POST", "/in-app/inbox/"+message+"/seen", mine("bob")).http(404)
			page(c, "GET", "/in-app/inbox", token+"x").http(401)
			page(c, "GET", "/in-app/inbox", c.freshKey()).http(401)
		}},
		{"a higher priority is shown first", func(c *check) {
			send(c, obj{"subject": "First", "in_app": obj{"priority": 9}})
			send(c, obj{"subject": "Last", "in_app": obj{"priority": 1}})
			page(c, "GET", "/in-app/inbox", token).http(200).length("messages", 3).eq("messages.0.title", "First").eq("messages.1.title", "Hi Ann").eq("messages.2.title", "Last")
		}},
		{"seen, clicked and dismissed count once each, and what is dismissed leaves the inbox", func(c *check) {
			for _, deed := range []string{"seen", "seen", "clicked", "clicked", "dismissed", "dismissed"} {
				page(c, "POST", "/in-app/inbox/"+message+"/"+deed, token).http(200)
			}
			page(c, "GET", "/in-app/inbox", token).http(200).length("messages", 2).eq("unseen", 2)
			for kind, n := range map[string]int{"in_app_sent": 3, "in_app_seen": 1, "in_app_clicked": 1, "in_app_dismissed": 1} {
				c.recorded(person, kind, n)
			}
			c.a("GET", "/campaign/"+campaign+"/stats", nil).success().eq("data.unique_opens", 1).eq("data.unique_clicks", 1).eq("data.dismissed", 1)
		}},
		{"a message says when it ends: ttl_hours after it was sent", func(c *check) {
			for _, m := range c.console("GET", "/profiles/"+person+"/inbox", nil).http(200).array("data") {
				m := m.(obj)
				want := 720 * time.Hour
				if m["id"] == message {
					want = 2 * time.Hour
				}
				sent, err := time.Parse(time.RFC3339, m["created_at"].(string))
				ok(c.T, err)
				end, err := time.Parse(time.RFC3339, m["expires_at"].(string))
				ok(c.T, err)
				if end.Sub(sent) != want {
					c.Errorf("%v lasts %s", m["title"], end.Sub(sent))
				}
			}
		}},
		{"a step of a flow sends one, too", func(c *check) {
			kind := c.name("shown_")
			flow := c.live(onEvent(kind), step("i", "in_app", "", obj{"title": "Order {{event.n}}", "body": "Thanks", "priority": 10}))
			c.through(flow, c.event(kind, obj{"external_id": "ann"}, obj{"n": 7}))
			c.until("the message is in the inbox", func() bool {
				return page(c, "GET", "/in-app/inbox", token).http(200).array("messages")[0].(obj)["title"] == "Order 7"
			})
		}},
		{"who unsubscribed sees an empty inbox, and is sent nothing", func(c *check) {
			c.console("POST", "/profiles/"+person+"/consent", obj{"channel": "in_app", "status": "unsubscribed"}).http(200)
			page(c, "GET", "/in-app/inbox", token).http(200).length("messages", 0)
			c.subscribe(person, "in_app")
			page(c, "GET", "/in-app/inbox", token).http(200).length("messages", 3)
		}},
	}}
}

// omniPart: one message a person, on the first channel that reaches them.
func omniPart() part {
	var campaign, e string
	return part{"several channels", []rule{
		{"each person gets one message, on the first channel that reaches them; a dead device is passed over at once", func(c *check) {
			c.console("PUT", "/push-credentials/webpush", obj{"generate": true, "subject": "mailto:push@muster.local"}).http(200)
			push, dead, mail, none := c.mail("push"), c.mail("dead"), c.mail("mail"), c.contact(obj{"external_id": c.name("none")})
			live := c.device(c.contact(obj{"email": push}), "live")
			lost := c.device(c.contact(obj{"email": dead}), "dead")
			texted := c.phone()
			e = mail
			c.contact(obj{"email": mail})
			both := c.contact(obj{"email": c.mail("text"), "phone": texted})
			c.subscribe(both, "sms")
			_ = none
			campaign = c.a("POST", "/campaign", obj{"name": "Sale", "channel": 1, "subject": "Sale", "body": "<p>Sale</p>", "sender": "news@muster.local",
				"channels": []obj{{"channel": "push", "subject": "Sale", "body": "Today"}, {"channel": "sms", "body": "Sale"}, {"channel": "email"}}}).success().str("data._id")
			c.a("POST", "/campaign/"+campaign+"/send", obj{"all_contacts": true}).success().eq("data.emails_sent", 4)
			if n, m := c.remote.pushed(live), c.remote.pushed(lost); n != 1 || m != 1 {
				c.Errorf("%d and %d push messages came", n, m)
			}
			for address, want := range map[string]int{push: 0, dead: 1, mail: 1} {
				if n := len(c.relay.to(address)); n != want {
					c.Errorf("%d letters for %s, expected %d", n, address, want)
				}
			}
			c.console("GET", "/outbox?channel=sms", nil).http(200).length("data", 1).eq("data.0.to", texted)
		}},
		{"the statistics have each channel, and whom no channel reaches", func(c *check) {
			a := c.a("GET", "/campaign/"+campaign+"/stats", nil).success().length("data.channels", 3).eq("data.skipped", obj{"no channel of the campaign reaches the person": 1})
			for i, want := range []struct {
				channel string
				sent    int
			}{{"push", 1}, {"sms", 1}, {"email", 2}} {
				a.eq("data.channels."+itoa(i)+".channel", want.channel).eq("data.channels."+itoa(i)+".emails_sent", want.sent)
			}
		}},
		{"again, it reaches nobody a second time", func(c *check) {
			c.a("POST", "/campaign/"+campaign+"/send", obj{"all_contacts": true}).success().eq("data.emails_sent", 0)
		}},
		{"a step of a flow does so likewise", func(c *check) {
			kind := c.name("omni_")
			flow := c.live(onEvent(kind), step("o", "omnichannel", "", obj{"channels": []obj{{"channel": "push", "title": "Flow"}, {"channel": "sms", "text": "Flow"}, {"channel": "email", "subject": "Flow", "body": "<p>b</p>", "sender": "news@muster.local"}}}))
			c.through(flow, c.event(kind, obj{"email": e}, nil))
			c.until("the letter of the step comes", func() bool { return len(c.relay.to(e)) == 2 })
			c.console("GET", "/outbox?channel=sms", nil).http(200).length("data", 1)
		}},
		{"each channel stands once, and is one of those that there are", func(c *check) {
			for message, channels := range map[string]any{"channels[0].channel Input should be": []obj{{"channel": "fax"}}, "channels[1].channel Input should name each channel once": []obj{{"channel": "sms", "body": "a"}, {"channel": "sms", "body": "b"}}} {
				c.a("POST", "/campaign", obj{"name": "n", "channel": 1, "channels": channels}).names(message)
			}
		}},
	}}
}
