package main

var analyticsPaths = []string{"overview", "performance", "flows/overview", "campaigns", "events", "segments", "contacts"}

func analyticsPart() part {
	return part{"analytics", []rule{
		{"every path answers data to a key that may read analytics, and to no other", func(c *check) {
			reader, other := c.newKey("analytics:read"), c.newKey("analytics:write", "campaigns:read", "contacts:read")
			for _, path := range analyticsPaths {
				a := c.with(reader, "GET", "/api/v1/analytics/"+path, nil).success()
				if kind := kindOf(a.body.(obj)["data"]); kind != "object" && kind != "array" {
					a.fault("the data is of type %s", kind)
				}
				c.with(other, "GET", "/api/v1/analytics/"+path, nil).failure("You don't have permission to perform this action")
			}
		}},
		{"the overview counts what there is, without delay", func(c *check) {
			x := c.other()
			before := x.a("GET", "/analytics/overview", nil).success()
			e := x.mail("counted")
			list := x.list(e)
			x.send(x.campaign(nil), list).success()
			after := x.a("GET", "/analytics/overview", nil).success()
			for _, path := range []string{"data.contacts.total", "data.lists", "data.campaigns"} {
				if b, a := before.num(path), after.num(path); a != b+1 {
					after.fault("%s went from %v to %v", path, b, a)
				}
			}
		}},
		{"performance counts messages, in all and by campaign", func(c *check) {
			x := c.other()
			id := x.campaign(nil)
			x.send(id, x.list(x.mail("a"), x.mail("b"))).success()
			x.send(x.campaign(nil), x.list(x.mail("c"))).success()
			x.a("GET", "/analytics/performance", nil).success().eq("data.totals.sent", 3)
			x.a("GET", "/analytics/performance?campaign_id="+id, nil).success().eq("data.totals.sent", 2)
		}},
		{"events are counted by type", func(c *check) {
			x := c.other()
			for range 3 {
				x.event("item_viewed", obj{"email": "v@analytics.example"}, nil)
			}
			a := x.a("GET", "/analytics/events?event_type=item_viewed", nil).success()
			if n := sumOf(a.body, "events"); n != 3 {
				a.fault("counts %v events of the type, expected 3", n)
			}
		}},
		{"the bounds of guidance are judged: hard bounces below 2 %, complaints below 0.1 %", func(c *check) {
			x := c.other()
			good, bad := []string{}, x.mail("gone")
			for range 3 {
				good = append(good, x.mail("ok"))
			}
			x.send(x.campaign(nil), x.list(good...)).success()
			x.a("GET", "/analytics/performance", nil).success().eq("data.totals.bounce_rate_healthy", true).eq("data.totals.complaint_rate_healthy", true)
			x.send(x.campaign(nil), x.list(bad)).fails("no such user")
			x.a("GET", "/analytics/performance", nil).success().eq("data.totals.bounce_rate_healthy", false)
			x.report(obj{"type": "complaint", "recipient": good[0]})
			x.a("GET", "/analytics/performance", nil).success().eq("data.totals.complaint_rate_healthy", false)
		}},
		{"a time or a granularity that is none is refused by its name", func(c *check) {
			for query, field := range map[string]string{"from=x": "from ", "to=x": "to ", "granularity=minute": "granularity ", "from=2026-02-01&to=2026-01-01": "from "} {
				c.a("GET", "/analytics/performance?"+query, nil).names(field)
			}
		}},
	}}
}

// sumOf adds up the numbers under a name in entries of arrays.
func sumOf(v any, name string) (n float64) {
	switch x := v.(type) {
	case []any:
		for _, y := range x {
			if entry, is := y.(map[string]any); is {
				if f, is := entry[name].(interface{ Float64() (float64, error) }); is {
					k, _ := f.Float64()
					n += k
					continue
				}
			}
			n += sumOf(y, name)
		}
	case map[string]any:
		for _, y := range x {
			n += sumOf(y, name)
		}
	}
	return n
}
