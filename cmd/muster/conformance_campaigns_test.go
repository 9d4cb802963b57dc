package main

import (
	"encoding/json"
	"strings"
	"time"
)

func campaignPart() part {
	return part{"campaigns: creating", []rule{
		{"channel takes the numbers 1 and 2; anything else is refused with the fixed message", func(c *check) {
			for _, channel := range []any{"single-channel", "omni", "email", 0, 3, -1, 1.5, true, []int{1}, obj{}, "", 1e30} {
				c.a("POST", "/campaign", campaignOf(obj{"channel": channel})).failure("channel Input should be 1 or 2")
			}
		}},
		{"type takes the numbers 1 to 4; anything else is refused with the fixed message", func(c *check) {
			for _, kind := range []any{"email", "SMS", "push", 0, 5, 2.5, false, []int{1}, "x"} {
				c.a("POST", "/campaign", campaignOf(obj{"type": kind})).failure("type Input should be 1, 2, 3 or 4")
			}
		}},
		{"every answer about a campaign has the numbers it was made with", func(c *check) {
			for _, in := range []obj{{"channel": 1, "type": nil, "date": nil}, {"channel": 1, "type": 1}, {"channel": 2, "type": 1}, {"channel": 2, "type": 2}, {"channel": 2, "type": 3}, {"channel": 2, "type": 4}} {
				want := []any{in["channel"], in["type"]}
				a := c.a("POST", "/campaign", campaignOf(in)).success()
				id := a.str("data._id")
				for _, a := range []*answer{a, c.a("GET", "/campaign/"+id, nil).success(), c.a("PATCH", "/campaign/"+id, obj{"name": "renamed"}).success()} {
					a.eq("data.channel", want[0]).eq("data.type", want[1])
				}
				for _, x := range c.a("GET", "/campaign?limit=1000", nil).success().array("data") {
					if x := x.(obj); x["_id"] == id {
						if jsonOf(x["channel"]) != jsonOf(want[0]) || jsonOf(x["type"]) != jsonOf(want[1]) {
							c.Errorf("listed with %v and %v, expected %v", x["channel"], x["type"], want)
						}
					}
				}
			}
		}},
		{"channel 2 needs a date and a type, and is refused before anything is made", func(c *check) {
			x := c.other()
			x.a("POST", "/campaign", campaignOf(obj{"date": nil})).failure("date Field required")
			x.a("POST", "/campaign", campaignOf(obj{"type": nil})).failure("type Field required")
			x.a("POST", "/campaign", obj{"name": "n", "channel": 2}).fails("Field required")
			x.a("GET", "/campaign", nil).success().length("data", 0)
		}},
		{"channel 1 needs neither", func(c *check) {
			c.a("POST", "/campaign", obj{"name": "omni", "channel": 1}).success().eq("data.channel", 1)
		}},
		{"the fields come back as they were given", func(c *check) {
			in := campaignOf(obj{"name": "Spring ☀", "subject": "Hello {{first_name}}", "body": "<p>Hi {{first_name}} & co</p>", "sender_name": "The Shop", "reply_to": "help@muster.local"})
			a := c.a("POST", "/campaign", in).success()
			b := c.a("GET", "/campaign/"+a.str("data._id"), nil).success()
			for field, value := range in {
				a.eq("data."+field, value)
				b.eq("data."+field, value)
			}
		}},
		{"date is ISO 8601", func(c *check) {
			for _, date := range []string{"2026-01-31", "2026-01-31T09:00:00Z", "2026-01-31T09:00:00.250+02:00", "2026-01-31T09:00:00"} {
				c.a("POST", "/campaign", campaignOf(obj{"date": date})).success().eq("data.date", date)
			}
			for _, date := range []any{"soon", "31.01.2026", "2026-13-01", 5, ""} {
				c.a("POST", "/campaign", campaignOf(obj{"date": date})).names("date ")
			}
		}},
		{"a date in the future sends a campaign with an audience then, and a send by hand before goes out at once", func(c *check) {
			e, early := c.mail("dated"), c.mail("early")
			list, other := c.list(e), c.list(early)
			at := time.Now().Add(5 * time.Second)
			in := campaignOf(obj{"date": at.UTC().Format(time.RFC3339Nano), "list_id": []string{list}})
			id := c.a("POST", "/campaign", in).success().eq("data.status", "scheduled").eq("data.scheduled_at", at.UTC().Format("2006-01-02T15:04:05.000Z")).eq("data.date", in["date"]).str("data._id")
			in["list_id"] = []string{other}
			hand := c.a("POST", "/campaign", in).success().eq("data.status", "scheduled").str("data._id")
			c.a("POST", "/campaign/"+hand+"/send", nil).success().eq("data.emails_sent", 1)
			c.until("the campaign is sent", func() bool {
				return c.a("GET", "/campaign/"+id, nil).success().str("data.status") == "sent"
			})
			if now := time.Now(); now.Before(at) {
				c.Errorf("it was sent %v before its date", at.Sub(now))
			}
			c.a("GET", "/campaign/"+hand, nil).success().eq("data.status", "sent").eq("data.scheduled_at", nil)
			if n, m := len(c.relay.to(e)), len(c.relay.to(early)); n != 1 || m != 1 {
				c.Errorf("%d and %d messages came", n, m)
			}
		}},
		{"a date in the past, or without an audience, sends nothing", func(c *check) {
			e := c.mail("undated")
			list := []string{c.list(e)}
			c.a("POST", "/campaign", campaignOf(obj{"date": "2026-01-31T09:00:00Z", "list_id": list})).success().eq("data.status", "draft").eq("data.scheduled_at", nil)
			c.a("POST", "/campaign", campaignOf(obj{"date": "2090-01-31T09:00:00Z"})).success().eq("data.status", "draft").eq("data.scheduled_at", nil)
			id := c.a("POST", "/campaign", campaignOf(obj{"date": "2090-01-31T09:00:00Z", "list_id": list})).success().eq("data.status", "scheduled").str("data._id")
			c.a("DELETE", "/campaign/"+id+"/schedule", nil).success().eq("data.status", "draft").eq("data.date", "2090-01-31T09:00:00Z")
			if n := len(c.relay.to(e)); n != 0 {
				c.Errorf("%d messages came", n)
			}
		}},
		{"campaigns are listed as an array", func(c *check) {
			id := c.campaign(nil)
			list := c.a("GET", "/campaign?limit=1000", nil).success().array("data")
			if list[len(list)-1].(obj)["_id"] != id {
				c.Errorf("the newest is %v", list[len(list)-1])
			}
		}},
		{"a domain that is not verified is taken at creation and refused at sending", func(c *check) {
			e := c.mail("unverified")
			list := c.list(e)
			id := c.campaign(obj{"sender": "news@unverified.example"})
			c.send(id, list).fails("unverified.example")
			if n := len(c.relay.to(e)); n != 0 {
				c.Errorf("%d messages came", n)
			}
			c.a("GET", "/campaign/"+id+"/stats", nil).success().eq("data.emails_sent", 0)
		}},
		{"a domain that is verified sends", func(c *check) {
			x := c.first()
			domain := x.name("shop") + ".example"
			x.console("POST", "/sender-domains", obj{"domain": domain}).http(200)
			e := x.mail("verified")
			list, id := x.list(e), x.campaign(obj{"sender": "news@" + domain, "sender_name": "The Shop", "reply_to": "help@" + domain})
			x.send(id, list).fails(domain)
			// An administrator of the system vouches for it; DNS is out of reach here.
			x.console("POST", "/sender-domains/"+domain+"/verify", obj{"force": true}).http(200).eq("data.verified", true)
			x.send(id, list).success().eq("data.emails_sent", 1)
			got := x.relay.to(e)
			if len(got) != 1 || got[0].header.Get("From") != `"The Shop" <news@`+domain+">" || !strings.Contains(got[0].header.Get("Reply-To"), "help@"+domain) {
				c.Errorf("came: %+v", got)
			}
		}},
		{"tags in double braces are filled in for each recipient", func(c *check) {
			e := c.mail("merge")
			c.contact(obj{"email": e, "first_name": "A<d>a"})
			id := c.campaign(obj{"subject": "For {{first_name}}", "body": "<p>Dear {{first_name}} at {{email}}</p>"})
			c.send(id, c.list(e)).success()
			got := c.relay.to(e)
			if len(got) != 1 || got[0].subject != "For A<d>a" || !strings.Contains(got[0].html, "Dear A&lt;d&gt;a at "+e) {
				c.Errorf("came: %+v", got)
			}
		}},
	}}
}

// jsonOf is a value as JSON writes it; of nil it is "null".
func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
