package main

import (
	"strings"
	"time"
)

// flowStatusPart is the table of statuses, each way it can be gone.
func flowStatusPart() part {
	// waiting makes a live flow with an enrolment waiting in it, and a kind of event
	// that enrols. The enrolment goes on after a time that is long beside what a call
	// takes.
	waiting := func(c *check) (flow, kind, profile string, wait time.Duration) {
		c.Helper()
		for seconds := 2; ; seconds *= 2 {
			kind = c.name("walked_")
			flow = c.live(onEvent(kind), waitStep("wait", "tag", seconds), tagStep("tag", "", kind))
			began := time.Now()
			profile = c.event(kind, obj{"email": c.mail("walker")}, nil)
			wait = time.Duration(seconds) * time.Second
			if time.Since(began) < wait/8 || seconds >= 32 {
				return flow, kind, profile, wait
			}
		}
	}
	walked := func(c *check) (flow, kind, profile string) {
		c.Helper()
		flow, kind, profile, _ = waiting(c)
		return flow, kind, profile
	}
	return part{"flows: status", []rule{
		{"live, pause: no profile is enrolled, nothing advances, progress is kept", func(c *check) {
			flow, kind, walker, wait := waiting(c)
			c.pause(flow).success().eq("data.status", "paused").eq("data.counts.in_progress", 1)
			c.flow(flow).eq("data.status", "paused")
			time.Sleep(wait + 500*time.Millisecond) // nothing may happen in a while that is longer than the wait
			late := c.event(kind, obj{"email": c.mail("late")}, nil)
			c.in(flow, late, false)
			c.at(flow, walker, "wait")
			c.console("GET", "/profiles/"+walker, nil).http(200).length("data.tags", 0)
		}},
		{"paused, pause: success, and nothing changes", func(c *check) {
			flow, _, _ := walked(c)
			c.pause(flow).success()
			for range 3 {
				c.unchanged(flow, func() *answer { return c.pause(flow).success().eq("data.status", "paused") })
			}
			c.unchanged(flow, func() *answer { return c.patch(flow, obj{"status": "paused"}).success() })
		}},
		{"paused, resume: live, and people go on from where they stopped", func(c *check) {
			flow, kind, walker := walked(c)
			c.pause(flow).success()
			c.at(flow, walker, "wait")
			c.resume(flow).success().eq("data.status", "live")
			c.wants(c.through(flow, walker), "wait done", "tag done")
			c.in(flow, walker, true)
			c.in(flow, c.event(kind, obj{"email": c.mail("next")}, nil), true)
		}},
		{"live, resume: success, and nothing changes", func(c *check) {
			flow := c.live(byCall, waitStep("w", "", 99))
			for range 3 {
				c.unchanged(flow, func() *answer { return c.resume(flow).success().eq("data.status", "live") })
			}
			c.unchanged(flow, func() *answer { return c.patch(flow, obj{"status": "live"}).success() })
		}},
		{"paused, resume of a flow that is not valid any more: refused with what is missing, as publishing is; nothing is half-started", func(c *check) {
			x := c.first()
			domain, kind := x.name("shop")+".example", x.name("half_")
			x.console("POST", "/sender-domains", obj{"domain": domain}).http(200)
			x.console("POST", "/sender-domains/"+domain+"/verify", obj{"force": true}).http(200)
			from := func(id, next string) obj {
				return step(id, "email", next, obj{"subject": "S", "body": "<p>B</p>", "sender": id + "@" + domain})
			}
			flow := x.live(onEvent(kind), waitStep("wait", "one", 5), from("one", "two"), from("two", ""))
			e := x.mail("half")
			x.contact(obj{"email": e})
			walker := x.event(kind, obj{"email": e}, nil)
			x.pause(flow).success()
			x.console("DELETE", "/sender-domains/"+domain, nil).http(200)
			for what, call := range x.toLive(flow) {
				a := x.unchanged(flow, func() *answer { return call().fails("the flow is not complete: ") })
				for _, step := range []string{"one", "two"} {
					if !strings.Contains(a.str("message"), "("+step+"): sender cannot be used: the domain "+domain+" is not verified") {
						a.fault("%s: expected what the step %s lacks", what, step)
					}
				}
			}
			copied := x.a("POST", "/custom-flows/"+flow+"/duplicate", nil).success().str("data._id")
			if a := x.console("POST", "/flows/"+copied+"/publish", nil).http(400); a.str("message") != x.resume(flow).str("message") {
				a.fault("publishing and resuming ask for different things: %s", x.resume(flow).raw)
			}
			x.in(flow, x.event(kind, obj{"email": x.mail("late")}, nil), false)
			x.at(flow, walker, "wait")
			x.console("POST", "/sender-domains", obj{"domain": domain}).http(200)
			x.console("POST", "/sender-domains/"+domain+"/verify", obj{"force": true}).http(200)
			x.resume(flow).success()
			x.wants(x.through(flow, walker), "wait done", "one queued", "two queued")
			x.until("both letters come", func() bool { return len(x.relay.to(e)) == 2 })
		}},
		{"toggle: the opposite, each time", func(c *check) {
			flow := c.live(byCall, waitStep("w", "", 99))
			for _, want := range []string{"paused", "live", "paused", "live"} {
				c.toggle(flow).success().eq("data.status", want)
				c.flow(flow).eq("data.status", want)
			}
		}},
		{"PATCH with a status alone: that status, from either", func(c *check) {
			flow := c.live(byCall, waitStep("w", "", 99))
			for _, want := range []string{"paused", "paused", "live", "live", "paused"} {
				c.patch(flow, obj{"status": want}).success().eq("data.status", want)
				c.flow(flow).eq("data.status", want)
			}
		}},
		{"PATCH with any other field: refused by its name, and nothing changes", func(c *check) {
			flow := c.live(byCall, waitStep("w", "", 99))
			for _, status := range []string{"live", "paused"} {
				c.patch(flow, obj{"status": status}).success()
				to := map[string]string{"live": "paused", "paused": "live"}[status]
				for field, value := range map[string]any{
					"name": "n", "steps": []obj{}, "trigger": nil, "reentry": "once", "_id": flow, "Status": "live", "STATUS": "paused", "paused_for": "", "counts": obj{}, "nonsense": 1, "": true,
				} {
					for _, body := range []obj{{"status": to, field: value}, {field: value}} {
						name := field
						if name == "" {
							name = `[""]`
						}
						c.unchanged(flow, func() *answer { return c.patch(flow, body).names(name + " must not be given") })
					}
				}
			}
		}},
		{"PATCH without a status, or with another than paused and live: refused", func(c *check) {
			flow := c.live(byCall, waitStep("w", "", 99))
			for _, body := range []any{obj{}, obj{"status": nil}, obj{"status": "draft"}, obj{"status": "Live"}, obj{"status": ""}, obj{"status": 1}, obj{"status": []string{"live"}}, `{"status":"paused","status":"live"}`} {
				c.unchanged(flow, func() *answer { return c.patch(flow, body).names("status ") })
			}
			for _, body := range []any{nil, "[]", `"paused"`, "{", `{"status":"paused"} {}`} {
				c.unchanged(flow, func() *answer { return c.patch(flow, body).names("body ") })
			}
		}},
		{"duplicate, from any status: a new draft, and the source is unchanged", func(c *check) {
			live, _, walker := walked(c)
			paused, _, _ := walked(c)
			c.pause(paused).success()
			c.through(live, walker) // or the live one changes meanwhile
			for status, flow := range map[string]string{"draft": c.draft(byCall, waitStep("w", "", 9)), "live": live, "paused": paused} {
				source := c.flow(flow).eq("data.status", status)
				a := c.unchanged(flow, func() *answer { return c.a("POST", "/custom-flows/"+flow+"/duplicate", nil).success() })
				a.eq("data.status", "draft").eq("data.counts.entered", 0).eq("data.copy_of", flow)
				for _, field := range []string{"steps", "trigger", "reentry"} {
					v, _ := source.at("data." + field)
					a.eq("data."+field, v)
				}
				if a.str("data._id") == flow {
					a.fault("the copy has the id of its source")
				}
			}
		}},
		{"the content is locked once live, while paused too, and in every call", func(c *check) {
			flow := c.live(byCall, waitStep("w", "", 99))
			for _, status := range []string{"live", "paused"} {
				c.patch(flow, obj{"status": status}).success()
				c.unchanged(flow, func() *answer {
					a := c.console("PUT", "/flows/"+flow, obj{"name": "other", "trigger": byCall, "steps": []obj{tagStep("t", "", "x")}}).http(409)
					if !strings.Contains(a.str("message"), "its content is locked; duplicate it") {
						a.fault("expected the remedy")
					}
					return a
				})
				c.unchanged(flow, func() *answer { return c.a("PUT", "/custom-flows/"+flow, obj{"name": "other"}).fails("") })
			}
		}},
		{"to change a live flow: duplicate it, edit the copy, publish the copy", func(c *check) {
			kind := c.name("changed_")
			flow := c.live(onEvent(kind), tagStep("t", "", "old"))
			copied := c.a("POST", "/custom-flows/"+flow+"/duplicate", nil).success().str("data._id")
			c.unchanged(flow, func() *answer {
				c.console("PUT", "/flows/"+copied, obj{"name": "edited", "trigger": onEvent(kind), "steps": []obj{tagStep("t", "", "new")}}).http(200).eq("data.status", "draft")
				return c.publish(copied)
			})
			c.pause(flow).success()
			c.console("GET", "/profiles/"+c.event(kind, obj{"email": c.mail("changed")}, nil), nil).http(200).eq("data.tags", []string{"new"})
		}},
		{"a draft is not live or paused: it can only be published", func(c *check) {
			kind := c.name("drafted_")
			flow := c.draft(onEvent(kind), tagStep("t", "", "x"))
			calls := c.toLive(flow)
			calls["pause"] = func() *answer { return c.pause(flow) }
			calls["PATCH paused"] = func() *answer { return c.patch(flow, obj{"status": "paused"}) }
			for _, call := range calls {
				c.unchanged(flow, func() *answer { return call().fails("the flow is a draft") })
			}
			c.in(flow, c.event(kind, obj{"email": c.mail("drafted")}, nil), false)
			c.publish(flow)
			c.in(flow, c.event(kind, obj{"email": c.mail("drafted")}, nil), true)
		}},
		{"who came to the segment while the flow was paused, and still is there, is enrolled at resume", func(c *check) {
			color := func(is string) obj { return obj{"color": is} }
			red := c.segment(obj{"kind": "attribute", "field": "attributes.color", "op": "=", "value": "red"})
			flow := c.live(obj{"type": "segment_entered", "segment_id": red}, tagStep("t", "", "x"))
			c.pause(flow).success()
			stays, leaves := c.mail("stays"), c.mail("leaves")
			first, second := c.event("painted", obj{"email": stays, "attributes": color("red")}, nil), c.event("painted", obj{"email": leaves, "attributes": color("red")}, nil)
			c.event("painted", obj{"email": leaves, "attributes": color("blue")}, nil)
			c.in(flow, first, false)
			c.resume(flow).success()
			c.wants(c.through(flow, first), "t done")
			c.in(flow, second, false)
		}},
		{"calls that need no body take an empty object too", func(c *check) {
			flow := c.live(byCall, waitStep("w", "", 99))
			c.a("POST", "/custom-flows/"+flow+"/pause", obj{}).success()
			c.a("POST", "/custom-flows/"+flow+"/resume", obj{}).success()
			c.a("PATCH", "/custom-flows/"+flow+"/toggle", obj{}).success().eq("data.status", "paused")
			c.a("POST", "/custom-flows/"+flow+"/duplicate", obj{}).success().eq("data.status", "draft")
		}},
	}}
}
