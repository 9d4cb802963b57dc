package main

import (
	"encoding/json"
	"fmt"
	"slices"
)

// hookBody is what a webhook tells of a flow.
type hookBody struct {
	Type string
	Data struct {
		FlowID    string `json:"flow_id"`
		FlowName  string `json:"flow_name"`
		ProfileID string `json:"profile_id"`
		Reason    string
	}
}

// hooks are the deliveries that a receiver got.
func (c *check) hooks(path string) (out []hookBody) {
	c.Helper()
	for _, d := range c.remote.received(path) {
		var x hookBody
		ok(c.T, json.Unmarshal(d.body, &x))
		out = append(out, x)
	}
	return out
}

// flowReportPart is the webhook deliveries and reports of flows.
func flowReportPart() part {
	return part{"flows: reports", []rule{
		{"the overview counts flows by status, and who entered, is in, completed and left them, without delay", func(c *check) {
			x := c.other()
			x.a("GET", "/analytics/flows/overview", nil).success().eq("data.total", 0).eq("data.counts.entered", 0).length("data.flows", 0)
			ends, waits := x.live(onEvent("ended"), tagStep("t", "", "x")), x.live(onEvent("waited"), waitStep("w", "", 99))
			exits := x.live(onEvent("left"), obj{"id": "out", "type": "exit"})
			unused := x.draft(nil)
			for _, kind := range []string{"ended", "ended", "waited", "left"} {
				x.event(kind, obj{"email": x.mail("counted")}, nil)
			}
			x.pause(waits).success()
			a := x.a("GET", "/analytics/flows/overview", nil).success()
			a.eq("data.total", 4).eq("data.draft", 1).eq("data.live", 2).eq("data.paused", 1).length("data.flows", 4)
			a.eq("data.counts.entered", 4).eq("data.counts.in_progress", 1).eq("data.counts.completed", 2).eq("data.counts.exited", 1)
			a.eq("data.in_range", obj{"entered": 4, "completed": 2, "exited": 1})
			want := map[string]obj{
				ends: {"entered": 2, "completed": 2, "exited": 0}, waits: {"entered": 1, "completed": 0, "exited": 0}, exits: {"entered": 1, "completed": 0, "exited": 1},
				unused: {"entered": 0, "completed": 0, "exited": 0},
			}
			for i := range want {
				// Flows of one instant stand in any order.
				at := fmt.Sprintf("data.flows.%d.", slices.IndexFunc(a.array("data.flows"), func(f any) bool { return f.(obj)["flow_id"] == i }))
				a.eq(at+"in_range", want[i]).eq(at+"counts.entered", want[i]["entered"])
			}
			if n := sumOf(a.body.(obj)["data"].(obj)["series"], "entered"); n != 4 {
				a.fault("the series has %v who entered", n)
			}
			x.a("GET", "/analytics/overview", nil).success().eq("data.flows", 4)
		}},
		{"a flow's numbers are told by step, with what became of its messages", func(c *check) {
			x := c.other()
			e := x.mail("opens")
			id := x.contact(obj{"email": e})
			flow := x.live(onEvent("began"), mailStep("mail", "w", "M"), waitStep("w", "", 99))
			x.event("began", obj{"email": e}, nil)
			x.event("began", obj{"external_id": x.name("silent-")}, nil)
			x.until("the letter comes", func() bool { return len(x.relay.to(e)) == 1 })
			x.fetch(x.links(e).pixel).http(200)
			x.until("the open is recorded", func() bool { return x.console("GET", "/profiles/"+id, nil).str("data.statuses.email") == "Engaged" })
			a := x.a("GET", "/analytics/flows/"+flow, nil).success().eq("data.flow_id", flow).eq("data.in_range.entered", 2)
			a.eq("data.steps.0.id", "mail").eq("data.steps.0.arrived", 2).eq("data.steps.0.results", obj{"queued": 1, "skipped_no_address": 1}).eq("data.steps.0.messages.sent", 1).eq("data.steps.0.messages.opens", 1)
			a.eq("data.steps.1.id", "w").eq("data.steps.1.at", 2).eq("data.steps.1.messages", nil)
		}},
		{"entering, completing and exiting are events of the profile", func(c *check) {
			ends, exits := c.live(onEvent("told"), tagStep("t", "", "x")), c.live(onEvent("told"), obj{"id": "out", "type": "exit"})
			id := c.event("told", obj{"email": c.mail("told")}, nil)
			got := map[string]int{}
			for _, x := range c.history(id).array("data.events") {
				p, _ := x.(obj)["properties"].(obj)
				got[fmt.Sprint(x.(obj)["event_type"], " ", p["flow_id"])]++
			}
			for _, want := range []string{"flow_entered " + ends, "flow_completed " + ends, "flow_entered " + exits, "flow_exited " + exits} {
				if got[want] != 1 {
					c.Errorf("the profile has the events %v, expected one %s", got, want)
				}
			}
		}},
		{"webhooks tell of them, with the flow's id and name", func(c *check) {
			_, path, _ := c.hook("flow.*")
			ends, exits := c.live(onEvent("hooked"), tagStep("t", "", "x")), c.live(onEvent("hooked_out"), obj{"id": "out", "type": "exit"})
			id := c.event("hooked", obj{"email": c.mail("hooked")}, nil)
			c.event("hooked_out", obj{"email": c.mail("hooked")}, nil)
			for event, flow := range map[string]string{"flow.entered": ends, "flow.completed": ends, "flow.exited": exits} {
				var d hookBody
				c.until("the receiver hears of "+event, func() bool {
					for _, x := range c.hooks(path) {
						if x.Type == event && x.Data.FlowID == flow {
							d = x
							return true
						}
					}
					return false
				})
				if name := c.flow(flow).str("data.name"); d.Data.FlowName != name || flow == ends && d.Data.ProfileID != id || flow == exits && d.Data.Reason != "exit_step" {
					c.Errorf("told %+v", d)
				}
			}
		}},
	}}
}
