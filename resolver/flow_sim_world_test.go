package resolver

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/musterhq/muster/eventlog"
)

// flowWords are what random definitions are made of.
type flowWords struct {
	rng      *rand.Rand
	segments []string // ids
	lists    []string
	template string
	now      int64
	dated    bool // the flow at hand is triggered by a date
	loops    bool // many flows begin by what the service itself does
	held     bool // many conditions lead to messages
}

func (w *flowWords) maybe(percent int) bool { return w.rng.IntN(100) < percent }

// seconds are few, so that many things are due at the same instant.
func (w *flowWords) seconds() int {
	if w.maybe(10) {
		return 86_400
	}
	return pick(w.rng, 1, 2, 3, 5, 5, 10, 20)
}

func (w *flowWords) leaf(segments []string) string {
	rng := w.rng
	window := pick(rng, "", fmt.Sprintf(`,"window":{"last_days":%.10f}`, float64(w.seconds())/86_400), fmt.Sprintf(`,"window":{"last_days":%.10f}`, float64(w.seconds())/86_400))
	event := pick(rng, "viewed", "viewed", "bought", "flow_completed", "flow_entered", "list_joined", "email_sent")
	switch rng.IntN(12) {
	case 0:
		return fmt.Sprintf(`{"kind":"activity","event":%q%s,"aggregate":{"fn":"sum","property":"value","op":">","value":%d}}`, event, window, rng.IntN(9))
	case 1:
		return pick(rng, `{"kind":"attribute","field":"attributes.plan","op":"=","value":"pro"}`, `{"kind":"attribute","field":"attributes.tags","op":"contains","value":"a"}`,
			`{"kind":"attribute","field":"attributes.tags","op":"not_contains","value":"b"}`, `{"kind":"attribute","field":"first_name","op":"exists"}`)
	case 2:
		field := pick(rng, "attributes.seen", "attributes.seen", "created_at")
		return fmt.Sprintf(`{"kind":"attribute","field":%q,"op":%q,"value":%.10f}`, field, pick(rng, "in_last_days", "not_in_last_days"), float64(w.seconds())/86_400)
	case 3:
		return fmt.Sprintf(`{"kind":"consent","channel":%q,"status":%q}`, pick(rng, "email", "sms"), pick(rng, "subscribed", "unsubscribed", "never_subscribed"))
	case 4:
		return fmt.Sprintf(`{"kind":"list","list_id":%q,"member":%t}`, pick(rng, w.lists...), w.maybe(70))
	case 5, 6:
		if len(segments) > 0 {
			return fmt.Sprintf(`{"kind":"segment","segment_id":%q,"member":%t}`, pick(rng, segments...), w.maybe(70))
		}
	}
	did := ""
	if w.maybe(25) {
		did = `,"did":false`
	}
	return fmt.Sprintf(`{"kind":"activity","event":%q%s%s,"count":{"op":%q,"value":%d}}`, event, window, did, pick(rng, ">=", ">=", "<=", "="), 1+rng.IntN(2))
}

// definition is of a segment or a condition; it may refer to the segments given.
func (w *flowWords) definition(segments []string) string {
	if w.maybe(60) {
		return w.leaf(segments)
	}
	return fmt.Sprintf(`{"match":%q,"conditions":[%s,%s]}`, pick(w.rng, "all", "any"), w.leaf(segments), w.leaf(segments))
}

func (w *flowWords) zone() string {
	return pick(w.rng, "", "UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
}

func (w *flowWords) clock() string {
	// Often soon.
	t := time.UnixMilli(w.now).UTC().Add(time.Duration(w.rng.IntN(3)) * time.Minute)
	if w.maybe(30) {
		t = t.Add(time.Duration(w.rng.IntN(24)) * time.Hour)
	}
	return t.Format("15:04")
}

func (w *flowWords) trigger() string {
	rng := w.rng
	if w.held && w.maybe(80) {
		return pick(rng, `{"type":"event","event":"viewed"}`, `{"type":"event","event":"bought"}`, `{"type":"api"}`)
	}
	if w.loops && w.maybe(70) {
		return fmt.Sprintf(`{"type":"event","event":%q}`, pick(rng, "flow_completed", "flow_completed", "flow_entered", "flow_exited", "email_sent"))
	}
	switch rng.IntN(10) {
	case 0:
		where := ""
		if w.maybe(50) {
			where = fmt.Sprintf(`,"where":[{"property":"value","op":">","value":%d}]`, rng.IntN(9))
		}
		return fmt.Sprintf(`{"type":"event","event":%q%s}`, pick(rng, "viewed", "bought"), where)
	case 1:
		return fmt.Sprintf(`{"type":"event","event":%q}`, pick(rng, "subscribed", "email_sent", "flow_exited", "flow_completed", "flow_entered", "list_joined"))
	case 2:
		return fmt.Sprintf(`{"type":"list_joined","list_id":%q}`, pick(rng, w.lists...))
	case 3, 4, 8:
		return fmt.Sprintf(`{"type":"segment_entered","segment_id":%q}`, pick(rng, w.segments...))
	case 5, 9:
		return fmt.Sprintf(`{"type":"segment_exited","segment_id":%q}`, pick(rng, w.segments...))
	case 6:
		return fmt.Sprintf(`{"type":"date","field":%q,"offset_days":%d,"at":%q,"repeat":%q,"timezone":%q}`,
			pick(rng, "attributes.day", "attributes.day", "geo.day", "created_at"), pick(rng, 0, 0, 1, -1, 7), w.clock(), pick(rng, "once", "yearly"), w.zone())
	}
	return `{"type":"api"}`
}

func (w *flowWords) step(n int) string {
	rng := w.rng
	if w.dated && w.maybe(25) {
		// An enrolment changes the date that began it.
		day := time.UnixMilli(w.now).UTC().AddDate(rng.IntN(2), 0, rng.IntN(3)-1)
		return fmt.Sprintf(`"type":"update_contact","set":{%q:%q}`, pick(rng, "attributes.day", "attributes.day", "geo.day"), day.Format(time.DateOnly))
	}
	if w.loops && w.maybe(60) {
		return pick(rng, `"type":"tag","add":["a"]`, `"type":"email","subject":"s","body":"b"`, `"type":"webhook","url":"https://hooks.example.com/"`)
	}
	if w.held && w.maybe(90) {
		return pick(rng, `"type":"email","subject":"s","body":"b"`, `"type":"omnichannel","channels":[{"channel":"email","subject":"s","body":"b"},{"channel":"sms","text":"hi"}]`,
			`"type":"omnichannel","channels":[{"channel":"sms","text":"hi"},{"channel":"email","subject":"s","body":"b"}]`)
	}
	// Many e-mails, so that credits run out.
	switch rng.IntN(14) {
	case 0, 1, 12, 13:
		if w.maybe(20) {
			return fmt.Sprintf(`"type":"email","template_id":%q`, w.template)
		}
		return `"type":"email","subject":"s","body":"<p>{{event.value}}</p>"`
	case 2, 11:
		if w.maybe(30) {
			return `"type":"sms","text":"hi"`
		}
		channels := []string{`{"channel":"email","subject":"s","body":"b"}`, `{"channel":"sms","text":"hi"}`, `{"channel":"push","title":"t"}`}
		w.rng.Shuffle(len(channels), func(i, j int) { channels[i], channels[j] = channels[j], channels[i] })
		return `"type":"omnichannel","channels":[` + strings.Join(channels[:1+rng.IntN(len(channels))], ",") + `]`
	case 3, 4, 5:
		if w.maybe(70) {
			return fmt.Sprintf(`"type":"wait","seconds":%d`, w.seconds())
		}
		until := w.clock()
		if w.maybe(40) {
			until = time.UnixMilli(w.now).UTC().AddDate(0, 0, rng.IntN(3)-1).Format("2006-01-02T") + until
		}
		return fmt.Sprintf(`"type":"wait","until":%q,"timezone":%q`, until, w.zone())
	case 6:
		return fmt.Sprintf(`"type":"tag","add":[%q],"remove":["c"]`, pick(rng, "a", "b", "d")+pick(rng, "", "", fmt.Sprint(n)))
	case 7:
		return pick(rng, `"type":"tag","remove":["a","x"]`, `"type":"tag","add":["a","b"]`)
	case 8:
		return `"type":"update_contact","set":` + pick(rng, `{"attributes.plan":"pro"}`, `{"attributes.plan":null,"geo.country":"DE"}`, `{"attributes.got":"{{event.value}}"}`,
			`{"first_name":"Zoe"}`, `{"first_name":null,"attributes.was":"{{first_name}}"}`, `{"attributes.day":"2001-09-10"}`, `{"attributes.seen":"2001-09-09T01:47:00Z"}`)
	case 9, 10:
		return fmt.Sprintf(`"type":"webhook","url":"https://hooks.example.com/","body":{"v":"{{event.value}}"},"on_failure":%q`, pick(rng, "continue", "exit"))
	}
	return `"type":"exit"`
}

// flow is a definition whose steps are all reached and form no loop.
func (w *flowWords) flow(name string) string {
	rng := w.rng
	n := 1 + rng.IntN(5)
	if w.loops {
		n = 1 + rng.IntN(2)
	}
	if w.held {
		n += 2
	}
	trigger := w.trigger()
	w.dated = strings.Contains(trigger, `"type":"date"`)
	var steps []string
	reached := map[int]bool{0: true}
	for i := range n {
		if !reached[i] {
			continue
		}
		next := func() string {
			to := i + 1 + rng.IntN(2)
			if to >= n || w.maybe(10) {
				return "null"
			}
			reached[to] = true
			return fmt.Sprintf(`"s%d"`, to)
		}
		body := ""
		kind := rng.IntN(8)
		if w.held {
			kind = pick(rng, i%2*7, i%2*7, i%2*7, 2) // a condition, then a message
		}
		switch kind {
		case 0, 1:
			root := w.definition(w.segments)
			if w.held && w.maybe(60) {
				root = fmt.Sprintf(`{"kind":"activity","event":%q,"window":{"last_days":%.10f},"count":{"op":"<=","value":%d}}`, pick(rng, "viewed", "bought"), float64(10+rng.IntN(60))/86_400, 1+rng.IntN(3))
			}
			body = fmt.Sprintf(`"type":"condition","if":%s,"yes":%s,"no":%s`, root, next(), next())
		case 2:
			body = fmt.Sprintf(`"type":"split","branches":[{"weight":%d,"next":%s},{"weight":%d,"next":%s}]`, 1+rng.IntN(3), next(), 1+rng.IntN(3), next())
		default:
			if body = w.step(i); !strings.Contains(body, `"exit"`) || strings.Contains(body, "webhook") {
				body += `,"next":` + next()
			}
		}
		steps = append(steps, fmt.Sprintf(`{"id":"s%d",%s}`, i, body))
	}
	reentry := pick(rng, "once", "after_exit")
	if w.loops || w.held {
		reentry = "after_exit"
	}
	return fmt.Sprintf(`{"name":%q,"trigger":%s,"reentry":%q,"steps":[%s]}`, name, trigger, reentry, strings.Join(steps, ","))
}

// event is of a small world, so that people meet and merge.
func (w *flowWords) event(world int) eventlog.Event {
	rng := w.rng
	ev := eventlog.Event{Type: []byte(pick(rng, "viewed", "viewed", "bought"))}
	who := rng.IntN(world)
	switch rng.IntN(12) {
	case 0, 6:
		ev.ExternalID = fmt.Appendf(nil, "id-%d", who)
	case 1, 7:
		ev.Phone = fmt.Appendf(nil, "+4930%d", who)
	case 2, 10:
		// These may bring two people together.
		ev.ExternalID, ev.Phone = fmt.Appendf(nil, "id-%d", who), fmt.Appendf(nil, "+4930%d", (who+rng.IntN(2))%world)
	case 3, 11:
		ev.Email, ev.ExternalID = fmt.Appendf(nil, "u%d@x.io", who), fmt.Appendf(nil, "id-%d", (who+rng.IntN(2))%world)
	default:
		ev.Email = fmt.Appendf(nil, "u%d@x.io", who)
	}
	if w.maybe(15) {
		ev.FirstName = []byte(pick(rng, "Ada", "Alan"))
	}
	if w.maybe(25) {
		// The clock of a date is near.
		at := time.UnixMilli(w.now).UTC()
		ev.Attributes = []byte(pick(rng, `{"plan":"pro"}`, `{"plan":null}`, `{"tags":["x","a"]}`, `{"tags":["a",5,"x",null,"d"]}`, `{"tags":"a"}`, fmt.Sprintf(`{"day":%q}`, at.AddDate(0, 0, rng.IntN(3)-1).Format(time.DateOnly)),
			fmt.Sprintf(`{"day":%d}`, w.now-rng.Int64N(400)*86_400_000), fmt.Sprintf(`{"day":%q}`, at.AddDate(-1, 0, rng.IntN(3)-1).Format(time.RFC3339)), `{"day":null}`,
			fmt.Sprintf(`{"seen":%q}`, at.Add(time.Duration(rng.IntN(20)-5)*time.Second).Format(time.RFC3339Nano))))
	}
	if w.maybe(10) {
		ev.Geo = fmt.Appendf(nil, `{"day":%q}`, time.UnixMilli(w.now).UTC().AddDate(0, 0, rng.IntN(2)).Format(time.DateOnly))
	}
	if w.maybe(70) {
		ev.Properties = fmt.Appendf(nil, `{"value":%d}`, rng.IntN(10))
	}
	if w.maybe(10) {
		ev.IdempotencyKey = fmt.Appendf(nil, "k%d", rng.IntN(5))
	}
	return ev
}
