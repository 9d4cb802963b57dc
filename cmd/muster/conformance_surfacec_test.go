package main

import "strings"

// errorC expects an error of Surface C.
func (a *answer) errorC(status int, code string) *answer {
	a.t.Helper()
	a.http(status).only("", "status", "code", "message", "request_id").eq("status", "error").eq("code", code)
	a.str("message")
	a.str("request_id")
	return a
}

// successC expects the envelope of Surface C.
func (a *answer) successC() *answer {
	a.t.Helper()
	a.http(200).only("", "status", "data", "request_id").kinds("", map[string]string{"status": "string", "data": "object", "request_id": "string"}).eq("status", "success")
	return a
}

func surfaceCPart() part {
	template := func(c *check) string {
		c.Helper()
		return c.console("POST", "/templates", obj{"name": c.name("t"), "subject": "Order {{order}}", "html": "<p>Dear {{first_name}}, order {{order}} is on its way.</p>"}).http(200).str("data._id")
	}
	return part{"Surface C", []rule{
		{"an event is recorded under the e-mail, in the envelope with a request id", func(c *check) {
			e := c.mail("c")
			a := c.c("/events", obj{"email": e, "event": "item_viewed", "properties": obj{"value": 5}}).successC()
			id := c.event("seen", obj{"email": e}, nil) // Surface B knows the same person
			c.history(id).length("data.events", 2).eq("data.events.1.event_type", "item_viewed").eq("data.events.1.properties", obj{"value": 5})
			if b := c.c("/events", obj{"email": e, "event": "item_viewed"}).successC(); b.str("request_id") == a.str("request_id") {
				b.fault("the request id is that of another request")
			}
		}},
		{"an event of this surface is in segments at once", func(c *check) {
			seg := c.segment(obj{"kind": "activity", "event": "c_bought", "aggregate": obj{"fn": "sum", "property": "value", "op": ">=", "value": 10}})
			c.c("/events", obj{"email": c.mail("c"), "event": "c_bought", "properties": obj{"value": 10}}).successC()
			c.console("GET", "/segments/"+seg, nil).http(200).eq("data.count", 1)
		}},
		{"an e-mail is sent from a template with the values given", func(c *check) {
			e := c.mail("order")
			c.contact(obj{"email": e, "first_name": "Ada"})
			c.c("/email/send", obj{"to": e, "template_id": template(c), "data": obj{"order": "A&B"}}).successC()
			c.until("the message comes", func() bool { return len(c.relay.to(e)) == 1 })
			got := c.relay.to(e)[0]
			if got.subject != "Order A&B" || !strings.Contains(got.html, "Dear Ada, order A&amp;B is on its way.") {
				c.Errorf("came %+v", got)
			}
		}},
		{"to and template_id are required, the template has to be there", func(c *check) {
			t := template(c)
			c.c("/email/send", obj{"template_id": t}).errorC(400, "invalid_request")
			c.c("/email/send", obj{"to": "a@b.example"}).errorC(400, "invalid_request")
			c.c("/email/send", obj{"to": "a@b.example", "template_id": "tpl_none"}).errorC(404, "not_found")
			c.c("/email/send", obj{"to": "nobody", "template_id": t}).errorC(400, "invalid_request")
			c.c("/email/send", obj{"to": "a@b.example", "template_id": t, "data": 5}).errorC(400, "invalid_request")
			c.other().c("/email/send", obj{"to": "a@b.example", "template_id": t}).errorC(404, "not_found")
		}},
		{"email and event are required, under their names", func(c *check) {
			for field, body := range map[string]any{"email": obj{"event": "seen"}, "event": obj{"email": "a@b.c"}, "event must": obj{"email": "a@b.c", "event": "Not Snake"}, "body": "{", "properties": obj{"email": "a@b.c", "event": "seen", "properties": 5}} {
				if a := c.c("/events", body).errorC(400, "invalid_request"); !strings.HasPrefix(a.str("message"), field) {
					a.fault("expected a message that begins with %q", field)
				}
			}
		}},
		{"errors have their codes", func(c *check) {
			c.do(c.T, "POST", "/v1/events", obj{}).errorC(401, "unauthorized")
			c.with(c.newKey("contacts:read"), "POST", "/v1/events", obj{}).errorC(403, "forbidden")
			c.c("/nonsense", obj{}).errorC(404, "not_found")
			c.with(c.freshKey(), "GET", "/v1/events", nil).errorC(405, "method_not_allowed")
			c.do(c.T, "POST", "/v1/events", "{}", "Authorization", "Bearer "+c.freshKey(), "Content-Type", "text/plain").errorC(415, "unsupported_media_type")
		}},
		{"it takes the keys of Surface A", func(c *check) {
			key := c.newKey("events:write", "lists:read")
			c.with(key, "POST", "/v1/events", obj{"email": c.mail("same"), "event": "seen"}).successC()
			c.with(key, "GET", "/api/v1/lists", nil).success()
		}},
	}}
}

func versionPart() part {
	return part{"versions", []rule{
		{"Surfaces A and B have the prefix api v1, Surface C has v1", func(c *check) {
			creds := c.server.creds
			if creds.BaseURL != c.server.origin+"/api/v1" || creds.BaseURLV1 != c.server.origin+"/v1" {
				c.Errorf("the addresses are %s and %s", creds.BaseURL, creds.BaseURLV1)
			}
			c.a("GET", "/lists", nil).success()
			c.b("/events", obj{"event_type": "seen", "user": obj{"email": c.mail("v")}}).http(202).eq("success", true)
			c.c("/events", obj{"email": c.mail("v"), "event": "seen"}).successC()
		}},
		{"the version is in the path: there is nothing under others", func(c *check) {
			for _, prefix := range []string{"", "/api", "/api/v2", "/v2"} {
				c.with(c.freshKey(), "GET", prefix+"/lists", nil).http(404)
				c.do(c.T, "POST", prefix+"/events", obj{"event_type": "seen", "user": obj{"email": c.mail("v")}}, "X-App-Id", c.app, "X-App-Secret", c.secret).http(404)
			}
			c.c("/contacts", obj{}).errorC(404, "not_found")
			c.a("POST", "/email/send", obj{}).failure("There is nothing at this path.")
		}},
	}}
}
