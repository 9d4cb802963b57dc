package trackingapi

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/eventlog"
	"github.com/musterhq/muster/internal/jsonscan"
	"github.com/musterhq/muster/internal/testlevel"
	"github.com/musterhq/muster/resolver/sources"
)

// received is the time of all requests of the tests.
const received = 1_764_000_000_000

// shownEvent is an event in one line, without what it lacks.
func shownEvent(ev *eventlog.Event) string {
	var b strings.Builder
	b.Write(ev.Type)
	for _, f := range []struct {
		name  string
		value []byte
	}{
		{"email", ev.Email}, {"external_id", ev.ExternalID}, {"phone", ev.Phone}, {"anonymous", ev.AnonymousID}, {"previous", ev.PreviousID},
		{"first", ev.FirstName}, {"last", ev.LastName}, {"geo", ev.Geo}, {"attributes", ev.Attributes}, {"properties", ev.Properties}, {"key", ev.IdempotencyKey},
	} {
		if len(f.value) > 0 {
			fmt.Fprintf(&b, " %s=%s", f.name, f.value)
		}
	}
	if ev.HasTime && ev.TimeMs != received {
		fmt.Fprintf(&b, " time=%d", ev.TimeMs-received)
	}
	if ev.Public {
		b.WriteString(" public")
	}
	if ev.MessageID != (len(ev.IdempotencyKey) > 0) {
		b.WriteString(" WRONG NAMESPACE")
	}
	return b.String()
}

// mapOne reads one message as the handler does, and shows what becomes of it.
func mapOne(t *testing.T, source *sources.Access, call Call, posthog bool, body string) string {
	t.Helper()
	s := jsonscan.New(31, 64<<10)
	w := &work{scan: s}
	bad, reason := readEnvelope(s, []byte(body), &w.around)
	if reason != "" {
		return "no JSON: " + reason
	}
	w.mapper = mapper{request: source, source: source, receivedMs: received, names: new(typeNames), around: &w.around, limits: limits{512, 512, 64 << 10}}
	w.keepAround()
	i := s.Space(0)
	if w.around.events >= 0 {
		i = s.Space(w.around.events + 1)
	} else {
		w.around.message = message{}
	}
	var m message
	var ev eventlog.Event
	next, bad2 := readMessage(s, i, &m)
	if bad = first(bad, bad2); bad == nil && posthog {
		bad = w.mapper.posthog(&m, &ev)
	} else if bad == nil {
		bad = w.mapper.segment(&m, call, &ev)
	}
	if next < 0 {
		return "no JSON: " + s.Err().Error()
	}
	if bad != nil {
		return bad.code + ": " + bad.message
	}
	out := shownEvent(&ev)
	if w.mapper.original != nil {
		out += fmt.Sprintf(" name=%q", w.mapper.original)
	}
	return out
}

var (
	serverSource  = &sources.Access{UserIDIs: sources.UserIDIsExternalID}
	browserSource = &sources.Access{UserIDIs: sources.UserIDIsExternalID, Public: true}
	emailSource   = &sources.Access{UserIDIs: sources.UserIDIsEmail}
	contextSource = &sources.Access{UserIDIs: sources.UserIDIsExternalID, KeepContext: true}
)

type mapping struct {
	name string
	// source is serverSource where it is nil.
	source *sources.Access
	call   Call
	body   string
	want   string
}

func runMappings(t *testing.T, posthog bool, list []mapping) {
	t.Helper()
	for _, c := range list {
		t.Run(c.name, func(t *testing.T) {
			source := c.source
			if source == nil {
				source = serverSource
			}
			if got := mapOne(t, source, c.call, posthog, c.body); got != c.want {
				t.Errorf("%s\n got %s\nwant %s", c.body, got, c.want)
			}
		})
	}
}

// TestCallsBecomeEvents: each call of Segment's and RudderStack's SDKs, as an event.
func TestCallsBecomeEvents(t *testing.T) {
	long := strings.Repeat("я", maxMessageID+1)
	runMappings(t, false, []mapping{
		{"track", nil, CallTrack, `{"userId":"u1","event":"Order Completed","properties":{"total": 5}}`, `order_completed external_id=u1 properties={"total":5} name="Order Completed"`},
		{"track of a type", nil, CallTrack, `{"userId":"u1","event":"order_completed"}`, `order_completed external_id=u1`},
		{"track in no Latin letters", nil, CallTrack, `{"userId":"u1","event":"Заказ"}`, `event_3648b2d271 external_id=u1 name="Заказ"`},
		{"the body names the call", nil, callOfBody, `{"type":"track","anonymousId":"a1","event":"x"}`, `x anonymous=a1`},
		{"both ids", nil, CallTrack, `{"userId":"u1","anonymousId":"a1","event":"x"}`, `x external_id=u1 anonymous=a1`},
		{"ids are verbatim", nil, CallTrack, `{"userId":" U1 ","event":"x"}`, `x external_id= U1 `},
		{"an id that is a number", nil, CallTrack, `{"userId":42,"event":"x"}`, `x external_id=42`},
		{"an id with an exponent", nil, CallTrack, `{"userId":4.2e3,"event":"x"}`, `x external_id=4200`},
		{"a negative id", nil, CallTrack, `{"userId":-1,"event":"x"}`, `x external_id=-1`},
		{"null is absent", nil, CallTrack, `{"userId":null,"anonymousId":"a","event":"x","properties":null,"context":null}`, `x anonymous=a`},
		{"user ids that are e-mails", emailSource, CallTrack, `{"userId":"ann@x.io","event":"x"}`, `x email=ann@x.io`},
		{"public", browserSource, CallTrack, `{"userId":"u","event":"x"}`, `x external_id=u public`},
		{"traits elsewhere are identifiers alone", nil, CallTrack, `{"userId":"u","event":"x","context":{"traits":{"email":"a@x.io","phone":4930123,"firstName":"Ann","plan":"pro"}}}`, `x email=a@x.io external_id=u phone=4930123`},
		{"escapes", nil, CallTrack, `{"userId":"a\"b\\c","event":"x","properties":{"q\"":"\u00e9"}}`, `x external_id=a"b\c properties={"q\"":"é"}`},
		{"unknown fields", nil, CallTrack, `{"userId":"u","event":"x","integrations":{"All":true},"_metadata":{},"channel":"server","rudderId":"r"}`, `x external_id=u`},

		{"identify", nil, CallIdentify, `{"userId":"u","traits":{"email":"a@x.io","phone":"+4930","firstName":"Ann","lastName":"Lee","plan":"pro","age":7,"name":"Ann Lee","address":{"city":"Berlin","country":"DE","postalCode":"10115","state":"BE"}}}`,
			`identified email=a@x.io external_id=u phone=+4930 first=Ann last=Lee geo={"city":"Berlin","country":"DE","postal_code":"10115","state":"BE"} attributes={"plan":"pro","age":7,"name":"Ann Lee"}`},
		{"names in snake case", nil, CallIdentify, `{"userId":"u","traits":{"first_name":"Ann","last_name":"Lee"}}`, `identified external_id=u first=Ann last=Lee`},
		{"traits in the context, as RudderStack sends them", nil, CallIdentify, `{"userId":"u","traits":{"plan":"pro"},"context":{"traits":{"plan":"free","email":"a@x.io"}}}`, `identified email=a@x.io external_id=u attributes={"plan":"pro"}`},
		{"both names of the postal code", nil, CallIdentify, `{"userId":"u","traits":{"address":{"postalCode":"1","postal_code":"2"}}}`, `identified external_id=u geo={"postal_code":"1"}`},
		{"a street", nil, CallIdentify, `{"userId":"u","traits":{"address":{"city":"B","street":"S 1"}}}`, `identified external_id=u geo={"city":"B"} attributes={"address":{"street":"S 1"}}`},
		{"an address in one line", nil, CallIdentify, `{"userId":"u","traits":{"address":"S 1, Berlin"}}`, `identified external_id=u attributes={"address":"S 1, Berlin"}`},
		{"traits of other kinds", nil, CallIdentify, `{"userId":"u","traits":{"email":false,"firstName":7,"phone":null}}`, `identified external_id=u attributes={"email":false,"firstName":7,"phone":null}`},
		{"an empty email", nil, CallIdentify, `{"userId":"u","traits":{"email":""}}`, `identified external_id=u`},
		{"identify of an e-mail alone", nil, CallIdentify, `{"traits":{"email":"a@x.io"}}`, `identified email=a@x.io`},

		{"page", nil, CallPage, `{"anonymousId":"a","name":"Home","category":"Shop","properties":{"url":"https://x/1"},"context":{"page":{"url":"https://x/2","path":"/2","referrer":"https://r","title":"T","search":"?q","tab":"t"},"campaign":{"name":"n","source":"s","medium":"m","term":"t","content":"c","other":"o"}}}`,
			`page_viewed anonymous=a properties={"url":"https://x/1","name":"Home","category":"Shop","path":"/2","referrer":"https://r","title":"T","search":"?q","utm_campaign":"n","utm_source":"s","utm_medium":"m","utm_term":"t","utm_content":"c"}`},
		{"page without anything", nil, CallPage, `{"anonymousId":"a"}`, `page_viewed anonymous=a`},
		{"screen", nil, CallScreen, `{"anonymousId":"a","name":"Cart","properties":{"name":"Own"}}`, `screen_viewed anonymous=a properties={"name":"Own"}`},
		{"group", nil, CallGroup, `{"userId":"u","groupId":"g1","traits":{"name":"Acme"}}`, `group_identified external_id=u attributes={"group_id":"g1"} properties={"group_id":"g1","name":"Acme"}`},
		{"group by number", nil, CallGroup, `{"userId":"u","groupId":7}`, `group_identified external_id=u attributes={"group_id":"7"} properties={"group_id":"7"}`},
		{"alias", nil, CallAlias, `{"userId":"u","previousId":"a"}`, `aliased external_id=u previous=a`},
		{"alias of an anonymous id", nil, CallAlias, `{"userId":"u","anonymousId":"a"}`, `aliased external_id=u previous=a`},
		{"alias to an e-mail", emailSource, CallAlias, `{"userId":"a@x.io","previousId":"a"}`, `aliased email=a@x.io previous=a`},
		{"merge", nil, CallMerge, `{"mergeProperties":[{"type":"email","value":"a@x.io"},{"type":"mobile","value":"+4930"}]}`, `aliased email=a@x.io phone=+4930`},
		{"merge of user ids", nil, CallMerge, `{"mergeProperties":[{"type":"user_id","value":"u"},{"type":"user_id","value":"v"}]}`, `aliased external_id=u previous=v`},

		{"messageId", nil, CallTrack, `{"userId":"u","event":"x","messageId":"m-1"}`, `x external_id=u key=m-1`},
		{"a messageId of 100 characters", nil, CallTrack, `{"userId":"u","event":"x","messageId":"` + strings.Repeat("x", 100) + `"}`, `x external_id=u key=` + strings.Repeat("x", 100)},
		{"a longer one is its hash", nil, CallTrack, `{"userId":"u","event":"x","messageId":"` + long + `"}`, `x external_id=u key=ed89be2639933e905f29eff4dfda63ade8e96e1c01de5051bb0d01a0bbf34b4f`},
		{"an empty one is none", nil, CallTrack, `{"userId":"u","event":"x","messageId":""}`, `x external_id=u`},

		{"context", contextSource, CallTrack, `{"userId":"u","event":"x","context":{"ip":"1"}}`, `x external_id=u properties={"context":{"ip":"1"}}`},
		{"context behind properties", contextSource, CallTrack, `{"userId":"u","event":"x","properties":{"a":1},"context":{"ip":"1"}}`, `x external_id=u properties={"a":1,"context":{"ip":"1"}}`},
		{"context of their own", contextSource, CallTrack, `{"userId":"u","event":"x","properties":{"context":"c"},"context":{"ip":"1"}}`, `x external_id=u properties={"context":"c"}`},
		{"context of the batch", contextSource, callOfBody, `{"batch":[{"type":"track","userId":"u","event":"x","context":{"ip":"1"}}],"context":{"ip":"2","library":{"name":"l"}}}`, `x external_id=u properties={"context":{"ip":"1","library":{"name":"l"}}}`},
		{"traits of the batch", nil, callOfBody, `{"context":{"traits":{"email":"a@x.io"}},"batch":[{"type":"track","userId":"u","event":"x"}]}`, `x email=a@x.io external_id=u`},
	})
}

// TestBadCalls: what is refused, and why.
func TestBadCalls(t *testing.T) {
	long := strings.Repeat("x", 513)
	runMappings(t, false, []mapping{
		{"no id", nil, CallTrack, `{"event":"x"}`, `invalid_event: the event has no identifier; send userId or anonymousId, not empty`},
		{"empty ids", nil, CallTrack, `{"userId":"","anonymousId":"","event":"x"}`, `invalid_event: the event has no identifier; send userId or anonymousId, not empty`},
		{"an id that is an object", nil, CallTrack, `{"userId":{"a":1},"event":"x"}`, `invalid_event: userId must be a string or a number, not {"a":1}`},
		{"a long id", nil, CallTrack, `{"anonymousId":"` + long + `","event":"x"}`, `invalid_event: anonymousId is longer than 512 bytes; shorten it`},
		{"a long email", nil, CallIdentify, `{"userId":"u","traits":{"email":"` + long + `"}}`, `invalid_event: traits.email is longer than 512 bytes; shorten it`},
		{"no event", nil, CallTrack, `{"userId":"u"}`, `invalid_event: event is missing; name what happened, such as "Item Viewed"`},
		{"no type", nil, callOfBody, `{"userId":"u"}`, `invalid_event: type must be track, identify, page, screen, group or alias, not missing`},
		{"another type", nil, callOfBody, `{"type":"delete","userId":"u"}`, `invalid_event: type must be track, identify, page, screen, group or alias, not "delete"`},
		{"properties that are a list", nil, CallTrack, `{"userId":"u","event":"x","properties":[1]}`, `invalid_event: properties must be a JSON object such as {"key": "value"}; send one, or leave it out`},
		{"traits that are text", nil, CallIdentify, `{"userId":"u","traits":"x"}`, `invalid_event: traits must be a JSON object such as {"key": "value"}; send one, or leave it out`},
		{"a key twice", nil, CallTrack, `{"userId":"u","event":"x","properties":{"a":1,"a":2}}`, `invalid_event: properties.a occurs twice; send each key of an object once`},
		{"a field twice", nil, CallTrack, `{"userId":"u","event":"x","event":"y"}`, `invalid_event: event occurs twice; send each field of an event once`},
		{"NUL", nil, CallTrack, `{"userId":"u\u0000","event":"x"}`, `invalid_event: userId holds the character NUL (\u0000); remove it`},
		{"half a character", nil, CallTrack, `{"userId":"u","event":"x","properties":{"a":"\ud800"}}`, `invalid_event: properties.a holds a \u escape of half a character (a lone surrogate); send whole characters`},
		{"deep", nil, CallTrack, `{"userId":"u","event":"x","properties":` + strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat("}", 40) + `}`, `invalid_event: properties` + strings.Repeat(".a", 30) + ` is nested too deep; flatten it`},
		{"large", nil, CallTrack, `{"userId":"u","event":"x","properties":{"a":"` + strings.Repeat("x", 65<<10) + `"}}`, `payload_too_large: properties is too long; send less, or spread it over several events`},
		{"large with its context", contextSource, CallTrack, `{"userId":"u","event":"x","properties":{"a":"` + strings.Repeat("x", 40<<10) + `"},"context":{"b":"` + strings.Repeat("x", 40<<10) + `"}}`, `payload_too_large: properties is too long; send less, or spread it over several events`},
		{"no object", nil, callOfBody, `{"batch":[7]}`, `invalid_event: an event must be a JSON object such as {"type": "track", "event": "Item Viewed", "userId": "42"}`},
		{"a timestamp that is none", nil, CallTrack, `{"userId":"u","event":"x","timestamp":"yesterday"}`, `x external_id=u`},
		{"a messageId that is an object", nil, CallTrack, `{"userId":"u","event":"x","messageId":{}}`, `invalid_event: messageId must be a string, not {}`},
		{"no group", nil, CallGroup, `{"userId":"u"}`, `invalid_event: groupId is missing; say which group the user belongs to`},
		{"alias without previousId", nil, CallAlias, `{"userId":"u"}`, `invalid_event: previousId is missing; say whom the user was called before`},
		{"alias without userId", nil, CallAlias, `{"previousId":"a"}`, `invalid_event: userId is missing; say whom previousId is called now`},
		{"alias by a browser", browserSource, CallAlias, `{"userId":"u","previousId":"a"}`, `not_allowed: a browser's key may not alias; send alias from a server, with the key of a server source`},
		{"alias in a batch of a browser", browserSource, callOfBody, `{"batch":[{"type":"alias","userId":"u","previousId":"a"}]}`, `not_allowed: a browser's key may not alias; send alias from a server, with the key of a server source`},
		{"merge by a browser", browserSource, CallMerge, `{"mergeProperties":[{"type":"email","value":"a@x.io"},{"type":"mobile","value":"1"}]}`, `not_allowed: a browser's key may not merge; send merge from a server, with the key of a server source`},
		{"merge of nothing", nil, CallMerge, `{}`, `invalid_event: mergeProperties must be a list of two identifiers, such as [{"type": "email", "value": "ann@example.com"}, {"type": "mobile", "value": "+491701234567"}]`},
		{"merge of one", nil, CallMerge, `{"mergeProperties":[{"type":"email","value":"a@x.io"}]}`, `invalid_event: mergeProperties must have two identifiers, not 1`},
		{"merge of two e-mails", nil, CallMerge, `{"mergeProperties":[{"type":"email","value":"a@x.io"},{"type":"email","value":"b@x.io"}]}`, `invalid_event: mergeProperties: two identifiers of the type email cannot be of one person here`},
		{"merge of texts", nil, CallMerge, `{"mergeProperties":["a","b"]}`, `invalid_event: mergeProperties.type must be email, mobile, user_id or anonymous_id, not missing`},
		{"no JSON", nil, CallTrack, `{"userId":}`, `no JSON: not valid JSON at byte 10: expected a JSON value`},
	})
}

// TestTimeOfAnEvent: the time between event and sending is measured by the client's clock,
// all else by the server's.
func TestTimeOfAnEvent(t *testing.T) {
	at := func(ms int64) string { return fmt.Sprint(received + ms) }
	const hour = 3_600_000
	for _, c := range []struct{ name, fields, batch, want string }{
		{"no time", ``, ``, ``},
		{"a right clock", `,"timestamp":` + at(-5000) + `,"sentAt":` + at(-1000), ``, ` time=-4000`},
		{"a clock that is 3 h ahead", `,"timestamp":` + at(3*hour-5000) + `,"sentAt":` + at(3*hour-1000), ``, ` time=-4000`},
		{"a clock that is 3 h behind", `,"timestamp":` + at(-3*hour-5000) + `,"sentAt":` + at(-3*hour-1000), ``, ` time=-4000`},
		{"sent before it happened", `,"timestamp":` + at(0) + `,"sentAt":` + at(-1000), ``, ``},
		{"never sent", `,"timestamp":` + at(-hour), ``, ` time=-3600000`},
		{"never sent, in the future", `,"timestamp":` + at(hour), ``, ``},
		{"RudderStack's own time is not the application's", `,"timestamp":` + at(-hour) + `,"originalTimestamp":` + at(-1000) + `,"sentAt":` + at(0), ``, ` time=-3600000`},
		{"RudderStack's own time alone", `,"originalTimestamp":` + at(-7000) + `,"sentAt":` + at(-1000), ``, ` time=-6000`},
		{"the batch was sent", `,"timestamp":` + at(-5000), `,"sentAt":` + at(-1000), ` time=-4000`},
		{"the event knows better than its batch", `,"timestamp":` + at(-5000) + `,"sentAt":` + at(-3000), `,"sentAt":` + at(-1000), ` time=-2000`},
		{"PostHog's name of it", `,"timestamp":` + at(-5000), `,"sent_at":` + at(-1000), ` time=-4000`},
		{"a time of sending that is none", `,"timestamp":` + at(-5000) + `,"sentAt":"now"`, ``, ` time=-5000`},
		{"in RFC 3339", `,"timestamp":"2025-11-24T15:59:50.000Z","sentAt":"2025-11-24T17:00:00+01:00"`, ``, ` time=-10000`},
		{"in seconds", `,"timestamp":1763999990`, ``, ` time=-10000`},
		{"a space, and no zone", `,"timestamp":"2025-11-24 15:59:50"`, ``, ` time=-10000`},
		{"a space before the zone", `,"timestamp":"2025-11-24 16:59:50.5 +0100"`, ``, ` time=-9500`},
		{"a zone by name", `,"timestamp":"2025-11-24 15:59:50 UTC"`, ``, ` time=-10000`},
		{"a zone without a colon", `,"timestamp":"2025-11-24T15:59:50.123+0000"`, ``, ` time=-9877`},
		{"a zone of hours", `,"timestamp":"2025-11-24T16:59:50+01"`, ``, ` time=-10000`},
		{"microseconds and no zone", `,"timestamp":"2025-11-24T15:59:50.123456"`, ``, ` time=-9877`},
		{"a comma", `,"timestamp":"2025-11-24T15:59:50,5Z"`, ``, ` time=-9500`},
		{"minutes", `,"timestamp":"2025-11-24T15:59Z"`, ``, ` time=-60000`},
		{"without separators", `,"timestamp":"20251124T155950Z"`, ``, ` time=-10000`},
		{"a date", `,"timestamp":"2025-11-24"`, ``, ` time=-57600000`},
		{"an HTTP date", `,"timestamp":"Mon, 24 Nov 2025 15:59:50 GMT"`, ``, ` time=-10000`},
		{"in milliseconds", `,"timestamp":1763999990000`, ``, ` time=-10000`},
		{"in microseconds", `,"timestamp":1763999990000000`, ``, ` time=-10000`},
		{"in nanoseconds", `,"timestamp":1763999990000000000`, ``, ` time=-10000`},
		{"seconds in a text", `,"timestamp":"1763999990"`, ``, ` time=-10000`},
		{"milliseconds in a text", `,"timestamp":"1763999990000"`, ``, ` time=-10000`},
		{"one that cannot be read", `,"timestamp":"24/11/2025"`, ``, ``},
		{"one that cannot be read, and the SDK's own", `,"timestamp":"24/11/2025","originalTimestamp":` + at(-2000), ``, ` time=-2000`},
		{"no time at all", `,"timestamp":{"a":1}`, ``, ``},
		{"before 1970", `,"timestamp":"1960-01-01T00:00:00Z"`, ``, ``},
		{"in seconds with a fraction", `,"timestamp":1763999990.5`, ``, ` time=-9500`},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := `{"batch":[{"type":"track","userId":"u","event":"x"` + c.fields + `}]` + c.batch + `}`
			if got, want := mapOne(t, serverSource, callOfBody, false, body), "x external_id=u"+c.want; got != want {
				t.Errorf("%s\n got %s\nwant %s", body, got, want)
			}
		})
	}
}

// TestPostHogsEvents: what the messages of PostHog's SDKs become.
func TestPostHogsEvents(t *testing.T) {
	runMappings(t, true, []mapping{
		{"an event of a server", nil, 0, `{"event":"item viewed","distinct_id":"u1","properties":{"sku":"s","$lib":"posthog-node","distinct_id":"u1","token":"t"},"uuid":"id-1"}`, `item_viewed external_id=u1 properties={"sku":"s"} key=id-1 name="item viewed"`},
		{"in a batch", nil, 0, `{"api_key":"k","batch":[{"type":"capture","event":"x","distinct_id":"u1","timestamp":"2025-11-24T15:59:50Z"}],"sent_at":"2025-11-24T16:00:00Z"}`, `x external_id=u1 time=-10000`},
		{"distinct_id among the properties", nil, 0, `{"event":"x","properties":{"distinct_id":"u1"}}`, `x external_id=u1`},
		{"identify", nil, 0, `{"event":"$identify","distinct_id":"u1","properties":{"$anon_distinct_id":"a1","$set":{"email":"a@x.io","plan":"pro"},"$set_once":{"first":"y"}}}`, `identified email=a@x.io external_id=u1 anonymous=a1 attributes={"plan":"pro"}`},
		{"identify with the set beside it", nil, 0, `{"event":"$identify","distinct_id":"u1","$set":{"firstName":"Ann"}}`, `identified external_id=u1 first=Ann`},
		{"set", nil, 0, `{"event":"$set","distinct_id":"u1","properties":{"$set":{"plan":"x"}}}`, `identified external_id=u1 attributes={"plan":"x"}`},
		{"an event that sets", nil, 0, `{"event":"x","distinct_id":"u1","properties":{"a":1,"$set":{"plan":"x"}}}`, `x external_id=u1 attributes={"plan":"x"} properties={"a":1}`},
		{"alias", nil, 0, `{"event":"$create_alias","distinct_id":"u1","properties":{"distinct_id":"u1","alias":"a1"}}`, `aliased external_id=u1 previous=a1`},
		{"alias by a browser", browserSource, 0, `{"event":"$create_alias","distinct_id":"u1","properties":{"alias":"a1"}}`, `not_allowed: a browser's key may not alias; send alias from a server, with the key of a server source`},
		{"both names of the title", nil, 0, `{"event":"$pageview","distinct_id":"u1","properties":{"title":"A","$title":"B"}}`, `page_viewed external_id=u1 properties={"title":"A"}`},
		{"page view", nil, 0, `{"event":"$pageview","distinct_id":"u1","properties":{"$current_url":"https://x/1","$pathname":"/1","$referrer":"r","title":"T","own":1,"$os":"o"}}`, `page_viewed external_id=u1 properties={"own":1,"url":"https://x/1","path":"/1","referrer":"r","title":"T"}`},
		{"screen", nil, 0, `{"event":"$screen","distinct_id":"u1","properties":{"$screen_name":"Cart"}}`, `screen_viewed external_id=u1 properties={"name":"Cart"}`},
		{"anonymous: the SDK says so", nil, 0, `{"event":"x","distinct_id":"a1","properties":{"$is_identified":false,"$device_id":"d"}}`, `x anonymous=a1`},
		{"anonymous: the device's id", nil, 0, `{"event":"x","distinct_id":"d","properties":{"$device_id":"d"}}`, `x anonymous=d`},
		{"anonymous: no profile is wanted", nil, 0, `{"event":"x","distinct_id":"a1","properties":{"$process_person_profile":false}}`, `x anonymous=a1`},
		{"a user on a device", nil, 0, `{"event":"x","distinct_id":"u1","properties":{"$device_id":"d","$is_identified":true}}`, `x external_id=u1 anonymous=d`},
		{"a group", nil, 0, `{"event":"x","distinct_id":"u1","properties":{"$group_0":"g"}}`, `x external_id=u1 properties={"group_id":"g"}`},
		{"ids that are e-mails", emailSource, 0, `{"event":"x","distinct_id":"a@x.io"}`, `x email=a@x.io`},
		{"no event", nil, 0, `{"distinct_id":"u1"}`, `invalid_event: event is missing; name what happened, such as "item viewed"`},
		{"no identifier", nil, 0, `{"event":"x"}`, `invalid_event: the event has no identifier; send userId or anonymousId, not empty`},
		{"a property list", nil, 0, `{"event":"x","distinct_id":"u1","properties":[]}`, `invalid_event: properties must be a JSON object such as {"key": "value"}; send one, or leave it out`},
		{"properties of a group", nil, 0, `{"event":"$groupidentify","distinct_id":"g"}`, `invalid_event: $groupidentify is not taken: groups have no properties here; send $group_0 with the events of people`},
	})
}

// TestTimeMatchesNaive: the time of random calls, in random shapes, is what the rule says
// in a plain transcription.
func TestTimeMatchesNaive(t *testing.T) {
	calls := 20_000
	if testlevel.Long() {
		calls = 1_000_000
	}
	rng := rand.New(rand.NewPCG(18, 8))
	shapes := []func(ms int64) string{
		func(ms int64) string { return fmt.Sprint(ms) },
		func(ms int64) string { return fmt.Sprintf(`"%d"`, ms) },
		func(ms int64) string { return fmt.Sprintf("%d000", ms) },
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.000Z0700", "2006-01-02 15:04:05.000", "2006-01-02 15:04:05.000 Z0700", "20060102T150405.000Z0700", "2006-01-02T15:04:05,000Z07:00"} {
		shapes = append(shapes, func(ms int64) string {
			at := time.UnixMilli(ms).UTC()
			if strings.Contains(layout, "Z07") {
				at = at.In(time.FixedZone("", 3600*(rng.IntN(25)-12)))
			}
			return `"` + at.Format(layout) + `"`
		})
	}
	for n := range calls {
		fields, times := "", [3]*int64{}
		for i, name := range []string{"timestamp", "originalTimestamp", "sentAt"} {
			if rng.IntN(3) > 0 {
				ms := received + rng.Int64N(20_000_000) - 10_000_000
				times[i] = &ms
				fields += fmt.Sprintf(`,%q:%s`, name, shapes[rng.IntN(len(shapes))](ms))
			}
		}
		original, sent := times[0], times[2]
		if original == nil {
			original = times[1]
		}
		want := int64(received)
		switch {
		case original == nil:
		case sent == nil:
			if *original < received {
				want = *original
			}
		case *sent > *original:
			want = received - (*sent - *original)
		}
		show := ""
		if want != received {
			show = fmt.Sprintf(" time=%d", want-received)
		}
		body := `{"type":"track","userId":"u","event":"x"` + fields + `}`
		if got := mapOne(t, serverSource, callOfBody, false, body); got != "x external_id=u"+show {
			t.Fatalf("call %d, %s: %s, want %q", n, body, got, show)
		}
	}
}
