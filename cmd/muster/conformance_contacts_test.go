package main

import (
	"fmt"
	"strings"
	"sync"
)

func contactPart() part {
	return part{"contacts", []rule{
		{"every field may be left out, and the body too", func(c *check) {
			c.a("POST", "/contacts", nil).success().str("data._id")
			c.a("POST", "/contacts", obj{}).success().str("data._id")
			for _, field := range []string{"email", "first_name", "last_name", "phone", "external_id"} {
				value := c.name("alone")
				if field == "phone" {
					value = "+49151" + strings.Repeat("7", 7)
				}
				c.a("POST", "/contacts", obj{field: value}).success().eq("data."+field, value)
			}
		}},
		{"the answer has the contact's fields in their types", func(c *check) {
			in := obj{"email": c.mail("Ada"), "first_name": "Ada", "last_name": "Lovelace", "phone": "+49 (30) 123-4567", "external_id": c.name("crm-")}
			a := c.a("POST", "/contacts", in).success()
			for field, value := range in {
				a.eq("data."+field, value)
			}
			a.kinds("data", map[string]string{"_id": "string", "subscribed": "boolean", "sms_consent": "object", "created_at": "time"})
		}},
		{"the e-mail is kept as it was given and not judged", func(c *check) {
			for _, e := range []string{"  Spaces.And.CASE" + c.mail("") + " ", c.name("no address at all "), c.name("two@@at"), `"quo ted"` + c.mail(""), c.name("münchen@ü.example")} {
				a := c.a("POST", "/contacts", obj{"email": e}).success().eq("data.email", e)
				c.a("GET", "/contacts/"+a.str("data._id"), nil).success().eq("data.email", e)
			}
		}},
		{"identifiers beyond those a profile may have are named in a warning, and none is in later answers", func(c *check) {
			e := c.mail("full")
			var fill []obj
			for i := range 49 { // and the e-mail is the 50th
				fill = append(fill, obj{"event_type": "seen", "user": obj{"email": e, "external_id": fmt.Sprintf("%s-%d", e, i)}})
			}
			c.b("/events/batch", obj{"events": fill}).http(202).eq("success", true)
			in := obj{"external_id": e + "-7", "phone": "+49 30 7419 55 20"}
			made := c.a("POST", "/contacts", in).success().eq("data.warning", "phone not added: the profile may have no more identifiers; see its conflicts")
			if _, found := c.a("GET", "/contacts/"+made.str("data._id"), nil).success().at("data.warning"); found {
				c.Error("a contact that was read has a warning")
			}
		}},
		{"a second contact with an e-mail is refused with the fixed message, as HTTP 200", func(c *check) {
			e := c.mail("twice")
			first := c.contact(obj{"email": e, "first_name": "First"})
			c.a("POST", "/contacts", obj{"email": e, "first_name": "Second", "phone": "+4930999001"}).failure("Contact with this email already exists")
			c.a("GET", "/contacts/"+first, nil).success().eq("data.first_name", "First").eq("data.phone", nil)
			c.a("POST", "/contacts", obj{"email": " " + strings.ToUpper(e)}).failure("Contact with this email already exists")
		}},
		{"e-mails are unique in the whole system, over all companies", func(c *check) {
			e := c.mail("everywhere")
			c.contact(obj{"email": e})
			second := c.other()
			second.a("POST", "/contacts", obj{"email": e}).failure("Contact with this email already exists")
			second.a("GET", "/contacts?email="+e, nil).success().length("data", 0)
		}},
		{"of many creators of one e-mail at once, one wins", func(c *check) {
			e := c.mail("race")
			companies := []*check{c, c.other()}
			messages := make([]string, 16)
			for _, x := range companies {
				x.freshKey()
			}
			var all sync.WaitGroup
			for i := range messages {
				all.Go(func() {
					a := companies[i%2].a("POST", "/contacts", obj{"email": e}).http(200)
					v, _ := a.at("message")
					messages[i], _ = v.(string)
				})
			}
			all.Wait()
			won := 0
			for _, m := range messages {
				switch m {
				case "":
					won++
				case "Contact with this email already exists":
				default:
					c.Errorf("answered %q", m)
				}
			}
			if won != 1 {
				c.Errorf("%d creators won", won)
			}
		}},
		{"a phone subscribes to SMS, with the source manual", func(c *check) {
			a := c.a("POST", "/contacts", obj{"phone": "+4930100200"}).success()
			a.only("data.sms_consent", "status", "source").eq("data.sms_consent.status", "subscribed").eq("data.sms_consent.source", "manual")
		}},
		{"without a phone there is no SMS consent", func(c *check) {
			a := c.a("POST", "/contacts", obj{"email": c.mail("nophone")}).success()
			a.eq("data.sms_consent.status", "never_subscribed").eq("data.sms_consent.source", nil)
		}},
		{"subscribed is true at creation", func(c *check) {
			for _, in := range []obj{{}, {"email": c.mail("sub")}, {"phone": "+4930100300"}, {"external_id": c.name("sub")}} {
				c.a("POST", "/contacts", in).success().eq("data.subscribed", true)
			}
		}},
		{"created_at is the present in UTC", func(c *check) {
			c.a("POST", "/contacts", obj{}).success().recent("data.created_at")
		}},
		{"list_id puts the contact on the list in the same call", func(c *check) {
			list := c.list()
			id := c.contact(obj{"email": c.mail("listed"), "list_id": list})
			c.a("GET", "/contacts?list_id="+list, nil).success().length("data", 1).eq("data.0._id", id)
			c.a("GET", "/contacts/"+id, nil).success().eq("data.lists", []string{list})
		}},
		{"with a list that is not there nothing is created", func(c *check) {
			e := c.mail("unlisted")
			c.a("POST", "/contacts", obj{"email": e, "list_id": "lst_none"}).names("list_id")
			c.contact(obj{"email": e})
		}},
		{"the external id names the person to events", func(c *check) {
			x := c.name("person-")
			id := c.contact(obj{"external_id": x, "email": c.mail("ext")})
			if got := c.event("looked", obj{"external_id": x}, nil); got != id {
				c.Errorf("an event of %s went to %s, expected %s", x, got, id)
			}
		}},
		{"a field of a wrong type is refused by its name", func(c *check) {
			for _, field := range []string{"email", "first_name", "last_name", "phone", "external_id", "list_id"} {
				c.a("POST", "/contacts", obj{field: 5}).failure(field + " Input should be a valid string")
			}
		}},
		{"reading contacts answers an array of them", func(c *check) {
			id := c.contact(obj{"email": c.mail("read"), "first_name": "Read"})
			a := c.a("GET", "/contacts?limit=1000", nil).success()
			found := false
			for _, x := range a.array("data") {
				found = found || x.(obj)["_id"] == id
			}
			if !found {
				a.fault("expected the contact %s", id)
			}
			a.kinds("data.0", map[string]string{"_id": "string", "subscribed": "boolean", "sms_consent": "object", "created_at": "time"})
		}},
		{"contacts are read in pages that leave none out", func(c *check) {
			x := c.other()
			want := map[string]bool{}
			for range 5 {
				want[x.contact(obj{})] = true
			}
			for cursor, pages := "", 0; pages < 10; pages++ {
				a := x.a("GET", "/contacts?limit=2&cursor="+cursor, nil).success()
				for _, y := range a.array("data") {
					delete(want, y.(obj)["_id"].(string))
				}
				if next, more := a.at("next"); !more {
					break
				} else {
					cursor = next.(string)
				}
			}
			if len(want) != 0 {
				c.Errorf("%d contacts are on no page", len(want))
			}
		}},
		{"a phone can be added later, with the same consent", func(c *check) {
			id := c.contact(obj{"email": c.mail("later")})
			c.a("PATCH", "/contacts/"+id, obj{"phone": "+4930100400"}).success().eq("data.phone", "+4930100400").
				eq("data.sms_consent", obj{"status": "subscribed", "source": "manual"})
		}},
		{"a profile has devices, custom fields, a score, consents, events and suppressions", func(c *check) {
			e := c.mail("whole")
			id := c.contact(obj{"email": e, "phone": "+4930100500"})
			c.a("POST", "/contacts/"+id+"/devices", obj{"device_id": "tablet", "kind": "apns", "address": strings.Repeat("ab", 32)}).success()
			c.event("looked", obj{"email": e, "attributes": obj{"plan": "pro"}}, obj{"page": 7})
			c.console("POST", "/profiles/"+id+"/suppression", obj{"channel": "sms"}).http(200)
			a := c.a("GET", "/contacts/"+id+"/export", nil).success()
			a.eq("data.contact.attributes.plan", "pro").eq("data.contact.engagement_score", 0).eq("data.devices.0.device_id", "tablet").eq("data.suppressions.0.channel", "sms")
			if n := len(a.array("data.consents")); n < 2 {
				a.fault("expected consents of e-mail and SMS")
			}
			events := map[any]any{}
			for _, x := range a.array("data.events") {
				events[x.(obj)["event_type"]] = x.(obj)["properties"]
			}
			if p, is := events["looked"].(obj); !is || len(p) != 1 {
				a.fault("expected the event with its property")
			}
		}},
		{"contacts of another company are as unknown", func(c *check) {
			id := c.contact(obj{"email": c.mail("secret")})
			x := c.other()
			unknown := x.a("GET", "/contacts/prf_00000000000000000000000000000000", nil).fails("")
			for _, a := range []*answer{x.a("GET", "/contacts/"+id, nil), x.a("PATCH", "/contacts/"+id, obj{"first_name": "Eve"}), x.a("DELETE", "/contacts/"+id, nil)} {
				a.fails("contact")
			}
			if a := x.a("GET", "/contacts/"+id, nil); string(a.raw) != string(unknown.raw) {
				a.fault("expected the answer of an unknown id: %s", unknown.raw)
			}
		}},
	}}
}

// statusPart is the named statuses and to whom campaigns go. At risk needs 90
// days without a reaction: package resolver tests it with a clock of its own.
func statusPart() part {
	status := func(c *check, id, want string) {
		c.Helper()
		c.console("GET", "/profiles/"+id, nil).http(200).eq("data.statuses.email", want)
	}
	// sent says whether a campaign reaches a contact.
	sent := func(c *check, email string, want bool) {
		c.Helper()
		list := c.list(email)
		before := len(c.relay.to(email))
		c.send(c.campaign(nil), list).success().eq("data.total_members", 1)
		if got := len(c.relay.to(email)) > before; got != want {
			c.Errorf("%s was sent a campaign: %v, expected %v", email, got, want)
		}
	}
	consent := func(c *check, id, is string) {
		c.Helper()
		c.console("POST", "/profiles/"+id+"/consent", obj{"channel": "email", "status": is}).http(200)
	}
	return part{"contact statuses", []rule{
		{"Subscribed: made with an e-mail; gets campaigns", func(c *check) {
			e := c.mail("subscribed")
			status(c, c.contact(obj{"email": e}), "Subscribed")
			sent(c, e, true)
		}},
		{"Engaged: opened a message", func(c *check) {
			e := c.mail("engaged")
			id := c.contact(obj{"email": e})
			sent(c, e, true)
			c.fetch(c.links(e).pixel).http(200)
			c.until("the open is recorded", func() bool { return c.console("GET", "/profiles/"+id, nil).str("data.statuses.email") == "Engaged" })
			sent(c, e, true)
			if score := c.a("GET", "/contacts/"+id, nil).success().num("data.engagement_score"); score <= 0 {
				c.Errorf("the engagement score is %v", score)
			}
		}},
		{"Unsubscribed: must not be sent to", func(c *check) {
			e := c.mail("unsubscribed")
			id := c.contact(obj{"email": e})
			consent(c, id, "unsubscribed")
			status(c, id, "Unsubscribed")
			sent(c, e, false)
			c.a("GET", "/contacts/"+id, nil).success().eq("data.subscribed", false)
		}},
		{"Bounced: a hard bounce suppresses", func(c *check) {
			e := c.mail("gone")
			id := c.contact(obj{"email": e})
			c.send(c.campaign(nil), c.list(e)).fails("no such user")
			c.until("the bounce is recorded", func() bool { return c.console("GET", "/profiles/"+id, nil).str("data.statuses.email") == "Bounced" })
			c.console("GET", "/profiles/"+id, nil).http(200).str("data.suppressions.email")
			a := c.send(c.campaign(nil), c.list(e)).success().eq("data.emails_sent", 0)
			if stats := c.lastStats(); stats.num("data.failed") != 0 {
				a.fault("the address was tried again: %s", stats.raw)
			}
		}},
		{"Complained: a spam mark suppresses", func(c *check) {
			e := c.mail("complained")
			id := c.contact(obj{"email": e})
			c.report(obj{"type": "complaint", "recipient": e})
			status(c, id, "Complained")
			c.console("GET", "/profiles/"+id, nil).http(200).str("data.suppressions.email")
			sent(c, e, false)
		}},
		{"Suppressed: by the company; must not be sent to", func(c *check) {
			e := c.mail("suppressed")
			id := c.contact(obj{"email": e})
			c.console("POST", "/profiles/"+id+"/suppression", obj{"channel": "email"}).http(200)
			status(c, id, "Suppressed")
			sent(c, e, false)
		}},
		{"Pending: double opt-in that was not confirmed waits, until it is", func(c *check) {
			x := c.other()
			settings := x.console("GET", "/settings", nil).http(200).body.(obj)["data"].(obj)
			settings["double_opt_in"] = true
			x.console("PUT", "/settings", settings).http(200)
			e := x.mail("pending")
			id := x.contact(obj{"email": e})
			status(x, id, "Pending")
			x.until("the question came", func() bool { return len(x.relay.to(e)) == 1 })
			sent(x, e, false)
			link := x.links(e).in(x.relay.to(e)[0].text)
			x.fetch(link).http(200)
			status(x, id, "Pending") // a scanner may have followed the link
			x.do(x.T, "POST", strings.TrimPrefix(link, x.server.origin), nil, browser...)
			status(x, id, "Subscribed")
			sent(x, e, true)
		}},
	}}
}
