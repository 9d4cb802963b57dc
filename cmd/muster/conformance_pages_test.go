package main

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// visit asks for a page as a browser does, or sends a form to it.
func (c *check) visit(address string, form url.Values) *answer {
	c.Helper()
	path := address
	if i := strings.Index(address, "://"); i >= 0 {
		path = address[i+3:][strings.Index(address[i+3:], "/"):]
	}
	if form == nil {
		return c.do(c.T, "GET", path, nil, browser...)
	}
	return c.do(c.T, "POST", path, form.Encode(), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, browser...)...)
}

// hidden is what a field of a page has that people do not see.
func (a *answer) hidden(name string) string {
	a.t.Helper()
	m := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindSubmatch(a.raw)
	if m == nil {
		a.t.Fatalf("%s: no %s in %s", a.what, name, a.raw)
	}
	return html.UnescapeString(string(m[1]))
}

// shows expects a page to have a text.
func (a *answer) shows(text string) *answer {
	a.t.Helper()
	if !strings.Contains(string(a.raw), text) {
		a.fault("expected a page with %q", text)
	}
	return a
}

// formPart: a signup form whose people confirm by e-mail.
func formPart() part {
	var id, list, e, person string
	return part{"signup forms", []rule{
		{"with double opt-in a new address is a pending profile, on no list, until it is confirmed", func(c *check) {
			list, e = c.list(), c.mail("signup")
			id = c.a("POST", "/forms", obj{"name": "News", "published": true, "double_opt_in": true, "list_ids": []string{list},
				"fields":  []obj{{"name": "email", "label": "E-mail", "required": true}, {"name": "first_name", "label": "First name"}},
				"consent": obj{"text": "Send me <news>.", "channels": []string{"email"}, "required": true}}).success().str("data._id")
			page := c.visit("/forms/"+id, nil).http(200).shows("Send me &lt;news&gt;.")
			// By an embedded form, which has no token: no time has to pass.
			form := url.Values{"email": {e}, "first_name": {"Ann"}, "consent": {"1"}, "consent_version": {page.hidden("consent_version")}}
			c.visit("/forms/"+id, form).http(200).shows("Thank you")
			person = c.console("GET", "/profiles?email="+e, nil).http(200).str("data.profile_id")
			c.console("GET", "/profiles/"+person, nil).http(200).eq("data.statuses.email", "Pending").eq("data.first_name", "").length("data.lists", 0)
			c.a("GET", "/forms/"+id+"/stats", nil).success().eq("data.total.submissions", 1).eq("data.total.conversions", 0)
		}},
		{"the link of the message confirms: fields, list, consent and its evidence; once", func(c *check) {
			c.until("the confirmation comes", func() bool { return len(c.relay.to(e)) == 1 })
			link := links{c: c}.in(c.relay.to(e)[0].html)
			c.fetch(link).http(200) // scanners follow links
			c.console("GET", "/profiles/"+person, nil).http(200).eq("data.statuses.email", "Pending")
			for range 2 {
				c.visit(link, url.Values{}).http(200).shows("confirmed")
			}
			c.console("GET", "/profiles/"+person, nil).http(200).eq("data.statuses.email", "Subscribed").eq("data.first_name", "Ann").length("data.lists", 1)
			c.recorded(person, "signup_form_submitted", 1)
			c.a("GET", "/forms/"+id+"/stats", nil).success().eq("data.total.submissions", 1).eq("data.total.conversions", 1)
			c.console("GET", "/profiles/"+person+"/consents", nil).http(200).eq("data.0.channel", "email").eq("data.0.status", "subscribed").
				eq("data.0.source", "form").eq("data.0.form_id", id).eq("data.0.wording", "Send me <news>.")
		}},
		{"an address on file gets the same answer, and nothing of it changes", func(c *check) {
			known := c.mail("known")
			old := c.contact(obj{"email": known, "first_name": "Olga"})
			version := c.visit("/forms/"+id, nil).hidden("consent_version")
			send := func(email string) string {
				return string(c.visit("/forms/"+id, url.Values{"email": {email}, "first_name": {"Eve"}, "consent": {"1"}, "consent_version": {version}}).http(200).raw)
			}
			if one, other := send(known), send(c.mail("fresh")); one != other {
				c.Errorf("an address on file is answered\n%s\nanother\n%s", one, other)
			}
			c.console("GET", "/profiles/"+old, nil).http(200).eq("data.first_name", "Olga")
		}},
		{"a missing consent, a consent text that changed and a trap for programs: nothing is taken", func(c *check) {
			before := c.a("GET", "/forms/"+id+"/stats", nil).success().num("data.total.submissions")
			version := c.visit("/forms/"+id, nil).hidden("consent_version")
			c.visit("/forms/"+id, url.Values{"email": {c.mail("a")}, "consent_version": {version}}).http(400)
			c.visit("/forms/"+id, url.Values{"email": {c.mail("b")}, "consent": {"1"}, "consent_version": {"other"}}).http(409)
			c.visit("/forms/"+id, url.Values{"email": {c.mail("c")}, "consent": {"1"}, "consent_version": {version}, "website": {"x"}}).http(200).shows("Thank you")
			c.a("GET", "/forms/"+id+"/stats", nil).success().eq("data.total.submissions", before)
		}},
	}}
}

// orderPart: orders count once, and refunds take off.
func orderPart() part {
	var ada, e, campaign string
	one := func(orders int, total, refunded, revenue string) obj {
		return obj{"orders": orders, "total": total, "refunded": refunded, "revenue": revenue}
	}
	// has expects the revenue of a person in the only currency.
	has := func(c *check, profile string, want obj) {
		c.Helper()
		a := c.console("GET", "/profiles/"+profile+"/orders", nil).http(200).length("data.revenue", 1).eq("data.revenue.0.currency", "EUR")
		for field, value := range want {
			a.eq("data.revenue.0."+field, value)
		}
	}
	order := func(c *check, id string, total float64) *answer {
		return c.b("/events", obj{"event_type": "order_placed", "user": obj{"email": e}, "properties": obj{"order_id": id, "total": total, "currency": "eur"}}).http(202).eq("success", true)
	}
	return part{"orders", []rule{
		{"an order counts once by its id, under any idempotency key", func(c *check) {
			e = c.mail("buyer")
			ada = order(c, "A-1", 59.9).str("profile_id")
			again := c.b("/events", obj{"event_type": "order_placed", "idempotency_key": c.name("k"), "user": obj{"email": c.mail("other")}, "properties": obj{"order_id": "A-1", "total": 7, "currency": "EUR"}}).http(202).eq("success", true).eq("profile_id", ada)
			again.str("warning")
			has(c, ada, one(1, "59.90", "0.00", "59.90"))
			c.console("GET", "/revenue", nil).http(200).length("data.totals", 1).eq("data.totals.0.orders", 1).eq("data.totals.0.revenue", "59.90")
		}},
		{"a refund takes off no more than what is left, and may come before its order", func(c *check) {
			refund := func(id string, amount float64) {
				c.event("order_refunded", obj{"email": e}, obj{"order_id": id, "amount": amount})
			}
			refund("A-1", 9.9)
			has(c, ada, one(1, "59.90", "9.90", "50.00"))
			refund("A-1", 1000)
			has(c, ada, one(1, "59.90", "59.90", "0.00"))
			refund("A-2", 5)
			order(c, "A-2", 20)
			has(c, ada, one(2, "79.90", "64.90", "15.00"))
		}},
		{"segments know revenue at once", func(c *check) {
			seg := c.segment(obj{"kind": "activity", "event": "revenue_recorded", "where": []obj{{"property": "currency", "op": "=", "value": "EUR"}}, "aggregate": obj{"fn": "sum", "property": "amount", "op": ">=", "value": 20}})
			if n := len(c.members(seg)); n != 0 {
				c.Errorf("%d members with 15 EUR", n)
			}
			order(c, "A-3", 5)
			if got := c.members(seg); len(got) != 1 || got[0] != ada {
				c.Errorf("with 20 EUR: %q", got)
			}
		}},
		{"an order after a click belongs to the campaign, and its refund takes off there", func(c *check) {
			c.subscribe(ada, "email")
			campaign = c.campaign(obj{"body": `<p><a href="https://shop.example/sale">Sale</a></p>`, "track_links": true})
			c.send(campaign, c.list(e)).success()
			c.fetch(c.links(e).clicks[0]).http(302)
			c.recorded(ada, "email_clicked", 1)
			time.Sleep(time.Millisecond) // an order of the click's own instant is not after it
			order(c, "A-4", 25)
			c.event("order_refunded", obj{"email": e}, obj{"order_id": "A-4", "amount": 5})
			c.a("GET", "/campaign/"+campaign+"/stats", nil).success().length("data.revenue", 1).eq("data.revenue.0.currency", "EUR").eq("data.revenue.0.orders", 1).eq("data.revenue.0.revenue", "20.00")
		}},
		{"an event that is no order is recorded with a warning, and counts nowhere", func(c *check) {
			before := c.console("GET", "/revenue", nil).http(200)
			for _, properties := range []obj{{"total": 5, "currency": "EUR"}, {"order_id": "B-1", "total": -5, "currency": "EUR"}, {"order_id": "B-1", "total": 5, "currency": "EUX"}} {
				c.b("/events", obj{"event_type": "order_placed", "user": obj{"email": e}, "properties": properties}).http(202).eq("success", true).str("warning")
			}
			totals, _ := before.at("data.totals")
			c.console("GET", "/revenue", nil).http(200).eq("data.totals", totals)
		}},
	}}
}

// preferencePart: the page on which people choose topics and channels.
func preferencePart() part {
	var ann, e, news, tips, link string
	var body string
	return part{"preference page", []rule{
		{"a message leads to the recipient's page, which shows the topics and channels, and names nobody", func(c *check) {
			e = c.mail("chooser")
			news, tips = c.list(), c.list()
			for id, name := range map[string]string{news: "News", tips: "Tips"} {
				c.a("PATCH", "/lists/"+id, obj{"public": true, "public_name": name}).success()
			}
			ann = c.contact(obj{"email": e, "list_id": news})
			c.send(c.campaign(obj{"body": `<p><a href="{{preferences_url}}">choose</a></p>`}), news).success().eq("data.emails_sent", 1)
			m := regexp.MustCompile(`https?://[^/"]+/preferences/[A-Za-z0-9_-]+`).FindString(c.relay.to(e)[0].html)
			if link = m; link == "" {
				c.Fatalf("no link in %s", c.relay.to(e)[0].html)
			}
			page := c.visit(link, nil).http(200).shows(`value="topic:` + news + `" checked`).shows("Tips")
			if body = string(page.raw); strings.Contains(body, e) || strings.Contains(body, "<script") || strings.Contains(body, `value="topic:`+tips+`" checked`) {
				page.fault("the page names the person, has a script, or shows a topic as chosen")
			}
		}},
		{"a topic that a person leaves is kept: nobody else puts the person on the list, and its campaigns pass over them", func(c *check) {
			page := c.visit(link, nil)
			c.visit(link, url.Values{"action": {"save"}, "page": {page.hidden("page")}, "shown": {"topic:" + news, "topic:" + tips, "channel:email"},
				"was": {"topic:" + news, "channel:email"}, "chosen": {"topic:" + tips, "channel:email"}}).http(200).shows("<li>News: off</li>").shows("<li>Tips: on</li>")
			c.a("POST", "/lists/"+news+"/contacts", obj{"email": e}).fails("the contact left this list on the preference page")
			c.send(c.campaign(nil), news).success().eq("data.emails_sent", 0)
			c.send(c.campaign(nil), tips).success().eq("data.emails_sent", 1)
		}},
		{"unsubscribing from everything withdraws every channel, and nothing is sent", func(c *check) {
			c.visit(link, url.Values{"action": {"everything"}}).http(200).shows("E-mail: off")
			c.consents(ann, "email", "unsubscribed")
			before := len(c.relay.to(e))
			id := c.campaign(nil)
			c.a("POST", "/campaign/"+id+"/send", obj{"all_contacts": true}).success().eq("data.emails_sent", 0)
			c.a("GET", "/campaign/"+id+"/stats", nil).success().eq("data.skipped", obj{"unsubscribed": 1})
			if n := len(c.relay.to(e)); n != before {
				c.Errorf("%d messages came", n-before)
			}
		}},
		{"the log of consents and its export have each change with its evidence", func(c *check) {
			has := func(a *answer) {
				for _, part := range []string{`"source":"preferences"`, `"topic":"News"`, `"list_id":"` + news + `"`, `"client":"127.0.0.0/24"`, "Unsubscribe from everything"} {
					a.shows(part)
				}
			}
			has(c.console("GET", "/profiles/"+ann+"/consents", nil).http(200))
			has(c.console("GET", "/export/consents", nil).http(200).shows(ann))
		}},
		{"a link that was tampered with, a form without an action, and an erased person", func(c *check) {
			c.visit(link+"x", nil).http(404)
			c.visit(link, url.Values{"x": {"y"}}).http(400)
			c.a("DELETE", "/contacts/"+ann, nil).success()
			if a := c.visit(link, nil).http(410); strings.Contains(string(a.raw), fmt.Sprint(e)) {
				a.fault("the page has the address")
			}
		}},
	}}
}
