package main

import (
	"time"
)

// flowCreditPart is what happens to flows when e-mail credits run out.
func flowCreditPart() part {
	// poor is a company with few credits, and how many it has.
	poor := func(c *check, credits int) *check {
		c.Helper()
		x := &check{c.T, c.world, c.companyOf(c.T, obj{"name": c.name("poor"), "email": c.mail("owner"), "email_credits": credits})}
		c.asAdmin(c.T, "PATCH", "/companies/"+x.id, obj{"api_access": true}).http(200)
		return x
	}
	has := func(c *check, n int) {
		c.Helper()
		c.console("GET", "/credits", nil).http(200).eq("data.email_credits", n)
	}
	topUp := func(c *check, n int) {
		c.Helper()
		c.asAdmin(c.T, "POST", "/companies/"+c.id+"/credits", obj{"amount": n}).http(200)
	}
	subscriber := func(c *check, kind string) (email, profile string) {
		c.Helper()
		email = c.mail("credit")
		profile = c.contact(obj{"email": email})
		c.event(kind, obj{"email": email}, nil)
		return email, profile
	}
	return part{"flows: credits", []rule{
		{"each e-mail takes a credit, SMS and other steps take none", func(c *check) {
			x := poor(c, 5)
			flow := x.live(onEvent("began"), mailStep("one", "text", "One"), step("text", "sms", "tag", obj{"text": "Hi"}), tagStep("tag", "two", "x"), mailStep("two", "", "Two"))
			e, id := subscriber(x, "began")
			x.wants(x.through(flow, id), "one queued", "text skipped_no_address", "tag done", "two queued")
			has(x, 3)
			x.until("both letters come", func() bool { return len(x.relay.to(e)) == 2 })
			has(x, 3)
		}},
		{"when credits run out, live flows that send e-mail pause; others go on", func(c *check) {
			x := poor(c, 1)
			sends, other, silent := x.live(onEvent("began"), mailStep("m", "", "M")), x.live(byCall, mailStep("m", "", "M")), x.live(onEvent("began"), tagStep("t", "", "x"))
			e, id := subscriber(x, "began")
			x.wants(x.through(sends, id), "m queued")
			for _, flow := range []string{sends, other} {
				x.flow(flow).eq("data.status", "paused").eq("data.paused_for", "credits")
			}
			x.flow(silent).eq("data.status", "live")
			_, late := subscriber(x, "began")
			x.in(sends, late, false)
			x.in(silent, late, true)
			x.until("the letter that was paid for comes", func() bool { return len(x.relay.to(e)) == 1 })
			has(x, 0)
		}},
		{"resume, toggle and PATCH are refused with the request to top up; nothing is half-started", func(c *check) {
			x := poor(c, 1)
			flow := x.live(onEvent("began"), mailStep("one", "wait", "One"), waitStep("wait", "two", 1), mailStep("two", "", "Two"))
			e, id := subscriber(x, "began")
			x.at(flow, id, "wait")
			for _, call := range x.toLive(flow) {
				x.unchanged(flow, func() *answer { return call().failure("the account is out of e-mail credits; top up and try again") })
			}
			copied := x.a("POST", "/custom-flows/"+flow+"/duplicate", nil).success().str("data._id")
			if a := x.console("POST", "/flows/"+copied+"/publish", nil).http(409); a.str("message") != "the account is out of e-mail credits; top up and try again" {
				a.fault("publishing asks for something else")
			}
			time.Sleep(1200 * time.Millisecond) // nothing may happen in a while that is longer than the wait
			x.at(flow, id, "wait")
			if n := len(x.relay.to(e)); n > 1 {
				c.Errorf("%d letters came", n)
			}
		}},
		{"after a top-up flows go on by themselves, from where people stopped", func(c *check) {
			x := poor(c, 1)
			flow := x.live(onEvent("began"), mailStep("one", "wait", "One"), waitStep("wait", "two", 1), mailStep("two", "", "Two"))
			e, id := subscriber(x, "began")
			x.flow(flow).eq("data.status", "paused")
			topUp(x, 2)
			x.flow(flow).eq("data.status", "live").eq("data.paused_for", nil)
			x.wants(x.through(flow, id), "one queued", "wait done", "two queued")
			x.until("both letters come", func() bool { return len(x.relay.to(e)) == 2 })
			has(x, 1)
			x.pause(flow).success()
			x.resume(flow).success()
		}},
		{"a flow that a user paused stays paused after a top-up", func(c *check) {
			x := poor(c, 1)
			before, since := x.live(onEvent("began"), mailStep("m", "", "M")), x.live(onEvent("began"), mailStep("m", "", "M"))
			x.pause(before).success()
			subscriber(x, "began")
			x.flow(since).eq("data.status", "paused").eq("data.paused_for", "credits")
			x.pause(since).success().eq("data.paused_for", "credits") // it is paused: nothing changes
			topUp(x, 5)
			x.flow(since).eq("data.status", "live")
			x.flow(before).eq("data.status", "paused")
			x.resume(before).success().eq("data.status", "live")
		}},
		{"a flow without e-mail needs no credits", func(c *check) {
			x := poor(c, 0)
			flow := x.live(byCall, tagStep("t", "", "x"))
			x.pause(flow).success()
			x.resume(flow).success().eq("data.status", "live")
		}},
	}}
}
