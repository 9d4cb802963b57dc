package fake

import (
	"fmt"
	"math/rand/v2"

	"github.com/musterhq/muster/eventlog"
)

// AppendEvents appends events to a record that has its envelope.
func AppendEvents(rec []byte, evs []eventlog.Event) []byte {
	rec = eventlog.AppendEventCount(rec, len(evs))
	for i := range evs {
		rec = eventlog.AppendEvent(rec, &evs[i])
	}
	return rec
}

// Pick draws one of a list.
func Pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

// RandomEvent draws from a small world, so that people meet, merge and clash.
func RandomEvent(rng *rand.Rand, world int, now int64) eventlog.Event {
	ev := eventlog.Event{Type: []byte(Pick(rng, "viewed", "bought", "signed_up", "email_opened"))}
	maybe := func(p int) bool { return rng.IntN(100) < p }
	if maybe(50) {
		ev.Email = []byte(fmt.Sprintf(Pick(rng, "u%d@x.io", "U%d@X.io", " u%d@x.io"), rng.IntN(world)))
	}
	if maybe(50) {
		ev.ExternalID = []byte(fmt.Sprintf("id-%d", rng.IntN(world)))
	}
	if maybe(30) {
		ev.Phone = []byte(fmt.Sprintf(Pick(rng, "+49 30 %d", "+4930-%d"), rng.IntN(world)))
	}
	if maybe(3) {
		ev.ExternalID = []byte(Pick(rng, "guest", "NULL ", "0"))
	}
	if maybe(2) {
		ev.Phone = []byte("+")
	}
	if maybe(20) {
		ev.FirstName = []byte(Pick(rng, "Ada", "Grace", "Alan"))
	}
	if maybe(20) {
		ev.LastName = []byte(Pick(rng, "L", "H", "T"))
	}
	if maybe(30) {
		ev.Geo = []byte(Pick(rng, `{"country":"DE"}`, `{"country":"FR","city":"Paris"}`, `{"country":null}`, `{"pos":{"lat":1,"lon":2}}`))
	}
	if maybe(40) {
		ev.Attributes = []byte(Pick(rng, `{"plan":"pro"}`, `{"plan":"free","n":50.0}`, `{"plan":null}`, `{"a":{"b":{"c":1}}}`, `{"a":{"b":{"d":[1,{"x":null}]}}}`,
			`{"a":{"b":null}}`, `{"a":5}`, `{"é\"":"\\"}`, `{"a":{}}`, `{"tags":["x","y"]}`))
	}
	if maybe(30) {
		ev.IdempotencyKey = []byte(fmt.Sprintf("k%d", rng.IntN(world*4)))
	}
	if maybe(50) {
		ev.Properties = []byte(fmt.Sprintf(`{"value":%d}`, rng.IntN(1000)))
	}
	if maybe(15) {
		ev.HasTime = true
		ev.TimeMs = now - rng.Int64N(100_000) + 5
	}
	return ev
}

func Event(fields ...string) eventlog.Event {
	e := eventlog.Event{Type: []byte("viewed")}
	for i := 0; i < len(fields); i += 2 {
		v := []byte(fields[i+1])
		switch fields[i] {
		case "email":
			e.Email = v
		case "external_id":
			e.ExternalID = v
		case "phone":
			e.Phone = v
		case "attributes":
			e.Attributes = v
		case "key":
			e.IdempotencyKey = v
		case "type":
			e.Type = v
		}
	}
	return e
}

// RandomDefinition draws the definition of a segment, which may ask for others and for
// lists. Windows are seconds.
func RandomDefinition(rng *rand.Rand, ids, lists []string) string {
	leaf := func() string {
		event := Pick(rng, "viewed", "bought", "signed_up", "list_joined", "unsubscribed")
		window := Pick(rng, "", fmt.Sprintf(`,"window":{"last_days":%g}`, float64(1+rng.IntN(20_000))/86_400_000))
		where := Pick(rng, "", "", fmt.Sprintf(`,"where":[{"property":"value","op":"<","value":%d}]`, rng.IntN(1000)))
		did := Pick(rng, "", "", `,"did":false`)
		switch rng.IntN(11) {
		case 0:
			return fmt.Sprintf(`{"kind":"activity","event":%q%s%s%s,"aggregate":{"fn":%q,"property":"value","op":">","value":%d}}`,
				event, window, where, did, Pick(rng, "sum", "avg", "min", "max"), rng.IntN(1000))
		case 1:
			return fmt.Sprintf(`{"kind":"activity","event":%q%s%s,"aggregate":{"fn":"distinct","property":"value","op":"<","value":%d}}`, event, window, where, 1+rng.IntN(4))
		case 2:
			return Pick(rng, `{"kind":"attribute","field":"attributes.plan","op":"=","value":"pro"}`, `{"kind":"attribute","field":"email","op":"contains","value":"1@x"}`,
				`{"kind":"attribute","field":"geo.country","op":"!=","value":"DE"}`, `{"kind":"attribute","field":"created_at","op":"in_last_days","value":0.0001}`)
		case 3:
			if len(ids) > 0 {
				return fmt.Sprintf(`{"kind":"segment","segment_id":%q,"member":%t}`, ids[rng.IntN(len(ids))], rng.IntN(2) == 0)
			}
		case 4:
			if len(lists) > 0 {
				return fmt.Sprintf(`{"kind":"list","list_id":%q,"member":%t}`, lists[rng.IntN(len(lists))], rng.IntN(3) > 0)
			}
		case 5:
			return fmt.Sprintf(`{"kind":"consent","channel":%q,"status":%q}`, Pick(rng, "email", "sms"), Pick(rng, "subscribed", "pending", "unsubscribed", "never_subscribed"))
		case 6, 7:
			field := Pick(rng, `"subscribed","op":"=","value":true`, `"subscribed","op":"!=","value":true`, `"suppressed.email","op":"=","value":true`,
				`"status","op":"in","value":["Subscribed","Pending"]`, `"status","op":"!=","value":"Engaged"`, `"status.sms","op":"exists"`,
				`"first_seen_at","op":"in_last_days","value":0.0001`, `"last_event_at","op":"in_last_days","value":0.00005`, `"last_event_at","op":"exists"`,
				`"engagement_score","op":">","value":0`, `"engagement_score","op":"between","value":[5,20]`, `"push_devices","op":"exists"`, `"push_devices","op":"=","value":"fcm"`)
			if rng.IntN(4) == 0 {
				return fmt.Sprintf(`{"kind":"attribute","field":"event_count","op":%q,"value":%d}`, Pick(rng, ">=", "=", "<"), rng.IntN(5))
			}
			return `{"kind":"attribute","field":` + field + `}`
		}
		return fmt.Sprintf(`{"kind":"activity","event":%q%s%s%s,"count":{"op":%q,"value":%d}}`, event, window, where, did, Pick(rng, ">=", "<=", "="), rng.IntN(4))
	}
	return fmt.Sprintf(`{"match":%q,"conditions":[%s,%s]}`, Pick(rng, "all", "any"), leaf(), leaf())
}
