package main

import (
	"fmt"
	"strings"
	"time"
)

// history is the events of a profile, the newest first.
func (c *check) history(profile string) *answer {
	c.Helper()
	return c.console("GET", "/profiles/"+profile+"/events?limit=100", nil).http(200)
}

// catalogued is how many events of a type the catalog counts.
func (c *check) catalogued(key string) int {
	c.Helper()
	for _, x := range c.console("GET", "/catalog", nil).http(200).array("data") {
		if x := x.(obj); x["key"] == key {
			var n int
			fmt.Sscan(fmt.Sprint(x["count"]), &n)
			return n
		}
	}
	return 0
}

func eventPart() part {
	return part{"Surface B: events", []rule{
		{"an event is answered 202 with success, profile_id and error", func(c *check) {
			a := c.b("/events", obj{"event_type": "item_viewed", "user": obj{"email": c.mail("b")}}).http(202)
			a.only("", "success", "profile_id", "error").eq("success", true).eq("error", nil).str("profile_id")
		}},
		{"all fields are taken", func(c *check) {
			e := c.mail("full")
			a := c.b("/events", obj{
				"event_type": "item_purchased",
				"user": obj{"email": e, "external_id": c.name("x-"), "phone": "+4930555001", "first_name": "Ada", "last_name": "L",
					"geo": obj{"country": "France"}, "attributes": obj{"plan": "pro", "nested": obj{"list": []int{1, 2}}}},
				"properties": obj{"value": 49.5, "currency": "EUR", "product_id": "p-1"}, "idempotency_key": c.name("k-"),
			}).http(202).eq("success", true)
			p := c.console("GET", "/profiles/"+a.str("profile_id"), nil).http(200)
			p.eq("data.first_name", "Ada").eq("data.last_name", "L").eq("data.geo.country", "France").eq("data.attributes", obj{"plan": "pro", "nested": obj{"list": []int{1, 2}}}).
				eq("data.identities.email", []string{e}).eq("data.identities.phone", []string{"+4930555001"}).length("data.identities.external_id", 1)
		}},
		{"event_type is required: 4xx", func(c *check) {
			c.b("/events", obj{"user": obj{"email": "a@b.c"}}).http(400).eq("success", false)
			c.b("/events", obj{"event_type": nil, "user": obj{"email": "a@b.c"}}).http(400)
			c.b("/events", obj{"event_type": 5, "user": obj{"email": "a@b.c"}}).http(400)
		}},
		{"user is required: 4xx", func(c *check) {
			c.b("/events", obj{"event_type": "seen"}).http(400).eq("success", false)
			c.b("/events", obj{"event_type": "seen", "user": "ada"}).http(400)
			c.b("/events", obj{"event_type": "seen", "user": nil}).http(400)
		}},
		{"bad JSON is a 4xx", func(c *check) {
			for _, body := range []string{"", "{", "[]", "5", `{"event_type":"seen","user":{"email":"a@b.c"}`, `{"event_type":"seen","user":{"email":"a@b.c"}} x`} {
				if a := c.b("/events", body); a.status < 400 || a.status > 499 {
					a.fault("expected a 4xx")
				}
			}
			if a := c.do(c.T, "GET", "/api/v1/events", nil, "X-App-Id", c.app, "X-App-Secret", c.secret); a.status < 400 || a.status > 499 {
				a.fault("expected a 4xx")
			}
		}},
		{"user must have an e-mail, an external id or a phone: an error of the event", func(c *check) {
			for _, user := range []obj{{}, {"first_name": "Ada"}, {"email": "", "external_id": "", "phone": ""}} {
				a := c.b("/events", obj{"event_type": "seen", "user": user}).http(202).eq("success", false)
				if a.str("error") == "" {
					a.fault("the error says nothing")
				}
			}
			for _, field := range []string{"email", "external_id", "phone"} {
				value := c.name("+4930777")
				c.b("/events", obj{"event_type": "seen", "user": obj{field: value}}).http(202).eq("success", true)
			}
		}},
		{"event_type is a key in snake case: else an error of the event", func(c *check) {
			for _, kind := range []string{"Item Viewed", "itemViewed", "item-viewed", "_x", "x_", "a__b", "", "é"} {
				c.b("/events", obj{"event_type": kind, "user": obj{"email": "a@b.c"}}).http(202).eq("success", false).str("error")
			}
			for _, kind := range []string{"x", "item_viewed", "level_2_done"} {
				c.b("/events", obj{"event_type": kind, "user": obj{"email": c.mail("snake")}}).http(202).eq("success", true)
			}
		}},
		{"the event is appended to the profile's history with its properties", func(c *check) {
			e := c.mail("history")
			var id string
			for n := range 3 {
				id = c.event("step", obj{"email": e}, obj{"n": n, "deep": obj{"a": []any{1, "two", nil, true}}})
			}
			a := c.history(id)
			a.length("data.events", 3)
			for i := range 3 {
				at := fmt.Sprintf("data.events.%d.", i)
				a.eq(at+"event_type", "step").eq(at+"properties", obj{"n": 2 - i, "deep": obj{"a": []any{1, "two", nil, true}}})
				a.recent(at + "timestamp")
			}
		}},
		{"an idempotency key makes a retry safe", func(c *check) {
			kind, e := c.name("retried_"), c.mail("retry")
			in := obj{"event_type": kind, "user": obj{"email": e}, "properties": obj{"value": 5}, "idempotency_key": c.name("key-")}
			first := c.b("/events", in).http(202).eq("success", true)
			for range 3 {
				c.b("/events", in).http(202).eq("success", true).eq("profile_id", first.str("profile_id"))
			}
			if n := c.catalogued(kind); n != 1 {
				c.Errorf("%d events counted", n)
			}
			c.history(first.str("profile_id")).length("data.events", 1)
			in["idempotency_key"] = c.name("key-")
			c.b("/events", in).http(202).eq("success", true)
			delete(in, "idempotency_key")
			for range 2 {
				c.b("/events", in).http(202).eq("success", true)
			}
			if n := c.catalogued(kind); n != 4 {
				c.Errorf("%d events counted, expected 4", n)
			}
		}},
		{"the latest event keeps fields and attributes current", func(c *check) {
			e := c.mail("current")
			id := c.event("seen", obj{"email": e, "first_name": "Ada", "last_name": "Byron", "geo": obj{"country": "France"}, "attributes": obj{"plan": "free", "color": "red"}}, nil)
			c.event("seen", obj{"email": e, "last_name": "Lovelace", "geo": obj{"country": "Italy"}, "attributes": obj{"plan": "pro"}}, nil)
			c.event("seen", obj{"email": e}, nil)
			c.console("GET", "/profiles/"+id, nil).http(200).eq("data.first_name", "Ada").eq("data.last_name", "Lovelace").eq("data.geo.country", "Italy").
				eq("data.attributes.plan", "pro").eq("data.attributes.color", "red")
		}},
		{"an event that creates a profile makes it readable at once", func(c *check) {
			for range 20 {
				e := c.mail("readable")
				id := c.event("seen", obj{"email": e}, nil)
				c.a("GET", "/contacts?email="+e, nil).success().length("data", 1).eq("data.0._id", id)
			}
		}},
		{"an event gives no consent", func(c *check) {
			id := c.event("seen", obj{"email": c.mail("noconsent"), "phone": "+4930666001"}, nil)
			c.console("GET", "/profiles/"+id, nil).http(200).eq("data.consent.email.status", "never_subscribed").eq("data.consent.sms.status", "never_subscribed")
		}},
	}}
}

func identityPart() part {
	return part{"Surface B: whose event it is", []rule{
		{"no profile matches: one is created", func(c *check) {
			first, second := c.event("seen", obj{"email": c.mail("new")}, nil), c.event("seen", obj{"email": c.mail("new")}, nil)
			if first == second {
				c.Errorf("two people are %s", first)
			}
			c.console("GET", "/profiles/"+first, nil).http(200).recent("data.created_at")
		}},
		{"the e-mail is asked before the external id", func(c *check) {
			e, f, x := c.mail("one"), c.mail("two"), c.name("x-")
			byEmail, byExternal := c.event("seen", obj{"email": e}, nil), c.event("seen", obj{"external_id": x, "email": f}, nil)
			if got := c.event("seen", obj{"email": e, "external_id": x}, nil); got != byEmail || got == byExternal {
				c.Errorf("went to %s, the e-mail is of %s, the external id of %s", got, byEmail, byExternal)
			}
		}},
		{"the e-mail is asked before the phone", func(c *check) {
			e, f, p := c.mail("one"), c.mail("two"), c.name("+4930888")
			byEmail, byPhone := c.event("seen", obj{"email": e}, nil), c.event("seen", obj{"phone": p, "email": f}, nil)
			if got := c.event("seen", obj{"email": e, "phone": p}, nil); got != byEmail || got == byPhone {
				c.Errorf("went to %s, the e-mail is of %s, the phone of %s", got, byEmail, byPhone)
			}
		}},
		{"the external id is asked before the phone", func(c *check) {
			x, y, p := c.name("x-"), c.name("x-"), c.name("+4930889")
			byExternal, byPhone := c.event("seen", obj{"external_id": x}, nil), c.event("seen", obj{"phone": p, "external_id": y}, nil)
			if got := c.event("seen", obj{"external_id": x, "phone": p}, nil); got != byExternal || got == byPhone {
				c.Errorf("went to %s, the external id is of %s, the phone of %s", got, byExternal, byPhone)
			}
		}},
		{"each kind finds its profile alone", func(c *check) {
			e, x, p := c.mail("alone"), c.name("x-"), c.name("+4930890")
			id := c.event("seen", obj{"email": e, "external_id": x, "phone": p}, nil)
			for _, user := range []obj{{"email": e}, {"external_id": x}, {"phone": p}} {
				if got := c.event("seen", user, nil); got != id {
					c.Errorf("%v went to %s, expected %s", user, got, id)
				}
			}
		}},
		{"an external id first and an e-mail later are one profile", func(c *check) {
			x, e := c.name("visitor-"), c.mail("stitched")
			id := c.event("seen", obj{"external_id": x}, obj{"n": 1})
			if got := c.event("signed_up", obj{"external_id": x, "email": e}, nil); got != id {
				c.Errorf("went to %s, expected %s", got, id)
			}
			if got := c.event("seen", obj{"email": e}, obj{"n": 2}); got != id {
				c.Errorf("the e-mail alone went to %s, expected %s", got, id)
			}
			c.history(id).length("data.events", 3)
		}},
		{"two profiles become one once an identifier overlaps, with both histories", func(c *check) {
			x, e := c.name("visitor-"), c.mail("overlap")
			old, known := c.event("seen", obj{"external_id": x}, nil), c.event("bought", obj{"email": e}, nil)
			got := c.event("signed_in", obj{"external_id": x, "email": e}, nil)
			if got != known {
				c.Errorf("went to %s, expected that of the e-mail, %s", got, known)
			}
			c.history(got).length("data.events", 3)
			c.console("GET", "/profiles/"+old, nil).http(200).eq("data.profile_id", got).holds("data.merged_ids", old, true)
		}},
		{"identifiers are of one company: another's events are another's people", func(c *check) {
			e := c.mail("both")
			x := c.other()
			if mine, theirs := c.event("seen", obj{"email": e}, nil), x.event("seen", obj{"email": e}, nil); mine == theirs {
				c.Errorf("both are %s", mine)
			}
			x.console("GET", "/catalog", nil).http(200).length("data", 1).eq("data.0.count", 1)
		}},
	}}
}

func batchPart() part {
	return part{"Surface B: batches", []rule{
		{"a batch is answered 202 with success, accepted, total and a result for each event in order", func(c *check) {
			e, f := c.mail("batch"), c.mail("batch")
			a := c.b("/events/batch", obj{"events": []obj{
				{"event_type": "seen", "user": obj{"email": e}}, {"event_type": "seen", "user": obj{"email": f}}, {"event_type": "bought", "user": obj{"email": e}}}}).http(202)
			a.only("", "success", "accepted", "total", "results").eq("success", true).eq("accepted", 3).eq("total", 3).length("results", 3)
			for i, who := range []string{e, f, e} {
				at := fmt.Sprintf("results.%d", i)
				a.only(at, "success", "profile_id", "error").eq(at+".success", true).eq(at+".error", nil)
				c.a("GET", "/contacts?email="+who, nil).success().eq("data.0._id", a.str(at+".profile_id"))
			}
		}},
		{"identifiers beyond those a profile may have are told in a warning, also on a repeat, and stand among its conflicts", func(c *check) {
			e := c.mail("cap")
			named := func(i int, key string) obj {
				return obj{"event_type": "seen", "user": obj{"email": e, "external_id": fmt.Sprintf("%s-%d", e, i)}, "idempotency_key": key}
			}
			var fill []obj
			for i := range 49 { // and the e-mail is the 50th
				fill = append(fill, named(i, ""))
			}
			a := c.b("/events/batch", obj{"events": fill}).http(202)
			a.eq("success", true).only("results.48", "success", "profile_id", "error")
			id := a.str("results.0.profile_id")
			const warning = "user.external_id not added: the profile may have no more identifiers; see its conflicts"
			for range 2 {
				c.b("/events", named(50, e)).http(202).only("", "success", "profile_id", "error", "warning").eq("success", true).eq("error", nil).eq("profile_id", id).eq("warning", warning)
			}
			c.b("/events/batch", obj{"events": []obj{named(51, ""), named(1, "")}}).http(202).eq("success", true).eq("accepted", 2).
				eq("results.0.warning", warning).only("results.1", "success", "profile_id", "error")
			c.console("GET", "/profiles/"+id, nil).http(200).length("data.conflicts", 2).eq("data.conflicts.0.value", e+"-50").eq("data.conflicts.1.value", e+"-51").
				eq("data.conflicts.0.kind", "external_id").eq("data.conflicts.0.reason", "the profile would hold too many identifiers")
		}},
		{"an event with a fault fails alone", func(c *check) {
			e := c.mail("partly")
			a := c.b("/events/batch", obj{"events": []any{obj{"event_type": "seen", "user": obj{"email": e}}, obj{"user": obj{"email": e}}, obj{"event_type": "Bad Key", "user": obj{"email": e}},
				obj{"event_type": "seen", "user": obj{}}, obj{"event_type": "seen"}, 5, obj{"event_type": "bought", "user": obj{"email": e}}}}).http(202)
			a.eq("success", false).eq("accepted", 2).eq("total", 7).length("results", 7).eq("results.0.success", true).eq("results.6.success", true)
			for i := 1; i <= 5; i++ {
				at := fmt.Sprintf("results.%d.", i)
				a.eq(at+"success", false).eq(at+"profile_id", "").str(at + "error")
			}
			c.history(a.str("results.0.profile_id")).length("data.events", 2)
		}},
		{"an empty batch is a success", func(c *check) {
			c.b("/events/batch", obj{"events": []obj{}}).http(202).eq("success", true).eq("accepted", 0).eq("total", 0).length("results", 0)
		}},
		{"a few hundred events go into one batch", func(c *check) {
			kind := c.name("bulk_")
			events := []obj{}
			for i := range 500 {
				events = append(events, obj{"event_type": kind, "user": obj{"email": fmt.Sprintf("bulk%d@people.example", i%100)}, "properties": obj{"value": i}})
			}
			c.b("/events/batch", obj{"events": events}).http(202).eq("success", true).eq("accepted", 500).eq("total", 500).length("results", 500)
			if n := c.catalogued(kind); n != 500 {
				c.Errorf("%d events counted", n)
			}
		}},
		{"idempotency keys hold within a batch and between batches", func(c *check) {
			kind, key := c.name("once_"), c.name("key-")
			event := obj{"event_type": kind, "user": obj{"email": c.mail("once")}, "idempotency_key": key}
			for range 2 {
				a := c.b("/events/batch", obj{"events": []obj{event, event}}).http(202).eq("success", true)
				a.eq("results.1.profile_id", a.str("results.0.profile_id"))
			}
			if n := c.catalogued(kind); n != 1 {
				c.Errorf("%d events counted", n)
			}
		}},
		{"a body that is no batch is a 4xx and stores nothing", func(c *check) {
			kind := c.name("none_")
			for _, body := range []string{"", "[]", "{}", `{"events":5}`, `{"events":null}`, `{"events":[{"event_type":"` + kind + `","user":{"email":"a@b.c"}}]`} {
				if a := c.b("/events/batch", body); a.status < 400 || a.status > 499 {
					a.fault("expected a 4xx")
				}
			}
			if n := c.catalogued(kind); n != 0 {
				c.Errorf("%d events counted", n)
			}
		}},
	}}
}

func credentialPart() part {
	event := func(e string) obj { return obj{"event_type": "seen", "user": obj{"email": e}} }
	return part{"Surface B: credentials", []rule{
		{"the App ID and the App Secret have their forms", func(c *check) {
			for text, prefix := range map[string]string{c.app: "app_", c.secret: "sk_live_", c.server.creds.AppID: "app_", c.server.creds.AppSecret: "sk_live_"} {
				if !strings.HasPrefix(text, prefix) || len(text) <= len(prefix) {
					c.Errorf("%q does not begin with %s", text, prefix)
				}
			}
		}},
		{"whatever is missing or wrong, the answer is the same: 202 and success false", func(c *check) {
			want := ""
			other := c.other()
			for _, headers := range [][]string{{}, {"X-App-Id", c.app}, {"X-App-Secret", c.secret}, {"X-App-Id", c.app, "X-App-Secret", "sk_live_wrong"}, {"X-App-Id", "app_none", "X-App-Secret", c.secret},
				{"X-App-Id", c.app, "X-App-Secret", other.secret}, {"X-App-Id", c.secret, "X-App-Secret", c.app}} {
				e := c.mail("bad")
				a := c.do(c.T, "POST", "/api/v1/events", event(e), headers...).http(202).only("", "success", "profile_id", "error").eq("success", false).eq("profile_id", "")
				if a.str("error"); want == "" {
					want = string(a.raw)
				} else if string(a.raw) != want {
					a.fault("expected %s", want)
				}
				c.do(c.T, "POST", "/api/v1/events/batch", obj{"events": []obj{event(e)}}, headers...).http(202).eq("success", false).eq("accepted", 0)
				c.a("GET", "/contacts?email="+e, nil).success().length("data", 0)
			}
		}},
		{"an API key, one that holds or not, is refused alike, and the answer says where keys are for", func(c *check) {
			want := ""
			for _, headers := range [][]string{{"Authorization", "Bearer " + c.freshKey()}, {"Authorization", "Bearer svc_live_none"}, {"X-App-Id", c.app, "X-App-Secret", c.freshKey()}} {
				e := c.mail("bad")
				a := c.do(c.T, "POST", "/api/v1/events", event(e), headers...).http(202).only("", "success", "profile_id", "error").eq("success", false).eq("profile_id", "")
				if text := a.str("error"); !strings.Contains(text, "X-App-Secret") || !strings.Contains(text, "API key") {
					a.fault("expected where an API key is for")
				}
				if want == "" {
					want = string(a.raw)
				} else if string(a.raw) != want {
					a.fault("expected %s", want)
				}
				c.a("GET", "/contacts?email="+e, nil).success().length("data", 0)
			}
		}},
		{"the secret is not a key, and a key is no secret", func(c *check) {
			c.with(c.secret, "GET", "/api/v1/lists", nil).http(401)
			c.do(c.T, "POST", "/api/v1/events", event("a@b.c"), "X-App-Id", c.app, "X-App-Secret", c.freshKey()).http(202).eq("success", false)
		}},
		{"a new secret replaces the old one; the App ID stays", func(c *check) {
			x := c.other()
			old := x.company.secret
			a := x.console("POST", "/app-secret", nil).http(200).eq("data.app_id", x.app)
			x.company.secret = a.str("data.app_secret")
			if x.company.secret == old || !strings.HasPrefix(x.company.secret, "sk_live_") {
				a.fault("the new secret")
			}
			x.b("/events", event(x.mail("new"))).http(202).eq("success", true)
			x.do(x.T, "POST", "/api/v1/events", event(x.mail("old")), "X-App-Id", x.app, "X-App-Secret", old).http(202).eq("success", false)
		}},
	}}
}

func catalogPart() part {
	return part{"catalog of events", []rule{
		{"a key is made from the name, in snake case", func(c *check) {
			for name, key := range map[string]string{"Item Purchased": "item_purchased", "Viewed Page (Web)": "viewed_page_web", "Level 2 -- Done!": "level_2_done", "already_snake": "already_snake", "CheckoutStarted": "checkout_started"} {
				c.console("POST", "/catalog", obj{"name": name}).http(200).eq("data.key", key).eq("data.name", name)
			}
		}},
		{"the key is then there for segments, before any event", func(c *check) {
			key := c.console("POST", "/catalog", obj{"name": "Trial " + c.name("Started ")}).http(200).str("data.key")
			seg := c.segment(obj{"kind": "activity", "event": key})
			c.console("GET", "/segments/"+seg, nil).http(200).eq("data.count", 0)
			c.event(key, obj{"email": c.mail("trial")}, nil)
			c.console("GET", "/segments/"+seg, nil).http(200).eq("data.count", 1)
		}},
		{"keys that events bring are in the catalog with their number and first time", func(c *check) {
			key := c.name("brought_")
			c.event(key, obj{"email": c.mail("k")}, nil)
			c.event(key, obj{"email": c.mail("k")}, nil)
			a := c.console("GET", "/catalog", nil).http(200)
			for i, x := range a.array("data") {
				if x.(obj)["key"] == key {
					at := fmt.Sprintf("data.%d.", i)
					a.eq(at+"count", 2)
					if seen := a.recent(at + "first_seen"); time.Since(seen) > time.Minute {
						a.fault("first seen %v", seen)
					}
					return
				}
			}
			a.fault("expected %s", key)
		}},
	}}
}
