package main

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// imported records events of the past.
func (c *check) imported(events ...obj) {
	c.Helper()
	hash := sha256.Sum256([]byte(c.name("file")))
	c.b("/events/import", obj{"file": hex.EncodeToString(hash[:]), "first_row": 0, "events": events}).http(202).eq("success", true)
}

// past is an event some days ago.
func past(days float64, kind, email string, properties obj) obj {
	at := time.Now().Add(-time.Duration(days * 24 * float64(time.Hour)))
	return obj{"event_type": kind, "timestamp": at.UnixMilli(), "user": obj{"email": email}, "properties": properties}
}

// resolves expects a segment of a definition to hold these people alone: in the
// answer about members, in the count, in the list for push messages, and on
// their profiles.
func (c *check) resolves(definition any, people ...string) {
	c.Helper()
	id := c.segment(definition)
	slices.Sort(people)
	got := c.members(id)
	slices.Sort(got)
	if !slices.Equal(got, people) {
		c.Errorf("%v holds %v, expected %v", definition, got, people)
	}
	c.console("GET", "/segments/"+id, nil).http(200).eq("data.count", len(people))
	c.console("POST", "/segments/preview", obj{"definition": definition}).http(200).eq("data.count", len(people))
	for _, x := range c.a("GET", "/push/segments?limit=1000", nil).success().array("data") {
		if x := x.(obj); x["_id"] == id && kindOf(x["count"]) == "integer" && x["count"].(interface{ String() string }).String() != itoa(len(people)) {
			c.Errorf("%v has the count %v for push messages, expected %d", definition, x["count"], len(people))
		}
	}
	for _, p := range people {
		c.console("GET", "/profiles/"+p, nil).http(200).holds("data.segments", id, true)
	}
}

func segmentPart() part {
	return part{"segments: criteria", []rule{
		{"conditions are joined by AND and by OR, also nested", func(c *check) {
			tag := c.name("tag")
			person := func(color, size string) string {
				return c.event("seen", obj{"email": c.mail("combo"), "attributes": obj{"tag": tag, "color": color, "size": size}}, nil)
			}
			redS, redL, blueL := person("red", "s"), person("red", "l"), person("blue", "l")
			is := func(field, value string) obj {
				return obj{"kind": "attribute", "field": "attributes." + field, "op": "=", "value": value}
			}
			all := func(list ...obj) obj { return obj{"match": "all", "conditions": list} }
			any := func(list ...obj) obj { return obj{"match": "any", "conditions": list} }
			c.resolves(all(is("tag", tag), is("color", "red"), is("size", "l")), redL)
			c.resolves(all(is("tag", tag), any(is("color", "blue"), is("size", "s"))), redS, blueL)
			c.resolves(any(all(is("tag", tag), is("color", "red")), all(is("tag", tag), is("color", "blue"))), redS, redL, blueL)
		}},
		{"consent: a channel and a status", func(c *check) {
			x := c.other()
			yes, no := x.contact(obj{"phone": "+4930200300"}), x.contact(obj{"phone": "+4930200301"})
			x.console("POST", "/profiles/"+no+"/consent", obj{"channel": "sms", "status": "unsubscribed"}).http(200)
			never := x.contact(obj{"email": x.mail("never")})
			for status, who := range map[string]string{"subscribed": yes, "unsubscribed": no, "never_subscribed": never} {
				x.resolves(obj{"kind": "consent", "channel": "sms", "status": status}, who)
			}
			x.resolves(obj{"kind": "consent", "channel": "email", "status": "subscribed"}, never)
		}},
		{"consent: bounded by the date of subscribing", func(c *check) {
			x := c.other()
			id := x.contact(obj{"email": x.mail("dated")})
			yesterday, tomorrow := time.Now().Add(-24*time.Hour).UTC().Format(time.RFC3339), time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339)
			with := func(pairs ...string) obj {
				out := obj{"kind": "consent", "channel": "email", "status": "subscribed"}
				for i := 0; i < len(pairs); i += 2 {
					out[pairs[i]] = pairs[i+1]
				}
				return out
			}
			x.resolves(with("since", yesterday), id)
			x.resolves(with("since", yesterday, "until", tomorrow), id)
			x.resolves(with("since", tomorrow))
			x.resolves(with("until", yesterday))
		}},
		{"activity: did, and did not", func(c *check) {
			x := c.other()
			did, not := x.event("item_viewed", obj{"email": x.mail("did")}, nil), x.event("signed_up", obj{"email": x.mail("not")}, nil)
			x.resolves(obj{"kind": "activity", "event": "item_viewed"}, did)
			x.resolves(obj{"kind": "activity", "event": "item_viewed", "did": false}, not)
		}},
		{"activity: a number of times", func(c *check) {
			x := c.other()
			ids := []string{}
			for n := range 3 {
				e := x.mail("times")
				for range n + 1 {
					x.event("item_viewed", obj{"email": e}, nil)
				}
				ids = append(ids, x.event("signed_up", obj{"email": e}, nil))
			}
			count := func(op string, n int) obj {
				return obj{"kind": "activity", "event": "item_viewed", "count": obj{"op": op, "value": n}}
			}
			x.resolves(count(">=", 2), ids[1], ids[2])
			x.resolves(count("=", 2), ids[1])
			x.resolves(count("<", 3), ids[0], ids[1])
			x.resolves(count(">=", 4))
		}},
		{"activity: within the last days, or over all time", func(c *check) {
			x := c.other()
			old, fresh := x.mail("old"), x.mail("fresh")
			x.imported(past(40, "item_viewed", old, nil), past(29.9, "item_viewed", fresh, nil), past(40, "item_viewed", fresh, nil))
			id := func(e string) string {
				return x.a("GET", "/contacts?email="+e, nil).success().str("data.0._id")
			}
			in := func(window obj, n int) obj {
				return obj{"kind": "activity", "event": "item_viewed", "window": window, "count": obj{"op": ">=", "value": n}}
			}
			x.resolves(in(obj{"last_days": 30}, 1), id(fresh))
			x.resolves(in(obj{"last_days": 30}, 2))
			x.resolves(in(obj{"last_days": 41}, 2), id(fresh))
			x.resolves(in(obj{"all_time": true}, 1), id(old), id(fresh))
		}},
		{"attributes: any field of the profile", func(c *check) {
			x := c.other()
			a := x.event("seen", obj{"email": "ada@segments.example", "first_name": "Ada", "last_name": "L", "geo": obj{"country": "United Kingdom"}, "attributes": obj{"plan": "pro", "age": 36}}, nil)
			b := x.event("seen", obj{"external_id": "crm-9", "geo": obj{"country": "France"}, "attributes": obj{"plan": "free"}}, nil)
			for _, s := range []struct {
				field, op string
				value     any
				people    []string
			}{
				{"geo.country", "=", "United Kingdom", []string{a}}, {"attributes.plan", "=", "free", []string{b}}, {"attributes.plan", "exists", nil, []string{a, b}},
				{"attributes.age", ">", 30, []string{a}}, {"email", "ends_with", "@segments.example", []string{a}}, {"first_name", "=", "Ada", []string{a}},
				{"last_name", "not_exists", nil, []string{b}}, {"external_id", "=", "crm-9", []string{b}}, {"phone", "exists", nil, nil}, {"created_at", "in_last_days", 1, []string{a, b}},
			} {
				definition := obj{"kind": "attribute", "field": s.field, "op": s.op}
				if s.value != nil {
					definition["value"] = s.value
				}
				x.resolves(definition, s.people...)
			}
		}},
		{"the properties of events are filtered", func(c *check) {
			x := c.other()
			a := x.event("item_purchased", obj{"email": x.mail("a")}, obj{"currency": "EUR", "value": 10})
			x.event("item_purchased", obj{"email": x.mail("b")}, obj{"currency": "USD", "value": 10})
			where := func(property, op string, value any) obj {
				return obj{"kind": "activity", "event": "item_purchased", "where": []obj{{"property": property, "op": op, "value": value}}}
			}
			x.resolves(where("currency", "=", "EUR"), a)
			x.resolves(where("value", ">", 10))
		}},
		{"the properties of events are added up: the sum of value over 30 days", func(c *check) {
			x := c.other()
			rich, poor := x.mail("rich"), x.mail("poor")
			x.imported(past(40, "item_purchased", poor, obj{"value": 1000}), past(20, "item_purchased", rich, obj{"value": 60.25}), past(20, "item_purchased", poor, obj{"value": 99.99}))
			id := x.event("item_purchased", obj{"email": rich}, obj{"value": 39.75})
			sum := func(days int, op string, n float64) obj {
				return obj{"kind": "activity", "event": "item_purchased", "window": obj{"last_days": days}, "aggregate": obj{"fn": "sum", "property": "value", "op": op, "value": n}}
			}
			other := x.a("GET", "/contacts?email="+poor, nil).success().str("data.0._id")
			x.resolves(sum(30, ">=", 100), id)
			x.resolves(sum(30, "=", 99.99), other)
			x.resolves(sum(41, ">=", 100), id, other)
		}},
		{"a definition with a fault is refused, its place named", func(c *check) {
			a := c.console("POST", "/segments", obj{"name": "x", "definition": obj{"match": "all", "conditions": []obj{
				{"kind": "attribute", "field": "email", "op": "exists"}, {"kind": "activity", "event": "e", "window": obj{"last_days": 0}}}}}).http(400)
			a.eq("message", "conditions[1].window.last_days must be greater than 0")
		}},
	}}
}

func segmentReadPart() part {
	return part{"segments: membership at reading", []rule{
		{"a matching event puts the profile into every segment it fits, at once", func(c *check) {
			plan := c.name("plan")
			definitions := []obj{
				{"kind": "activity", "event": "item_purchased"},
				{"kind": "activity", "event": "item_purchased", "window": obj{"last_days": 7}, "count": obj{"op": ">=", "value": 1}},
				{"kind": "activity", "event": "item_purchased", "where": []obj{{"property": "currency", "op": "=", "value": "EUR"}}},
				{"kind": "activity", "event": "item_purchased", "window": obj{"last_days": 30}, "aggregate": obj{"fn": "sum", "property": "value", "op": ">=", "value": 100}},
				{"kind": "attribute", "field": "attributes.plan", "op": "=", "value": plan},
				{"kind": "attribute", "field": "geo.country", "op": "exists"},
			}
			segments := []string{}
			for _, d := range definitions {
				segments = append(segments, c.segment(d))
			}
			no := c.segment(obj{"kind": "activity", "event": "item_returned"})
			for n := range 20 {
				id := c.event("item_purchased", obj{"email": c.mail("atonce"), "geo": obj{"country": "France"}, "attributes": obj{"plan": plan}}, obj{"value": 120, "currency": "EUR"})
				profile := c.console("GET", "/profiles/"+id, nil).http(200).holds("data.segments", no, false)
				for _, s := range segments {
					profile.holds("data.segments", s, true)
				}
				for _, s := range segments {
					c.console("GET", "/segments/"+s, nil).http(200).eq("data.count", n+1)
				}
			}
		}},
		{"the number of events is that of events which were sent, whatever their type, and of none that the service recorded", func(c *check) {
			x := c.other()
			atLeast := func(n int) obj { return obj{"kind": "attribute", "field": "event_count", "op": ">=", "value": n} }
			two, three := x.segment(atLeast(2)), x.segment(atLeast(3)) // live as the events come
			e := x.mail("counted")
			id := x.event("seen", obj{"email": e}, nil)
			x.event("email_opened", obj{"email": e}, obj{"campaign_id": "elsewhere"})
			x.b("/events", obj{"event_type": "email_opened", "user": obj{"email": e}, "idempotency_key": "open-1"}).http(202).eq("success", true)
			quiet := x.event("seen", obj{"email": x.mail("quiet")}, nil)
			list := x.a("POST", "/lists", obj{"name": x.name("list")}).success().str("data._id")
			x.a("POST", "/lists/"+list+"/contacts", obj{"email": e}).success() // list_joined is the service's own
			x.console("POST", "/profiles/"+quiet+"/consent", obj{"channel": "email", "status": "subscribed"}).http(200)
			for _, s := range []string{two, three} {
				if got := x.members(s); !slices.Equal(got, []string{id}) {
					c.Errorf("live: %v", got)
				}
			}
			x.resolves(atLeast(3), id) // from history
			x.resolves(atLeast(4))
			x.resolves(obj{"kind": "attribute", "field": "event_count", "op": "=", "value": 1}, quiet)
			x.console("POST", "/segments/explain", obj{"profile_id": id, "definition": atLeast(3)}).http(200).eq("data.member", true).eq("data.definition.facts.value", 3)
			x.console("GET", "/profiles/"+id+"/timeline?kinds=event", nil).http(200).length("data", 3)
			x.console("GET", "/profiles/"+id+"/timeline?kinds=message", nil).http(200).length("data", 0)
			x.console("GET", "/profiles/"+id+"/events", nil).http(200).eq("data.events.0.event_type", "list_joined").eq("data.events.1.idempotency_key", "open-1").eq("data.events.2.idempotency_key", nil)
		}},
		{"a profile leaves when the window has passed, with no event to tell of it", func(c *check) {
			seg := c.segment(obj{"kind": "activity", "event": "blinked", "window": obj{"last_days": 1.5 / 86400}})
			began := time.Now().Truncate(time.Millisecond) // windows count whole ones
			id := c.event("blinked", obj{"email": c.mail("blink")}, nil)
			if got := c.members(seg); !slices.Equal(got, []string{id}) && time.Since(began) < time.Second {
				c.Errorf("after the event it holds %v", got)
			}
			c.until("the window passes", func() bool { return len(c.members(seg)) == 0 })
			if time.Since(began) < 1500*time.Millisecond {
				c.Errorf("the profile left after %v", time.Since(began))
			}
		}},
		{"an event that was not fitting takes the profile out at once", func(c *check) {
			e := c.mail("mover")
			paris := c.segment(obj{"kind": "attribute", "field": "geo.city", "op": "=", "value": "Paris"})
			c.event("moved", obj{"email": e, "geo": obj{"city": "Paris"}}, nil)
			c.console("GET", "/segments/"+paris, nil).eq("data.count", 1)
			c.event("moved", obj{"email": e, "geo": obj{"city": "Rome"}}, nil)
			c.console("GET", "/segments/"+paris, nil).eq("data.count", 0)
		}},
		{"a segment is the audience of a campaign, as it is at the sending", func(c *check) {
			seg := c.segment(obj{"kind": "activity", "event": "subscribed_news"})
			campaign := c.campaign(nil)
			e := c.mail("audience")
			c.contact(obj{"email": e})
			c.event("subscribed_news", obj{"email": c.mail("visitor")}, nil) // people who never subscribed get nothing
			c.event("subscribed_news", obj{"email": e}, nil)
			c.a("POST", "/campaign/"+campaign+"/send", obj{"segment_ids": []string{seg}}).success().eq("data.total_members", 2).eq("data.emails_sent", 1)
			if n := len(c.relay.to(e)); n != 1 {
				c.Errorf("%d messages came", n)
			}
		}},
	}}
}
