package flowcrash

import (
	"encoding/json"
	"fmt"
)

// Windows are those of the segments, in ms.
type Windows struct {
	Cart, Browse int64
	// Busy is looked back at by the cart flow's condition, which comes 2 s behind
	// the event that began it; shorter than that.
	Busy int64
}

var usualWindows = Windows{Cart: 3000, Browse: 4000, Busy: 1500}

// lastDays is a window of a segment's.
func lastDays(ms int64) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"last_days":%.15f}`, float64(ms)/86_400_000))
}

// object is JSON to be sent.
type object map[string]any

func did(event string, windowMs int64) object {
	return object{"kind": "activity", "event": event, "window": lastDays(windowMs)}
}

func tierIs(tier string) object {
	return object{"kind": "attribute", "field": "attributes.tier", "op": "=", "value": tier}
}

// The flows of a run.
const (
	flowOrder  = "order"  // an event with a large total, once
	flowAfter  = "after"  // the order flow's end, an event of the service's own, once
	flowVisit  = "visit"  // an event on a page, again and again
	flowCart   = "cart"   // a segment entered
	flowGone   = "gone"   // the same segment exited, which time does
	flowList   = "list"   // a list joined
	flowCall   = "call"   // a call with a key
	flowSignup = "signup" // an event, once; paused now and then
	flowBrowse = "browse" // a segment entered; paused now and then
	flowGold   = "gold"   // a segment entered; published in the middle of the run
	eventEnd   = "flow_completed"
	eventJoin  = "list_joined"
)

// pausable are the flows that are paused and resumed.
var pausable = []string{flowSignup, flowBrowse}

// step is one step of a definition, as the oracle reads it.
type step struct {
	ID       string            `json:"id"`
	Type     string            `json:"type"`
	Next     *string           `json:"next,omitempty"`
	Seconds  int64             `json:"seconds,omitempty"`
	If       object            `json:"if,omitempty"`
	Yes      *string           `json:"yes,omitempty"`
	No       *string           `json:"no,omitempty"`
	Branches []branch          `json:"branches,omitempty"`
	Add      []string          `json:"add,omitempty"`
	Remove   []string          `json:"remove,omitempty"`
	Set      map[string]string `json:"set,omitempty"`
	Subject  string            `json:"subject,omitempty"`
	Body     any               `json:"body,omitempty"`
	URL      string            `json:"url,omitempty"`
	Method   string            `json:"method,omitempty"`
	Timeout  int               `json:"timeout_seconds,omitempty"`
	Attempts int               `json:"attempts,omitempty"`
	Failure  string            `json:"on_failure,omitempty"`
}

type branch struct {
	Weight int     `json:"weight"`
	Next   *string `json:"next"`
}

// flow is a definition with the oracle's data of it.
type flow struct {
	name    string
	trigger object
	again   bool // reentry after_exit
	keyed   bool // effects carry the key of what started the enrolment
	steps   []step

	id string // once it is created
}

func (f *flow) definition() object {
	reentry := "once"
	if f.again {
		reentry = "after_exit"
	}
	return object{"name": f.name, "trigger": f.trigger, "reentry": reentry, "steps": f.steps}
}

func (f *flow) step(id string) *step {
	for i := range f.steps {
		if f.steps[i].ID == id {
			return &f.steps[i]
		}
	}
	return nil
}

// draft makes the steps of a flow.
type draft struct {
	flow  *flow
	hooks *hooks
}

func to(id string) *string {
	if id == "" {
		return nil
	}
	return &id
}

func (d draft) add(s step) draft {
	d.flow.steps = append(d.flow.steps, s)
	return d
}

func (d draft) tag(id string, add, remove []string, next string) draft {
	return d.add(step{ID: id, Type: "tag", Add: add, Remove: remove, Next: to(next)})
}

func (d draft) wait(id string, seconds int64, next string) draft {
	return d.add(step{ID: id, Type: "wait", Seconds: seconds, Next: to(next)})
}

func (d draft) condition(id string, test object, yes, no string) draft {
	return d.add(step{ID: id, Type: "condition", If: test, Yes: to(yes), No: to(no)})
}

// set sets an attribute to the key of what started the enrolment.
func (d draft) set(id, attribute, next string) draft {
	return d.add(step{ID: id, Type: "update_contact", Set: map[string]string{"attributes." + attribute: keyTag}, Next: to(next)})
}

const keyTag = "{{event.key}}"

func (d draft) key() string {
	if d.flow.keyed {
		return keyTag
	}
	return ""
}

func (d draft) email(id, next string) draft {
	return d.add(step{ID: id, Type: "email", Subject: mailSubject(d.flow.name, id, d.key()), Body: "<p>Hello {{first_name | friend}}</p>", Next: to(next)})
}

func (d draft) webhook(id, next string) draft {
	s := step{
		ID: id, Type: "webhook", URL: d.hooks.url(d.flow.name, id), Method: "POST", Timeout: int(hookTimeout.Seconds()), Attempts: 4,
		Body: map[string]string{"profile": "{{profile_id}}", "key": d.key()}, Next: to(next),
	}
	if id == stepFlaky {
		s.Attempts, s.Failure = 2, "exit"
	}
	return d.add(s)
}

// places are what flows refer to.
type places struct {
	list, cart, browse, gold string
	windows                  Windows
}

// flowDefs are the definitions, in the order in which they are created: after
// needs the id of order.
func flowDefs(h *hooks, p *places, order string) []*flow {
	made := []*flow{}
	begin := func(name string, again, keyed bool, trigger object) draft {
		made = append(made, &flow{name: name, trigger: trigger, again: again, keyed: keyed})
		return draft{made[len(made)-1], h}
	}
	where := func(property, op string, value any) []object {
		return []object{{"property": property, "op": op, "value": value}}
	}
	event := func(name string, where []object) object {
		return object{"type": "event", "event": name, "where": where}
	}
	segment := func(how, id string) object { return object{"type": how, "segment_id": id} }

	begin(flowOrder, false, true, event("order_placed", where("total", ">=", orderTotal))).
		tag("t1", []string{"order-open"}, nil, "w1").
		wait("w1", 1, "c1").
		condition("c1", tierIs(tierGold), "m1", "s1").
		email("m1", "h1").
		add(step{ID: "s1", Type: "split", Branches: []branch{{1, to("u1")}, {1, to(stepFlaky)}}}).
		set("u1", "order_key", "h1").
		webhook(stepFlaky, "h1").
		webhook("h1", "t2").
		tag("t2", []string{"order-done"}, []string{"order-open"}, "")
	begin(flowAfter, false, false, event(eventEnd, where("flow_id", "=", order))).
		tag("t1", []string{"followed"}, nil, "h1").
		webhook("h1", "")
	begin(flowVisit, true, true, event("visit", where("page", "=", pagePricing))).
		webhook("h1", "w1").
		wait("w1", 1, "u1").
		set("u1", "visit_key", "")
	begin(flowCart, true, false, segment("segment_entered", p.cart)).
		tag("t1", []string{"cart"}, nil, "w1").
		wait("w1", 2, "c1").
		condition("c1", did("cart_filled", p.windows.Busy), "h1", "t2").
		webhook("h1", "").
		tag("t2", []string{"cart-cold"}, nil, "")
	begin(flowGone, true, false, segment("segment_exited", p.cart)).
		email("m1", "w1").
		wait("w1", 1, "h1").
		webhook("h1", "")
	begin(flowList, false, false, object{"type": "list_joined", "list_id": p.list}).
		email("m1", "w1").
		wait("w1", 1, "h1").
		webhook("h1", "")
	begin(flowCall, true, true, object{"type": "api"}).
		webhook("h1", "w1").
		wait("w1", 1, "t1").
		tag("t1", []string{"called"}, nil, "m1").
		email("m1", "")
	begin(flowSignup, false, true, event("signed_up", nil)).
		tag("t1", []string{"new"}, nil, "w1").
		wait("w1", 2, "h1").
		webhook("h1", "w2").
		wait("w2", 1, "u1").
		set("u1", "signup_key", "m1").
		email("m1", "")
	begin(flowBrowse, true, false, segment("segment_entered", p.browse)).
		wait("w1", 1, "h1").
		webhook("h1", "w2").
		wait("w2", 1, "t1").
		tag("t1", []string{"browser"}, nil, "")
	begin(flowGold, false, false, segment("segment_entered", p.gold)).
		tag("t1", []string{"vip"}, nil, "h1").
		webhook("h1", "")
	return made
}
