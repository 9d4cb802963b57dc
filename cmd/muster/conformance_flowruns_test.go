package main

import (
	"strings"
	"time"

	"github.com/musterhq/muster/internal/testlevel"
)

// flowTriggerPart is what enrols. By the true clock a date is a minute away, so
// that its coming is waited for with MUSTER_LONG only; package resolver tries
// dates with a clock of its own.
func flowTriggerPart() part {
	return part{"flows: triggers", []rule{
		{"an event that makes a profile match a segment enrols it in the flows of that segment before it is acknowledged", func(c *check) {
			seg := c.segment(obj{"kind": "activity", "event": "item_purchased", "window": obj{"last_days": 30}, "aggregate": obj{"fn": "sum", "property": "value", "op": ">=", "value": 100}})
			first, second := c.live(obj{"type": "segment_entered", "segment_id": seg}, waitStep("w", "", 99)), c.live(obj{"type": "segment_entered", "segment_id": seg}, waitStep("w", "", 99))
			for range 20 {
				e := c.mail("matches")
				id := c.event("item_purchased", obj{"email": e}, obj{"value": 60})
				c.in(first, id, false)
				c.event("item_purchased", obj{"email": e}, obj{"value": 40})
				c.in(first, id, true)
				c.in(second, id, true)
				c.event("item_purchased", obj{"email": e}, obj{"value": 40})
				c.in(first, id, true)
			}
			c.flow(first).eq("data.counts.entered", 20).eq("data.counts.in_progress", 20)
		}},
		{"a segment enrols continuously: its members at publishing, and who enters later, again when he enters again", func(c *check) {
			city := func(e, is string) string {
				return c.event("moved", obj{"email": e, "geo": obj{"city": is}}, nil)
			}
			paris := c.segment(obj{"kind": "attribute", "field": "geo.city", "op": "=", "value": "Paris"})
			member, later := c.mail("member"), c.mail("later")
			id := city(member, "Paris")
			flow := c.live(obj{"type": "segment_entered", "segment_id": paris}, tagStep("t", "", "x"))
			c.wants(c.through(flow, id), "t done")
			id = city(later, "Rome")
			c.in(flow, id, false)
			city(later, "Paris")
			c.in(flow, id, true)
			city(later, "Rome")
			city(later, "Paris")
			c.ways(flow, id).http(200).length("data.enrolments", 2)
		}},
		{"leaving a segment enrols", func(c *check) {
			e := c.mail("leaver")
			seg := c.segment(obj{"kind": "attribute", "field": "attributes.trial", "op": "=", "value": true})
			flow := c.live(obj{"type": "segment_exited", "segment_id": seg}, tagStep("t", "", "x"))
			id := c.event("changed", obj{"email": e, "attributes": obj{"trial": true}}, nil)
			c.in(flow, id, false)
			c.event("changed", obj{"email": e, "attributes": obj{"trial": false}}, nil)
			c.in(flow, id, true)
		}},
		{"performing an event enrols, and only if its properties fit", func(c *check) {
			flow := c.live(obj{"type": "event", "event": "item_viewed", "where": []obj{{"property": "price", "op": ">=", "value": 100}}}, tagStep("t", "", "x"))
			c.in(flow, c.event("item_viewed", obj{"email": c.mail("cheap")}, obj{"price": 99}), false)
			c.in(flow, c.event("item_seen", obj{"email": c.mail("other")}, obj{"price": 100}), false)
			c.in(flow, c.event("item_viewed", obj{"email": c.mail("dear")}, obj{"price": 100}), true)
			a := c.c("/events", obj{"email": c.mail("dear"), "event": "item_viewed", "properties": obj{"price": 100}}).successC()
			c.in(flow, a.str("data.profile_id"), true)
		}},
		{"joining a list enrols, whichever way", func(c *check) {
			list, other := c.list(), c.list()
			flow := c.live(obj{"type": "list_joined", "list_id": list}, tagStep("t", "", "x"))
			c.in(flow, c.a("POST", "/lists/"+list+"/contacts", obj{"email": c.mail("joins")}).success().str("data._id"), true)
			c.in(flow, c.contact(obj{"email": c.mail("joins"), "list_id": list}), true)
			c.in(flow, c.contact(obj{"email": c.mail("joins"), "list_id": other}), false)
		}},
		{"a date that is to come does not enrol ahead of it", func(c *check) {
			day := time.Now().Add(48 * time.Hour).UTC().Format(time.DateOnly)
			flow := c.live(obj{"type": "date", "field": "attributes.renewal", "at": "09:00"}, tagStep("t", "", "x"))
			c.in(flow, c.event("seen", obj{"email": c.mail("dated"), "attributes": obj{"renewal": day}}, nil), false)
			c.flow(flow).eq("data.counts.entered", 0)
		}},
		{"reaching a date enrols", func(c *check) {
			if !testlevel.Long() {
				c.Skip("waits for up to two minutes; set MUSTER_LONG")
			}
			due := time.Now().UTC().Truncate(time.Minute).Add(2 * time.Minute)
			flow := c.live(obj{"type": "date", "field": "attributes.renewal", "offset_days": -2, "at": due.Format("15:04")}, tagStep("t", "", "x"))
			id := c.event("seen", obj{"email": c.mail("dated"), "attributes": obj{"renewal": due.AddDate(0, 0, 2).Format(time.DateOnly)}}, nil)
			c.in(flow, id, false)
			reached := func() bool { return c.ways(flow, id).status == 200 }
			c.until("the date is near or reached", func() bool { return time.Until(due) < time.Minute || reached() })
			c.until("the date is reached", reached)
			if early := time.Until(due); early > 0 {
				c.Errorf("enrolled %v before its time", early)
			}
		}},
		{"an API call enrols, by e-mail, external id or phone, and a repeat of its key enrols once", func(c *check) {
			flow := c.live(byCall, step("set", "update_contact", "w", obj{"set": obj{"attributes.order": "{{event.order}}"}}), waitStep("w", "", 99))
			path := "/custom-flows/" + flow + "/trigger"
			for field, value := range map[string]string{"email": c.mail("called"), "external_id": c.name("called-"), "phone": "+4930700700"} {
				id := c.contact(obj{field: value})
				body := obj{field: value, "data": obj{"order": "A-7"}, "idempotency_key": c.name("key-")}
				c.a("POST", path, body).success().eq("data.profile_id", id).eq("data.enrolled", true)
				c.a("POST", path, body).success().eq("data.profile_id", id).eq("data.enrolled", false)
				c.in(flow, id, true)
				c.a("GET", "/contacts/"+id, nil).success().eq("data.attributes.order", "A-7")
			}
			c.a("POST", path, obj{"email": c.mail("nobody")}).failure("no contact has these identifiers; create it first")
			c.a("POST", path, obj{"data": obj{}}).fails("Field required")
			c.a("POST", "/custom-flows/"+c.live(onEvent("x"), tagStep("t", "", "x"))+"/trigger", obj{"email": "a@b.c"}).fails("its trigger is event")
		}},
		{"with reentry once no profile is enrolled a second time", func(c *check) {
			kind := c.name("once_")
			id := c.console("POST", "/flows", obj{"name": "once", "trigger": onEvent(kind), "steps": []obj{tagStep("t", "", "x")}}).http(200).eq("data.reentry", "once").str("data._id")
			c.publish(id)
			e := c.mail("once")
			c.event(kind, obj{"email": e}, nil)
			c.in(id, c.event(kind, obj{"email": e}, nil), true)
		}},
		{"a retried event enrols once", func(c *check) {
			kind := c.name("retried_")
			flow := c.live(onEvent(kind), tagStep("t", "", "x"))
			in := obj{"event_type": kind, "user": obj{"email": c.mail("retry")}, "idempotency_key": c.name("key-")}
			id := c.b("/events", in).http(202).str("profile_id")
			for range 3 {
				c.b("/events", in).http(202).eq("success", true)
			}
			c.b("/events/batch", obj{"events": []obj{in, in}}).http(202).eq("success", true)
			c.in(flow, id, true)
		}},
	}}
}

// flowStepPart is what each step does.
func flowStepPart() part {
	return part{"flows: steps", []rule{
		{"e-mail: a letter with its tags filled in, that can be opened, clicked and unsubscribed from", func(c *check) {
			e := c.mail("letter")
			id := c.contact(obj{"email": e, "first_name": "Ada"})
			flow := c.live(onEvent("ordered"), step("mail", "email", "", obj{"subject": "Order {{event.order}}", "body": `<p>Dear {{first_name}}, <a href="https://shop.example/{{event.order}}">look</a></p>`}))
			c.event("ordered", obj{"email": e}, obj{"order": "A7"})
			c.wants(c.through(flow, id), "mail queued")
			c.until("the letter comes", func() bool { return len(c.relay.to(e)) == 1 })
			got := c.relay.to(e)[0]
			if got.subject != "Order A7" || !strings.Contains(got.html, "Dear Ada, ") {
				c.Errorf("came %+v", got)
			}
			l := c.links(e)
			c.fetch(l.pixel).http(200)
			if click := c.fetch(l.clicks[0]); click.header.Get("Location") != "https://shop.example/A7" {
				click.fault("led to %q", click.header.Get("Location"))
			}
			c.until("the click is an event of the profile", func() bool {
				for _, x := range c.history(id).array("data.events") {
					if x := x.(obj); x["event_type"] == "email_clicked" && x["properties"].(obj)["flow_id"] == flow {
						return true
					}
				}
				return false
			})
			link := strings.Trim(strings.Split(got.header.Get("List-Unsubscribe"), ",")[0], "<> ")
			c.do(c.T, "POST", strings.TrimPrefix(link, c.server.origin), "List-Unsubscribe=One-Click", "Content-Type", "application/x-www-form-urlencoded").http(200)
			c.a("GET", "/contacts/"+id, nil).success().eq("data.status", "Unsubscribed")
		}},
		{"e-mail: a saved template", func(c *check) {
			e := c.mail("saved")
			c.contact(obj{"email": e})
			template := c.console("POST", "/templates", obj{"name": c.name("t"), "subject": "Saved subject", "html": "<p>Saved body</p>"}).http(200).str("data._id")
			c.live(onEvent("saved"), step("mail", "email", "", obj{"template_id": template}))
			c.event("saved", obj{"email": e}, nil)
			c.until("the letter comes", func() bool { return len(c.relay.to(e)) == 1 })
			if got := c.relay.to(e)[0]; got.subject != "Saved subject" || !strings.Contains(got.html, "Saved body") {
				c.Errorf("came %+v", got)
			}
		}},
		{"e-mail and SMS are not sent to people who must not get them; such people go on", func(c *check) {
			flow := c.live(onEvent("reached"), mailStep("mail", "text", "M"), step("text", "sms", "", obj{"text": "T"}))
			stranger := c.event("reached", obj{"phone": "+4930800801"}, nil)
			c.wants(c.through(flow, stranger), "mail skipped_no_address", "text skipped_not_subscribed")
			left, blocked, complained := c.mail("left"), c.mail("blocked"), c.mail("complained")
			id := c.contact(obj{"email": left})
			c.console("POST", "/profiles/"+id+"/consent", obj{"channel": "email", "status": "unsubscribed"}).http(200)
			c.event("reached", obj{"email": left}, nil)
			c.wants(c.through(flow, id), "mail skipped_not_subscribed", "text skipped_no_address")
			id = c.contact(obj{"email": blocked})
			c.console("POST", "/profiles/"+id+"/suppression", obj{"channel": "email"}).http(200)
			c.event("reached", obj{"email": blocked}, nil)
			c.wants(c.through(flow, id), "mail skipped_blocked", "text skipped_no_address")
			id = c.contact(obj{"email": complained})
			c.report(obj{"type": "complaint", "recipient": complained})
			c.event("reached", obj{"email": complained}, nil)
			c.wants(c.through(flow, id), "mail skipped_blocked", "text skipped_no_address")
			for _, e := range []string{left, blocked, complained} {
				if n := len(c.relay.to(e)); n != 0 {
					c.Errorf("%d letters came for %s", n, e)
				}
			}
		}},
		{"SMS: a text message", func(c *check) {
			phone := "+4930800800"
			id := c.contact(obj{"phone": phone, "first_name": "Ada"})
			flow := c.live(onEvent("texted"), step("text", "sms", "", obj{"text": "Hi {{first_name}}"}))
			c.event("texted", obj{"phone": phone}, nil)
			c.wants(c.through(flow, id), "text queued")
			c.until("the message is out", func() bool {
				a := c.console("GET", "/outbox?channel=sms", nil).http(200)
				return len(a.array("data")) == 1 && a.eq("data.0.body", "Hi Ada").str("data.0.to") == phone
			})
		}},
		{"wait: for its time, and no longer", func(c *check) {
			flow := c.live(onEvent("waited"), waitStep("wait", "tag", 1), tagStep("tag", "", "woken"))
			began := time.Now()
			id := c.event("waited", obj{"email": c.mail("wait")}, nil)
			if a := c.ways(flow, id); time.Since(began) < time.Second && a.str("data.enrolments.0.status") != "in_progress" {
				a.fault("expected it to wait")
			}
			c.wants(c.through(flow, id), "wait done", "tag done")
			if took := time.Since(began); took < time.Second {
				c.Errorf("it waited %v", took)
			}
		}},
		{"wait: until a local time that is over goes on at once", func(c *check) {
			flow := c.live(onEvent("waited_until"), step("wait", "wait", "", obj{"until": "2020-01-31T09:00", "timezone": "Europe/Berlin"}))
			id := c.event("waited_until", obj{"email": c.mail("until")}, nil)
			c.wants(c.through(flow, id), "wait done")
			later := c.live(onEvent("waited_long"), step("wait", "wait", "", obj{"until": "2999-07-01T09:00", "timezone": "Europe/Berlin"}))
			id = c.event("waited_long", obj{"email": c.mail("until")}, nil)
			c.ways(later, id).http(200).eq("data.enrolments.0.due", "2999-07-01T07:00:00.000Z")
		}},
		{"condition: YES one way, NO the other, by what holds at that instant", func(c *check) {
			flow := c.live(onEvent("asked"), obj{"id": "ask", "type": "condition", "if": obj{"match": "all", "conditions": []obj{
				{"kind": "attribute", "field": "attributes.plan", "op": "=", "value": "pro"}, {"kind": "activity", "event": "asked", "count": obj{"op": ">=", "value": 1}}}}, "yes": "is", "no": "not"},
				tagStep("is", "", "yes"), tagStep("not", "", "no"))
			for plan, way := range map[string][]string{"pro": {"ask yes", "is done"}, "free": {"ask no", "not done"}} {
				c.wants(c.through(flow, c.event("asked", obj{"email": c.mail("ask"), "attributes": obj{"plan": plan}}, nil)), way...)
			}
		}},
		{"split: people go every way", func(c *check) {
			flow := c.live(onEvent("parted"), obj{"id": "split", "type": "split", "branches": []obj{{"weight": 1, "next": "left"}, {"weight": 1, "next": "right"}}}, tagStep("left", "", "l"), tagStep("right", "", "r"))
			for range 60 {
				c.event("parted", obj{"email": c.mail("split")}, nil)
			}
			a := c.flow(flow).eq("data.counts.completed", 60)
			// Of 60 fair choices one way gets fewer than 10 once in 10⁸ runs.
			if l, r := a.num("data.step_counts.1.arrived"), a.num("data.step_counts.2.arrived"); l+r != 60 || l < 10 || r < 10 {
				a.fault("%v went left and %v right", l, r)
			}
		}},
		{"tag: adds and removes; segments ask for tags", func(c *check) {
			c.live(onEvent("tagged"), step("tag", "tag", "", obj{"add": []string{"gold", "early"}, "remove": []string{"lead"}}))
			c.live(onEvent("led"), tagStep("tag", "", "lead"))
			seg := c.segment(obj{"kind": "attribute", "field": "tags", "op": "in", "value": []string{"gold"}})
			e := c.mail("tagged")
			id := c.event("led", obj{"email": e}, nil)
			c.console("GET", "/profiles/"+id, nil).http(200).eq("data.tags", []string{"lead"}).holds("data.segments", seg, false)
			c.event("tagged", obj{"email": e}, nil)
			c.console("GET", "/profiles/"+id, nil).http(200).eq("data.tags", []string{"gold", "early"}).holds("data.segments", seg, true)
		}},
		{"update contact: sets and removes fields, and segments follow", func(c *check) {
			c.live(onEvent("updated"), step("set", "update_contact", "", obj{"set": obj{"first_name": "{{event.name}}", "attributes.plan": "pro", "attributes.trial": nil, "geo.city": "Rome"}}))
			seg := c.segment(obj{"kind": "attribute", "field": "attributes.plan", "op": "=", "value": "pro"})
			id := c.event("updated", obj{"email": c.mail("updated"), "attributes": obj{"trial": true, "plan": "free"}}, obj{"name": "Ada"})
			c.console("GET", "/profiles/"+id, nil).http(200).eq("data.first_name", "Ada").eq("data.attributes", obj{"plan": "pro"}).eq("data.geo", obj{"city": "Rome"}).holds("data.segments", seg, true)
		}},
		{"webhook: calls, tries again under the same id, then the enrolment continues", func(c *check) {
			path := "/" + c.name("call")
			c.remote.mu.Lock()
			c.remote.fails[path] = 1
			c.remote.mu.Unlock()
			flow := c.live(onEvent("called"), step("call", "webhook", "tag", obj{"url": c.remote.plain.URL + path, "body": obj{"who": "{{email}}", "order": "{{event.order}}"}}), tagStep("tag", "", "told"))
			e := c.mail("called")
			id := c.event("called", obj{"email": e}, obj{"order": "A\"7"})
			c.wants(c.through(flow, id), "call delivered", "tag done")
			got := c.remote.received(path)
			if len(got) != 2 || string(got[1].body) != `{"who":"`+e+`","order":"A\"7"}` && string(got[1].body) != `{"order":"A\"7","who":"`+e+`"}` || string(got[0].body) != string(got[1].body) ||
				got[0].header.Get("Webhook-Id") == "" || got[0].header.Get("Webhook-Id") != got[1].header.Get("Webhook-Id") {
				c.Errorf("came %v", got)
			}
		}},
		{"webhook: when it fails for good the enrolment continues, or ends, as configured", func(c *check) {
			for how, want := range map[string][]string{"continue": {"call failed", "tag done"}, "exit": {"call failed"}} {
				path, kind := "/"+c.name("call"), c.name("failed_")
				c.remote.mu.Lock()
				c.remote.fails[path] = 9
				c.remote.mu.Unlock()
				flow := c.live(onEvent(kind), step("call", "webhook", "tag", obj{"url": c.remote.plain.URL + path, "attempts": 1, "on_failure": how}), tagStep("tag", "", "told"))
				id := c.event(kind, obj{"email": c.mail("failed")}, nil)
				c.wants(c.through(flow, id), want...)
				if n := len(c.remote.received(path)); n != 1 {
					c.Errorf("%s: called %d times", how, n)
				}
			}
		}},
		{"exit: the way ends before the end", func(c *check) {
			flow := c.live(onEvent("exited"), tagStep("tag", "out", "x"), obj{"id": "out", "type": "exit"})
			id := c.event("exited", obj{"email": c.mail("exit")}, nil)
			c.wants(c.through(flow, id), "tag done", "out done")
			c.ways(flow, id).eq("data.enrolments.0.status", "exited").eq("data.enrolments.0.reason", "exit_step")
		}},
	}}
}
