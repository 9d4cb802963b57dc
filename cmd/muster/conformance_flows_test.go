package main

import (
	"fmt"
	"slices"
	"strings"
)

// Triggers and steps, as they stand in definitions.
var byCall = obj{"type": "api"}

func onEvent(kind string) obj { return obj{"type": "event", "event": kind} }

// step is a step of a type with more fields, which leads on to the next one.
func step(id, kind, next string, fields obj) obj {
	out := obj{"id": id, "type": kind}
	for k, v := range fields {
		out[k] = v
	}
	if next != "" {
		out["next"] = next
	}
	return out
}

func tagStep(id, next string, tags ...string) obj { return step(id, "tag", next, obj{"add": tags}) }

func waitStep(id, next string, seconds int) obj {
	return step(id, "wait", next, obj{"seconds": seconds})
}

// mailStep sends a letter with this subject.
func mailStep(id, next, subject string) obj {
	return step(id, "email", next, obj{"subject": subject, "body": "<p>Hello {{first_name|friend}}</p>"})
}

// draft makes a flow that is not published.
func (c *check) draft(trigger any, steps ...obj) string {
	c.Helper()
	return c.console("POST", "/flows", obj{"name": c.name("flow"), "trigger": trigger, "reentry": "after_exit", "steps": steps}).http(200).eq("data.status", "draft").str("data._id")
}

// live makes a flow and publishes it.
func (c *check) live(trigger any, steps ...obj) string {
	c.Helper()
	id := c.draft(trigger, steps...)
	c.publish(id)
	return id
}

func (c *check) publish(flow string) *answer {
	c.Helper()
	return c.console("POST", "/flows/"+flow+"/publish", nil).http(200).eq("data.status", "live")
}

// flow reads a flow as a key does.
func (c *check) flow(id string) *answer {
	c.Helper()
	return c.a("GET", "/custom-flows/"+id, nil).success()
}

// ways are a profile's enrolments in a flow; status 404 when there are none.
func (c *check) ways(flow, profile string) *answer {
	c.Helper()
	return c.console("GET", "/flows/"+flow+"/enrolments/"+profile, nil)
}

// in expects that a profile was enrolled in a flow once, or never.
func (c *check) in(flow, profile string, is bool) {
	c.Helper()
	if a := c.ways(flow, profile); is {
		a.http(200).length("data.enrolments", 1)
	} else {
		a.http(404)
	}
}

// at expects a profile in a flow at a step.
func (c *check) at(flow, profile, step string) {
	c.Helper()
	c.ways(flow, profile).http(200).eq("data.enrolments.0.status", "in_progress").eq("data.enrolments.0.step", step)
}

// through waits until a profile's enrolment in a flow has ended and returns the
// results of its steps, in order.
func (c *check) through(flow, profile string) (results []string) {
	c.Helper()
	var a *answer
	c.until("the enrolment in the flow ends", func() bool {
		a = c.ways(flow, profile)
		return a.status == 200 && a.str("data.enrolments.0.status") != "in_progress"
	})
	for _, x := range a.array("data.enrolments.0.path") {
		x := x.(obj)
		results = append(results, fmt.Sprint(x["id"], " ", x["result"]))
	}
	return results
}

// wants expects results of steps.
func (c *check) wants(got []string, want ...string) {
	c.Helper()
	if !slices.Equal(got, want) {
		c.Errorf("the way through the flow was %q, expected %q", got, want)
	}
}

// whole is everything the calls return of a flow and its enrolments.
func (c *check) whole(flow string) string {
	c.Helper()
	return string(c.flow(flow).raw) + string(c.console("GET", "/flows/"+flow+"/enrolments", nil).http(200).raw)
}

// unchanged expects a call to leave a flow as it is.
func (c *check) unchanged(flow string, call func() *answer) *answer {
	c.Helper()
	before := c.whole(flow)
	a := call()
	if after := c.whole(flow); after != before {
		a.fault("the flow was %s\n\tand is %s", before, after)
	}
	return a
}

// pause and those below are the calls that switch a flow.
func (c *check) pause(flow string) *answer {
	c.Helper()
	return c.a("POST", "/custom-flows/"+flow+"/pause", nil)
}

func (c *check) resume(flow string) *answer {
	c.Helper()
	return c.a("POST", "/custom-flows/"+flow+"/resume", nil)
}

func (c *check) toggle(flow string) *answer {
	c.Helper()
	return c.a("PATCH", "/custom-flows/"+flow+"/toggle", nil)
}

func (c *check) patch(flow string, body any) *answer {
	c.Helper()
	return c.a("PATCH", "/custom-flows/"+flow, body)
}

// toLive are all calls that take a paused flow live.
func (c *check) toLive(flow string) map[string]func() *answer {
	return map[string]func() *answer{
		"resume": func() *answer { return c.resume(flow) }, "toggle": func() *answer { return c.toggle(flow) },
		"PATCH": func() *answer { return c.patch(flow, obj{"status": "live"}) },
	}
}

// flowPart is flows as records: what they are made of, who may read them.
func flowPart() part {
	return part{"flows", []rule{
		{"flows are listed as an array, each with its status: draft, live or paused", func(c *check) {
			x := c.other()
			want := map[any]any{x.draft(byCall): "draft", x.live(byCall, waitStep("w", "", 9)): "live"}
			paused := x.live(byCall, waitStep("w", "", 9))
			x.pause(paused).success()
			want[paused] = "paused"
			list := x.a("GET", "/custom-flows", nil).success().length("data", 3)
			for i := range 3 {
				at := fmt.Sprintf("data.%d.", i)
				id := list.str(at + "_id")
				list.eq(at+"status", want[id])
				x.flow(id).eq("data.status", want[id])
			}
		}},
		{"flows are read in pages that leave none out", func(c *check) {
			x := c.other()
			want, got := []string{}, []string{}
			for range 5 {
				want = append(want, x.draft(nil))
			}
			for cursor := ""; len(got) <= 5; {
				a := x.a("GET", "/custom-flows?limit=2&cursor="+cursor, nil).success()
				for _, f := range a.array("data") {
					got = append(got, f.(obj)["_id"].(string))
				}
				next, more := a.at("next")
				if !more {
					break
				}
				cursor = next.(string)
			}
			slices.Sort(want)
			slices.Sort(got) // those of one instant stand in any order
			if !slices.Equal(got, want) {
				c.Errorf("the pages hold %v, expected %v", got, want)
			}
		}},
		{"all steps of the builder are taken: e-mail, SMS, wait, condition with YES and NO, split, tag, update contact, webhook, exit", func(c *check) {
			id := c.draft(byCall)
			steps := []obj{
				mailStep("mail", "text", "Hi"), step("text", "sms", "wait", obj{"text": "Hi"}), waitStep("wait", "ask", 60),
				{"id": "ask", "type": "condition", "if": obj{"kind": "attribute", "field": "email", "op": "exists"}, "yes": "split", "no": "exit"},
				{"id": "split", "type": "split", "branches": []obj{{"weight": 1, "next": "tag"}, {"weight": 3, "next": "exit"}}},
				tagStep("tag", "set", "vip"), step("set", "update_contact", "call", obj{"set": obj{"attributes.plan": "pro"}}),
				step("call", "webhook", "exit", obj{"url": "https://shop.example/hook"}), {"id": "exit", "type": "exit"},
			}
			a := c.console("PUT", "/flows/"+id, obj{"name": "all steps", "trigger": byCall, "steps": steps}).http(200).length("data.steps", len(steps))
			for i, s := range steps {
				a.eq(fmt.Sprintf("data.steps.%d.type", i), s["type"])
			}
			c.publish(id)
			c.console("POST", "/flows", obj{"name": "x", "steps": []obj{{"id": "a", "type": "teleport"}}}).http(400).fieldAt("steps[0].type")
		}},
		{"all triggers are taken: list joined, event, date, segment entered and exited, API call", func(c *check) {
			seg := c.segment(obj{"kind": "attribute", "field": "phone", "op": "exists"})
			for _, trigger := range []obj{
				{"type": "list_joined", "list_id": c.list()}, onEvent("signed_up"), {"type": "date", "field": "attributes.renewal", "at": "09:00", "timezone": "Europe/Berlin"},
				{"type": "segment_entered", "segment_id": seg}, {"type": "segment_exited", "segment_id": seg}, byCall,
			} {
				c.flow(c.live(trigger, tagStep("t", "", "x"))).eq("data.trigger.type", trigger["type"])
			}
			c.console("POST", "/flows", obj{"name": "x", "trigger": obj{"type": "moon"}}).http(400).fieldAt("trigger.type")
		}},
		{"a draft may be unfinished; publishing lists what is missing, step by step, and changes nothing", func(c *check) {
			id := c.draft(nil, step("mail", "email", "gone", nil), step("text", "sms", "", nil))
			a := c.unchanged(id, func() *answer { return c.console("POST", "/flows/"+id+"/publish", nil).http(400) })
			for _, what := range []string{"trigger is missing", "(mail): subject is missing; body is missing; next must be the id of a step", "(text): cannot be reached", "text is missing"} {
				if !strings.Contains(a.str("message"), what) {
					a.fault("expected %q", what)
				}
			}
			c.console("GET", "/flows/"+id+"/validate", nil).http(200).eq("data.valid", false).eq("data.faults.1.step", "mail").eq("data.faults.1.path", "steps[0].subject")
		}},
		{"what a flow uses cannot be deleted; the refusal names the flow", func(c *check) {
			list, seg := c.list(), c.segment(obj{"kind": "attribute", "field": "phone", "op": "exists"})
			template := c.console("POST", "/templates", obj{"name": c.name("t"), "subject": "S", "html": "<p>B</p>"}).http(200).str("data._id")
			first := c.flow(c.live(obj{"type": "list_joined", "list_id": list}, step("mail", "email", "", obj{"template_id": template}))).str("data.name")
			second := c.flow(c.live(obj{"type": "segment_entered", "segment_id": seg}, tagStep("t", "", "x"))).str("data.name")
			c.a("DELETE", "/lists/"+list, nil).fails(first)
			for path, name := range map[string]string{"/templates/" + template: first, "/segments/" + seg: second} {
				if a := c.console("DELETE", path, nil).http(409); !strings.Contains(a.str("message"), name) {
					a.fault("expected the name %s", name)
				}
			}
		}},
		{"flows of another company are as unknown, to every call", func(c *check) {
			id, x := c.live(byCall, waitStep("w", "", 9)), c.other()
			for _, call := range []struct {
				method, path string
				body         any
			}{
				{"GET", "", nil}, {"POST", "/pause", nil}, {"POST", "/resume", nil}, {"PATCH", "/toggle", nil}, {"PATCH", "", obj{"status": "paused"}}, {"POST", "/duplicate", nil},
				{"POST", "/trigger", obj{"email": "a@b.c"}},
			} {
				unknown := x.a(call.method, "/custom-flows/flw_none"+call.path, call.body).failure("there is no flow with this id")
				foreign := c.unchanged(id, func() *answer { return x.a(call.method, "/custom-flows/"+id+call.path, call.body) })
				if string(foreign.raw) != string(unknown.raw) {
					foreign.fault("expected the answer of an unknown id: %s", unknown.raw)
				}
			}
			x.a("GET", "/custom-flows", nil).success().length("data", 0)
			x.a("GET", "/analytics/flows/"+id, nil).failure("there is no flow with this id")
		}},
		{"a profile tells its tags and the flows it is or was in", func(c *check) {
			first, second := c.live(onEvent("profiled"), tagStep("t", "", "vip", "early")), c.live(onEvent("profiled"), waitStep("w", "", 99))
			id := c.event("seen", obj{"email": c.mail("tags")}, nil)
			c.console("GET", "/profiles/"+id, nil).http(200).length("data.tags", 0).length("data.flows", 0)
			e := c.mail("tags")
			id = c.event("profiled", obj{"email": e}, nil)
			c.console("GET", "/profiles/"+id, nil).http(200).eq("data.tags", []string{"vip", "early"}).length("data.flows", 2).holds("data.flows", first, true).holds("data.flows", second, true)
			c.a("GET", "/contacts?email="+e, nil).success().eq("data.0.attributes.tags", []string{"vip", "early"})
		}},
	}}
}

// fieldAt expects a failure of the console that names a field.
func (a *answer) fieldAt(path string) *answer {
	a.t.Helper()
	if message := a.str("message"); !strings.HasPrefix(message, path) {
		a.fault("expected a message that begins with %q", path)
	}
	return a
}
