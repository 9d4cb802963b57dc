package flows

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// The events of the bench's own, which no segment looks at.
const (
	probeEvent = "flow_probe"
	napEvent   = "flow_nap"
)

// The values of the load's events are evenly spread over these.
const (
	leastValue   = 100_000
	spreadValues = 100_000
)

// Of the events of its type an event trigger takes this share. Flows that send
// something take less: what is sent must not be the bottleneck.
const (
	shareOfEvents = 0.04
	shareOfSends  = 0.004
)

const day = 86_400

type object = map[string]any

// definition is a flow as the console takes it.
func definition(name, reentry string, trigger object, steps ...object) string {
	text, err := json.Marshal(object{"name": name, "reentry": reentry, "trigger": trigger, "steps": steps})
	if err != nil {
		panic(err) // of strings, numbers, maps and slices only
	}
	return string(text)
}

func onSegment(id string) object { return object{"type": "segment_entered", "segment_id": id} }

// onEvent takes a share of an event's instances: those with a value in a window
// drawn from rng.
func onEvent(rng *rand.Rand, event string, share float64) object {
	width := int(share * spreadValues)
	from := leastValue + rng.IntN(spreadValues-width)
	return object{"type": "event", "event": event, "where": []object{{"property": "value", "op": "between", "value": []int{from, from + width}}}}
}

func wait(id string, seconds int, next any) object {
	return object{"id": id, "type": "wait", "seconds": seconds, "next": next}
}

func tag(id, name string, next any) object {
	return object{"id": id, "type": "tag", "add": []string{name}, "next": next}
}

func email(id, subject string) object {
	return object{"id": id, "type": "email", "subject": subject, "body": "<p>Hello {{first_name | friend}}</p>", "next": nil}
}

func call(id, url, body string) object {
	return object{"id": id, "type": "webhook", "url": url, "body": body, "next": nil}
}

func condition(id string, of object, yes, no any) object {
	return object{"id": id, "type": "condition", "if": of, "yes": yes, "no": no}
}

func exit(id string) object { return object{"id": id, "type": "exit"} }

// probeFlows are enrolled in by each probe: what the first and the second do is
// what probes wait for.
func probeFlows(sinkURL string) []string {
	trigger := object{"type": "event", "event": probeEvent}
	return []string{
		definition("probe: call", "once", trigger, call("call", sinkURL+probePath+"{{event.n}}", `{"profile":"{{profile_id}}"}`)),
		definition("probe: mail", "once", trigger, email("mail", probeSubject+"{{event.n}}")),
	}
}

// mix makes n flows of ten kinds, beside those of the probes: triggered by
// segments and by events, with waits, conditions, splits, tags, updates, e-mails
// and webhooks.
func mix(seed uint64, n int, segments []string, sinkURL string) []string {
	rng := rand.New(rand.NewPCG(seed, 0))
	var out []string
	for i := range n {
		name := fmt.Sprintf("flow-%d", i)
		segment := segments[i/2%len(segments)]
		pro := object{"kind": "attribute", "field": "attributes.plan", "op": "=", "value": "pro"}
		switch i % 10 {
		case 0:
			out = append(out, definition(name, "after_exit", onSegment(segment),
				condition("pro", pro, "yes", "no"), tag("yes", name, nil), exit("no")))
		case 1:
			out = append(out, definition(name, "after_exit", onEvent(rng, "page_viewed", shareOfEvents), tag("tag", name, nil)))
		case 2:
			out = append(out, definition(name, "once", onEvent(rng, "item_viewed", shareOfEvents),
				condition("member", object{"kind": "segment", "segment_id": segment}, "set", "no"),
				object{"id": "set", "type": "update_contact", "set": object{"attributes.last_flow": name}, "next": nil}, exit("no")))
		case 3:
			bought := object{"kind": "activity", "event": "purchased", "window": object{"last_days": 1}}
			out = append(out, definition(name, "after_exit", onEvent(rng, "cart_added", shareOfEvents),
				wait("wait", 2, "bought"), condition("bought", bought, "done", "tag"), exit("done"), tag("tag", name, nil)))
		case 4:
			out = append(out, definition(name, "after_exit", onEvent(rng, "purchased", shareOfEvents),
				object{"id": "split", "type": "split", "branches": []object{{"weight": 1, "next": "tag"}, {"weight": 1, "next": "no"}}},
				tag("tag", name, nil), exit("no")))
		case 5:
			out = append(out, definition(name, "after_exit", onSegment(segment), wait("wait", 3600, "tag"), tag("tag", name, nil)))
		case 6:
			out = append(out, definition(name, "once", onEvent(rng, "searched", shareOfEvents),
				object{"id": "wait", "type": "wait", "until": "2099-01-31T09:00", "timezone": "Europe/Berlin", "next": "mail"}, email("mail", name)))
		case 7:
			out = append(out, definition(name, "after_exit", onEvent(rng, "purchased", shareOfSends), email("mail", name)))
		case 8:
			out = append(out, definition(name, "after_exit", onEvent(rng, "cart_added", shareOfSends), call("call", sinkURL+"/other", `{"flow":"`+name+`"}`)))
		case 9:
			out = append(out, definition(name, "once", onEvent(rng, "page_viewed", shareOfEvents),
				tag("tag", name, "wait"), wait("wait", day, "mail"), email("mail", name)))
		}
	}
	return out
}
