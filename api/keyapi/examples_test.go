package keyapi

import (
	"maps"
	"strings"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/internal/handler"
)

// example is a request of an endpoint. ‹kind› stands for something of the
// company that makes it, «kind» for an id that is to be tried with what another
// company has.
type example struct {
	target string // path and query
	body   string
	// control is why the request says the same with the company's own ids as with
	// unknown ones; "" where it does not.
	control string
	// loose is why the answer is compared by status and message alone.
	loose string
	// secret and headers go with the request; a report is signed with the secret.
	secret  string
	headers []string
	form    bool // the body is a form
}

func (x *example) probes() bool {
	return strings.Contains(x.target+x.body+strings.Join(x.headers, ""), "«")
}

// forgedPerson is a token of a person without a valid signature.
var forgedPerson = []string{"Authorization", "Bearer eyJhbGciOiJIUzI1NiJ9.e30.AAAA"}

// noIDs is why paths of an endpoint have parts in braces that are no ids.
var noIDs = map[string]string{
	"GET /console/api/v1/catalog/{id}": "a name that each company gives itself", "GET /api/v1/catalog/{id}": "a name that each company gives itself",
	"PUT /console/api/v1/push-credentials/{id}": "a kind", "DELETE /console/api/v1/push-credentials/{id}": "a kind",
	"PUT /console/api/v1/message-providers/{id}": "a kind", "DELETE /console/api/v1/message-providers/{id}": "a kind",
	"PUT /console/api/v1/inbound-providers/{id}": "a kind", "DELETE /console/api/v1/inbound-providers/{id}": "a kind",
	"GET /forms/{id}": "a form is public", "POST /forms/{id}": "a form is public",
	"POST /in-app/inbox/{id}/seen": "a token says whose inbox", "POST /in-app/inbox/{id}/clicked": "a token says whose inbox", "POST /in-app/inbox/{id}/dismissed": "a token says whose inbox",
}

const (
	byList    = `{"kind":"list","list_id":"«list»"}`
	bySegment = `{"match":"any","conditions":[{"kind":"segment","segment_id":"«segment»"},{"kind":"consent","channel":"email","status":"subscribed"}]}`
	byEvent   = `{"kind":"activity","event":"bought","window":{"last_days":3},"where":[{"property":"color","op":"=","value":"red"}],"aggregate":{"fn":"sum","property":"value","op":">","value":1.5}}`
	// Every endpoint that deals in campaigns says what is sent as these do.
	variants = `"variants":[{"subject":"A","body":"<p>A</p>"},{"subject":"B","sender_name":"N"}],"test_percent":50,"metric":"opens","wait_seconds":1`
	wide     = "from=2025-01-01&to=2025-04-01T00:00:00Z&granularity=day"
	steps    = `[{"id":"a","type":"email","subject":"Hi","body":"<p>x</p>","next":"b"},{"id":"b","type":"wait","until":"2030-01-31T09:00","timezone":"Europe/Berlin","next":"c"},{"id":"c","type":"condition","if":{"kind":"list","list_id":"«list»"},"yes":"d","no":null},{"id":"d","type":"split","branches":[{"weight":3,"next":"e"},{"weight":1}]},{"id":"e","type":"tag","add":["vip"],"next":"f"},{"id":"f","type":"update_contact","set":{"plan":"x"},"next":"g"},{"id":"g","type":"webhook","url":"https://hooks.example/x","on_failure":"exit","body":{"a":1}}]`
	adminly  = "only administrators of the system get that far"
)

// examples has requests of every endpoint, by method and whole path: those below, and
// those of the console and of keys once more where the other has the call as well. A route that is not
// here fails the tests that walk them, and so does a part of a path in braces that
// nothing tries.
var examples = withShared(ownExamples)

func withShared(own map[string][]example) map[string][]example {
	out := maps.Clone(own)
	nouns := [][2]string{{"/flows", "/custom-flows"}, {"/campaigns", "/campaign"}}
	for _, g := range new(api.API).SharedGroups() {
		for _, s := range g.Calls {
			from, to := "/console/api/v1", "/api/v1"
			rest := s.Path
			for _, noun := range nouns {
				if behind, is := strings.CutPrefix(s.Path, noun[1]); is && (behind == "" || behind[0] == '/') {
					from, to, rest = from+noun[0], to+noun[1], behind
				}
			}
			var list []example
			for _, x := range own[s.Method+" "+from+rest] {
				x.target = to + strings.TrimPrefix(x.target, from)
				list = append(list, x)
			}
			out[s.Method+" /api/v1"+s.Path] = list
		}
	}
	for _, g := range new(API).SessionGroups() {
		for _, k := range g.Calls {
			method, path, _ := strings.Cut(handler.CallOfKeys(k.Method, k.Path), " ")
			from := "/v1"
			if own[method+" "+from+path] == nil {
				from = "/api/v1"
			}
			var list []example
			for _, x := range own[method+" "+from+path] {
				x.target = api.Prefix + handler.PathOfPeople(strings.TrimPrefix(x.target, from))
				list = append(list, x)
			}
			out[k.Method+" "+api.Prefix+k.Path] = list
		}
	}
	return out
}

var ownExamples = map[string][]example{
	// Surface A.
	"POST /api/v1/contacts": {
		{target: "/api/v1/contacts", body: `{"email":"‹newemail›","first_name":"Ada","last_name":"L","phone":"‹newphone›","external_id":"‹newext›","list_id":"«list»"}`},
		{target: "/api/v1/contacts", body: `{"email":"‹newemail›"}`},
	},
	"GET /api/v1/contacts": {
		{target: "/api/v1/contacts?limit=2"}, {target: "/api/v1/contacts?email=«email»"}, {target: "/api/v1/contacts?external_id=«external»"},
		{target: "/api/v1/contacts?phone=%2B«phone»"}, {target: "/api/v1/contacts?list_id=«list»&limit=3"},
	},
	"GET /api/v1/contacts/{id}":        {{target: "/api/v1/contacts/«profile»"}},
	"DELETE /api/v1/contacts/{id}":     {{target: "/api/v1/contacts/«profile»"}},
	"GET /api/v1/contacts/{id}/export": {{target: "/api/v1/contacts/«profile»/export"}},
	"PATCH /api/v1/contacts/{id}": {
		{target: "/api/v1/contacts/«profile»", body: `{"first_name":"Bo","last_name":"","phone":"‹newphone›","external_id":"‹newext›","geo":{"country":"DE"},"attributes":{"plan":"x","n":1.5,"gone":null}}`},
	},
	"POST /api/v1/contacts/{id}/devices": {
		{target: "/api/v1/contacts/«profile»/devices", body: `{"device_id":"‹newdevice›","kind":"fcm","address":"‹newtoken›"}`},
		{target: "/api/v1/contacts/‹profile›/devices", body: `{"device_id":"«device»","kind":"fcm","address":"‹newtoken›"}`, control: "ids of devices are the caller's"},
		{target: "/api/v1/contacts/‹profile›/devices", body: `{"device_id":"‹newdevice›","kind":"fcm","address":"«address»"}`, control: "it is added in any case"},
		{target: "/api/v1/contacts/‹profile›/devices", body: `{"kind":"webpush","address":"{\"endpoint\":\"https://push.example/x\",\"keys\":{\"p256dh\":\"x\",\"auth\":\"y\"}}"}`},
	},
	"GET /api/v1/contacts/{id}/devices": {{target: "/api/v1/contacts/«profile»/devices"}},
	"DELETE /api/v1/contacts/{id}/devices/{device}": {
		{target: "/api/v1/contacts/«profile»/devices/«device»"}, {target: "/api/v1/contacts/‹profile›/devices/«device»"},
	},
	"POST /api/v1/lists":        {{target: "/api/v1/lists", body: `{"name":"‹newname›","description":"d","public":true,"public_name":"‹newname›","public_description":"d"}`}},
	"GET /api/v1/lists":         {{target: "/api/v1/lists?limit=1&cursor=«cursor:/api/v1/lists»"}},
	"GET /api/v1/lists/{id}":    {{target: "/api/v1/lists/«list»"}},
	"PATCH /api/v1/lists/{id}":  {{target: "/api/v1/lists/«list»", body: `{"name":"‹newname›","description":"e","public":false,"public_name":"x","public_description":""}`}},
	"DELETE /api/v1/lists/{id}": {{target: "/api/v1/lists/«list»"}},
	"POST /api/v1/lists/{id}/contacts": {
		{target: "/api/v1/lists/«list»/contacts", body: `{"email":"‹newemail›","first_name":"Ada","last_name":"L"}`},
	},
	"DELETE /api/v1/lists/{id}/contacts/{contact}": {
		{target: "/api/v1/lists/«list»/contacts/«member»"}, {target: "/api/v1/lists/‹list›/contacts/«member»"}, {target: "/api/v1/lists/«list»/contacts/‹profile›"},
	},
	"GET /api/v1/analytics/overview":       {{target: "/api/v1/analytics/overview?" + wide}},
	"GET /api/v1/analytics/performance":    {{target: "/api/v1/analytics/performance?campaign_id=«sent»&" + wide}},
	"GET /api/v1/analytics/flows/overview": {{target: "/api/v1/analytics/flows/overview?" + wide}},
	"GET /api/v1/analytics/campaigns":      {{target: "/api/v1/analytics/campaigns?cursor=«cursor:/api/v1/analytics/campaigns»&limit=1&" + wide}},
	"GET /api/v1/analytics/domains":        {{target: "/api/v1/analytics/domains?from=2020-01-01"}, {target: "/api/v1/analytics/domains?campaign_id=«sent»"}},
	"GET /api/v1/analytics/events":         {{target: "/api/v1/analytics/events?event_type=«eventtype»&" + wide}},
	"GET /api/v1/analytics/segments":       {{target: "/api/v1/analytics/segments?cursor=«cursor:/api/v1/analytics/segments»&limit=1&" + wide}},
	"GET /api/v1/analytics/contacts":       {{target: "/api/v1/analytics/contacts?" + wide}},
	"POST /api/v1/campaign": {
		{target: "/api/v1/campaign", body: `{"name":"‹newname›","channel":2,"type":1,"date":"2026-01-01T09:00:00Z","sender_name":"N","reply_to":"a@b.example","list_id":["«list»"],` + mailBody + `}`},
		{target: "/api/v1/campaign", body: `{"name":"‹newname›","channel":1,"segment_ids":["«segment»"],"link":"https://shop.example/"}`},
		{target: "/api/v1/campaign", body: `{"name":"‹newname›","channel":1,"channels":[{"channel":"push","subject":"s","body":"b","link":"https://shop.example/","push":{"image":"https://shop.example/a","collapse":"a","ttl_seconds":60}},{"channel":"whatsapp","whatsapp":{"template":"sale","language":"en","parameters":["a"],"header":"h"}},{"channel":"sms","body":"b","sender":"Shop"},{"channel":"email"}]}`},
		{target: "/api/v1/campaign", body: `{"name":"‹newname›","channel":1,"date":"2090-01-31T09:00","local_time":true,"rate":{"messages":600,"per":"hour"},"ignore_sending_limits":true}`},
		{target: "/api/v1/campaign", body: `{"name":"‹newname›","channel":1,"template_id":"«template»","sender":"news@‹domain›"}`},
		{target: "/api/v1/campaign", body: `{"name":"‹newname›","channel":2,"type":3,"service":"whatsapp","track_links":true,"date":"2026-01-01T09:00:00Z","whatsapp":{"template":"sale","language":"en_US","parameters":["{{first_name}}"],"header":"h"}}`},
		{target: "/api/v1/campaign", body: `{"name":"‹newname›","channel":2,"type":3,"service":"whatsapp","date":"2026-01-01T09:00:00Z","whatsapp":{"template":"sale","language":"en_US","named_parameters":{"name":"{{first_name}}"},"header_type":"document","header":"https://shop.example/a.pdf","header_filename":"a.pdf","buttons":[{"type":"url","index":0,"value":"sale"}]}}`},
		{target: "/api/v1/campaign", body: `{"name":"‹newname›","channel":2,"type":3,"service":"whatsapp","date":"2026-01-01T09:00:00Z","whatsapp":{"template":"visit","language":"en_US","header_type":"location","header_location":{"latitude":"52.52","longitude":"13.405","name":"Shop","address":"Unter den Linden 1"},"buttons":[{"type":"copy_code","index":0,"value":"SALE25"}]}}`},
	},
	"GET /api/v1/campaign":      {{target: "/api/v1/campaign?limit=1&cursor=«cursor:/api/v1/campaign»"}},
	"GET /api/v1/campaign/{id}": {{target: "/api/v1/campaign/«campaign»"}, {target: "/api/v1/campaign/«sent»"}},
	"PATCH /api/v1/campaign/{id}": {
		{target: "/api/v1/campaign/«campaign»", body: `{"name":"‹newname›","date":"2026-02-01","type":1}`},
		{target: "/api/v1/campaign/‹campaign›", body: `{"list_id":["«list»"],"segment_ids":["‹segment›"]}`},
		{target: "/api/v1/campaign/‹campaign›", body: `{"segment_ids":["«segment»"]}`},
		{target: "/api/v1/campaign/‹campaign›", body: `{"template_id":"«draft»"}`},
	},
	"DELETE /api/v1/campaign/{id}": {{target: "/api/v1/campaign/«campaign»"}},
	"POST /api/v1/campaign/{id}/send": {
		{target: "/api/v1/campaign/«campaign»/send", body: `{"batch_size":1000,"delay_between_batches":0.1}`},
		{target: "/api/v1/campaign/«sent»/send"},
		{target: "/api/v1/campaign/‹campaign›/send", body: `{"list_id":["«list»"],"batch_size":10}`},
		{target: "/api/v1/campaign/‹campaign›/send", body: `{"segment_ids":["«segment»"]}`},
		{target: "/api/v1/campaign/‹campaign›/send", body: `{"list_id":["‹list›"],"template_source":"LIST","template_id":"«template»"}`},
		{target: "/api/v1/campaign/‹campaign›/send", body: `{"list_id":["‹list›"],"template_source":"DRAFT","template_id":"«draft»"}`},
		{target: "/api/v1/campaign/‹textcampaign›/send", body: `{"list_id":["‹list›"]}`},
	},
	"POST /api/v1/campaign/{id}/audience": {
		{target: "/api/v1/campaign/«campaign»/audience", body: `{"all_contacts":true}`}, {target: "/api/v1/campaign/‹campaign›/audience", body: `{"list_id":["«list»"],"segment_ids":["‹segment›"]}`},
		{target: "/api/v1/campaign/‹campaign›/audience", body: `{"segment_ids":["«segment»"]}`},
	},
	"POST /api/v1/campaign/{id}/render": {
		{target: "/api/v1/campaign/«campaign»/render", body: `{"email":"‹email›"}`}, {target: "/api/v1/campaign/‹campaign›/render", body: `{"profile_id":"«profile»"}`},
		{target: "/api/v1/campaign/‹campaign›/render", body: `{"email":"«email»"}`}, {target: "/api/v1/campaign/‹campaign›/render", body: `{"email":"‹email›","template_id":"«template»"}`},
	},
	"POST /api/v1/campaign/{id}/test-send": {
		{target: "/api/v1/campaign/«campaign»/test-send", body: `{"to":["a@b.example"],"subject":"S"}`}, {target: "/api/v1/campaign/‹campaign›/test-send", body: `{"to":["a@b.example"],"profile_id":"«profile»"}`},
		{target: "/api/v1/campaign/‹campaign›/test-send", body: `{"to":["a@b.example"],"email":"«email»"}`}, {target: "/api/v1/campaign/‹campaign›/test-send", body: `{"to":["a@b.example"],"body":"","template_id":"«template»"}`},
	},
	"DELETE /api/v1/campaign/{id}/schedule":         {{target: "/api/v1/campaign/«campaign»/schedule"}},
	"GET /api/v1/campaign/{id}/stats":               {{target: "/api/v1/campaign/«sent»/stats"}},
	"GET /api/v1/campaign/{id}/recipients/activity": {{target: "/api/v1/campaign/«sent»/recipients/activity?limit=5"}},
	"POST /api/v1/campaign/{id}/ab-test/start": {
		{target: "/api/v1/campaign/«campaign»/ab-test/start", body: `{` + variants + `}`},
		{target: "/api/v1/campaign/‹campaign›/ab-test/start", body: `{"list_id":["«list»"],` + variants + `}`},
		{target: "/api/v1/campaign/‹campaign›/ab-test/start", body: `{"segment_ids":["«segment»"],` + variants + `}`},
		{target: "/api/v1/campaign/‹campaign›/ab-test/start", body: `{"all_contacts":true,"template_source":"LIST","template_id":"«template»",` + variants + `}`},
	},
	"GET /api/v1/push/segments": {{target: "/api/v1/push/segments?limit=1&cursor=«cursor:/api/v1/push/segments»"}},
	"POST /api/v1/push/send": {
		{target: "/api/v1/push/send", body: `{"title":"T","body":"B","segmentId":"«segment»","link":"myapp://sale","image":"https://shop.example/a.jpg","collapse":"sale","ttlSeconds":3600,"dryRun":true}`},
		{target: "/api/v1/push/send", body: `{"title":"Hi {{first_name}}","segmentId":"«segment»"}`},
	},

	"GET /api/v1/key": {{target: "/api/v1/key"}},

	"GET /api/v1/analytics/flows/{id}":         {{target: "/api/v1/analytics/flows/«live»?" + wide}},
	"GET /api/v1/custom-flows":                 {{target: "/api/v1/custom-flows?limit=1&cursor=«cursor:/api/v1/custom-flows»"}},
	"GET /api/v1/custom-flows/{id}":            {{target: "/api/v1/custom-flows/«flow»"}},
	"PATCH /api/v1/custom-flows/{id}":          {{target: "/api/v1/custom-flows/«live»", body: `{"status":"paused"}`}},
	"POST /api/v1/custom-flows/{id}/pause":     {{target: "/api/v1/custom-flows/«live»/pause"}},
	"POST /api/v1/custom-flows/{id}/resume":    {{target: "/api/v1/custom-flows/«live»/resume"}},
	"PATCH /api/v1/custom-flows/{id}/toggle":   {{target: "/api/v1/custom-flows/«live»/toggle"}},
	"POST /api/v1/custom-flows/{id}/duplicate": {{target: "/api/v1/custom-flows/«flow»/duplicate"}},
	"POST /api/v1/custom-flows/{id}/trigger": {
		{target: "/api/v1/custom-flows/«live»/trigger", body: `{"email":"‹email›","data":{"cart":1},"idempotency_key":"‹newkey›"}`},
		{target: "/api/v1/custom-flows/‹live›/trigger", body: `{"email":"«email»"}`, loose: "who is not there is made"},
	},

	// Surface B: all unauthenticated requests get the same answer.
	"POST /api/v1/events": {
		{target: "/api/v1/events", body: `{"event_type":"bought","user":{"email":"‹newemail›","external_id":"‹newext›","phone":"‹newphone›","first_name":"A","geo":{"city":"B"},"attributes":{"a":[1,{"b":null}]}},"properties":{"value":1.5},"idempotency_key":"‹newkey›"}`,
			headers: []string{"X-App-Id", "«appid»"}},
		{target: "/api/v1/events", body: `{"event_type":"bought","user":{"email":"‹newemail›"},"idempotency_key":"«usedkey»"}`, loose: "every person has an id of their own"},
	},
	"POST /api/v1/events/import": {
		{target: "/api/v1/events/import", body: `{"file":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","first_row":0,"trigger_flows":false,"events":[{"event_type":"bought","user":{"email":"‹newemail›"},"timestamp":"2024-05-31T12:30:00Z"}]}`,
			headers: []string{"X-App-Id", "«appid»"}},
	},
	"POST /api/v1/events/batch": {
		{target: "/api/v1/events/batch", body: `{"events":[{"event_type":"bought","user":{"email":"‹newemail›"},"properties":{"a":"b"}},{"event_type":"seen","user":{"phone":"‹newphone›"}}]}`,
			headers: []string{"X-App-Id", "«appid»"}},
	},

	// Surface C.
	"POST /v1/events": {
		{target: "/v1/events", body: `{"email":"‹newemail›","event":"bought","properties":{"value":1},"idempotency_key":"«usedkey»"}`, loose: "every person has an id of their own"},
	},
	"POST /v1/email/send": {
		{target: "/v1/email/send", body: `{"to":"‹newemail›","template_id":"«template»","data":{"first_name":"X","n":{"m":[1]}},"subject":"s","sender_name":"n","idempotency_key":"‹newkey›"}`},
		{target: "/v1/email/send", body: `{"to":"‹newemail›","template_id":"‹template›","sender":"news@«domain»"}`},
		{target: "/v1/email/send", body: `{"to":"‹newemail›","template_id":"‹template›","idempotency_key":"«mailkey»"}`, loose: "every message has an id of its own"},
	},

	// The console: people and access.
	"POST /console/api/v1/session": {
		{target: "/console/api/v1/session", body: `{"email":"«useremail»","password":"wrong, but long enough"}`, control: "the password is wrong"},
		{target: "/console/api/v1/session", body: `{"email":"‹useremail›","password":"wrong, but long enough","account_id":"«accountid»","cookie":true}`, control: "the password is wrong"},
	},
	"POST /console/api/v1/session/link": {
		{target: "/console/api/v1/session/link", body: `{"token":"lnk_0000"}`, control: "no link is open"},
	},
	"GET /console/api/v1/session":    {{target: "/console/api/v1/session"}},
	"DELETE /console/api/v1/session": {{target: "/console/api/v1/session"}},
	"PUT /console/api/v1/password":   {{target: "/console/api/v1/password", body: `{"current_password":"wrong, but long enough","password":"another, long enough"}`}},
	"GET /console/api/v1/users":      {{target: "/console/api/v1/users?limit=1&cursor=«cursor:/users»"}},
	"POST /console/api/v1/users": {
		{target: "/console/api/v1/users", body: `{"email":"‹newemail›","name":"N","password":"long enough password","permissions":["lists:read"],"admin":false}`},
		{target: "/console/api/v1/users", body: `{"email":"«useremail»","name":"N","password":"long enough password","permissions":["lists:read"]}`, loose: "every person has an id of their own"},
	},
	"GET /console/api/v1/users/{id}":              {{target: "/console/api/v1/users/«user»"}},
	"PATCH /console/api/v1/users/{id}":            {{target: "/console/api/v1/users/«user»", body: `{"name":"M","email":"‹newemail›","permissions":["lists:write"],"password":"another, long enough"}`}},
	"DELETE /console/api/v1/users/{id}":           {{target: "/console/api/v1/users/«user»"}},
	"GET /console/api/v1/companies":               {{target: "/console/api/v1/companies?limit=1"}},
	"POST /console/api/v1/companies":              {{target: "/console/api/v1/companies", body: `{"name":"‹newname›","email":"‹newemail›"}`}},
	"GET /console/api/v1/companies/{id}":          {{target: "/console/api/v1/companies/«company»", control: adminly}},
	"PATCH /console/api/v1/companies/{id}":        {{target: "/console/api/v1/companies/«company»", body: `{"name":"‹newname›","api_access":true,"active":true,"surface_c_per_minute":600}`, control: adminly}},
	"POST /console/api/v1/companies/{id}/credits": {{target: "/console/api/v1/companies/«company»/credits", body: `{"amount":5}`, control: adminly}},
	"GET /console/api/v1/api-keys":                {{target: "/console/api/v1/api-keys?limit=1&cursor=«cursor:/api-keys»"}},
	"POST /console/api/v1/api-keys":               {{target: "/console/api/v1/api-keys", body: `{"name":"‹newname›","permissions":["lists:read"]}`}},
	"DELETE /console/api/v1/api-keys/{id}":        {{target: "/console/api/v1/api-keys/«apikey»"}},

	// Segments.
	"GET /console/api/v1/segments": {{target: "/console/api/v1/segments?limit=1&cursor=«cursor:/segments»"}},
	"POST /console/api/v1/segments": {
		{target: "/console/api/v1/segments", body: `{"name":"‹newname›","definition":` + byList + `}`}, {target: "/console/api/v1/segments", body: `{"name":"‹newname›","definition":` + bySegment + `}`},
		{target: "/console/api/v1/segments", body: `{"name":"‹newname›","definition":` + byEvent + `}`},
	},
	"POST /console/api/v1/segments/preview": {
		{target: "/console/api/v1/segments/preview", body: `{"definition":` + byList + `}`}, {target: "/console/api/v1/segments/preview", body: `{"definition":` + bySegment + `}`},
		{target: "/console/api/v1/segments/preview", body: `{"definition":` + byEvent + `,"segment_id":"«segment»","explain":true}`},
	},
	"GET /console/api/v1/segments/{id}": {{target: "/console/api/v1/segments/«segment»"}},
	"PUT /console/api/v1/segments/{id}": {
		{target: "/console/api/v1/segments/«segment»", body: `{"name":"‹newname›","definition":` + byEvent + `}`},
		{target: "/console/api/v1/segments/‹other›", body: `{"name":"‹newname›","definition":` + byList + `}`}, {target: "/console/api/v1/segments/‹other›", body: `{"name":"‹newname›","definition":` + bySegment + `}`},
	},
	"DELETE /console/api/v1/segments/{id}": {{target: "/console/api/v1/segments/«segment»"}},
	"GET /console/api/v1/segments/{id}/members": {
		{target: "/console/api/v1/segments/«segment»/members?limit=2"}, {target: "/console/api/v1/segments/‹bylist›/members?cursor=«membercursor»", control: "it is of another definition"},
	},
	"GET /console/api/v1/segments/{id}/explain": {
		{target: "/console/api/v1/segments/«segment»/explain?profile_id=‹profile›"}, {target: "/console/api/v1/segments/‹segment›/explain?profile_id=«profile»"},
	},
	"POST /console/api/v1/segments/explain": {
		{target: "/console/api/v1/segments/explain", body: `{"profile_id":"«profile»","definition":` + byEvent + `}`},
		{target: "/console/api/v1/segments/explain", body: `{"profile_id":"‹profile›","definition":` + byList + `}`}, {target: "/console/api/v1/segments/explain", body: `{"profile_id":"‹profile›","definition":` + bySegment + `}`},
	},
	"GET /console/api/v1/segments/{id}/transitions": {{target: "/console/api/v1/segments/«segment»/transitions?after=0-0"}},

	// Profiles.
	"GET /console/api/v1/profiles": {
		{target: "/console/api/v1/profiles?email=«email»"}, {target: "/console/api/v1/profiles?external_id=«external»"}, {target: "/console/api/v1/profiles?phone=%2B«phone»"},
	},
	"GET /console/api/v1/profiles/search": {
		{target: "/console/api/v1/profiles/search?q=«email»"}, {target: "/console/api/v1/profiles/search?segment_id=«segment»"}, {target: "/console/api/v1/profiles/search?list_id=«list»"},
		{target: "/console/api/v1/profiles/search?sort=oldest"},
	},
	"GET /console/api/v1/profiles/{id}": {{target: "/console/api/v1/profiles/«profile»"}},
	"GET /console/api/v1/profiles/{id}/events": {
		{target: "/console/api/v1/profiles/«profile»/events?limit=2"}, {target: "/console/api/v1/profiles/‹profile›/events?cursor=«timelinecursor»", control: "a place in time"},
	},
	"PATCH /console/api/v1/profiles/{id}":                {{target: "/console/api/v1/profiles/«profile»", body: `{"first_name":"Bo","attributes":{"plan":"x"},"geo":{"city":null}}`}},
	"DELETE /console/api/v1/profiles/{id}":               {{target: "/console/api/v1/profiles/«profile»"}},
	"POST /console/api/v1/profiles/{id}/consent":         {{target: "/console/api/v1/profiles/«profile»/consent", body: `{"channel":"email","status":"unsubscribed","source":"x"}`}},
	"GET /console/api/v1/profiles/{id}/consents":         {{target: "/console/api/v1/profiles/«profile»/consents"}},
	"GET /console/api/v1/profiles/{id}/preferences-link": {{target: "/console/api/v1/profiles/«profile»/preferences-link"}},
	"GET /console/api/v1/export/consents":                {{target: "/console/api/v1/export/consents"}},
	"POST /console/api/v1/profiles/{id}/suppression":     {{target: "/console/api/v1/profiles/«profile»/suppression", body: `{"channel":"email","reason":"suppressed"}`}},
	"DELETE /console/api/v1/profiles/{id}/suppression":   {{target: "/console/api/v1/profiles/«profile»/suppression?channel=email"}},
	"GET /console/api/v1/profiles/{id}/devices":          {{target: "/console/api/v1/profiles/«profile»/devices"}},
	"POST /console/api/v1/profiles/{id}/devices": {
		{target: "/console/api/v1/profiles/«profile»/devices", body: `{"device_id":"‹newdevice›","kind":"apns","address":"` + strings.Repeat("ab", 32) + `"}`},
		{target: "/console/api/v1/profiles/‹profile›/devices", body: `{"device_id":"«device»","kind":"fcm","address":"‹newtoken›"}`, control: "ids of devices are the caller's"},
	},
	"DELETE /console/api/v1/profiles/{id}/devices/{device}": {
		{target: "/console/api/v1/profiles/«profile»/devices/«device»"}, {target: "/console/api/v1/profiles/‹profile›/devices/«device»"},
	},
	"GET /console/api/v1/erasures":             {{target: "/console/api/v1/erasures?limit=1&cursor=«cursor:/erasures»", control: "a place in an order"}},
	"DELETE /console/api/v1/erasures/{id}":     {{target: "/console/api/v1/erasures/«erasure»"}, {target: "/console/api/v1/erasures/«erased»"}},
	"GET /console/api/v1/catalog":              {{target: "/console/api/v1/catalog"}},
	"GET /console/api/v1/catalog/{id}":         {{target: "/console/api/v1/catalog/item_viewed"}, {target: "/console/api/v1/catalog/bought"}},
	"GET /console/api/v1/attributes":           {{target: "/console/api/v1/attributes"}},
	"POST /console/api/v1/catalog":             {{target: "/console/api/v1/catalog", body: `{"name":"‹newevent›"}`}},
	"PATCH /console/api/v1/catalog/{id}":       {{target: "/console/api/v1/catalog/«eventtype»", body: `{"description":"‹newname›","hidden":true}`}},
	"GET /console/api/v1/events/live":          {{target: "/console/api/v1/events/live"}},
	"GET /console/api/v1/events/recent":        {{target: "/console/api/v1/events/recent?last_seconds=3600&event_type=bought&limit=2"}},
	"GET /console/api/v1/export/profiles":      {{target: "/console/api/v1/export/profiles"}},
	"GET /console/api/v1/export/segments/{id}": {{target: "/console/api/v1/export/segments/«segment»"}},
	"GET /console/api/v1/export/events":        {{target: "/console/api/v1/export/events?event_type=«eventtype»", control: "the history of these tests replays nothing"}},

	// Imports.
	"GET /console/api/v1/imports":              {{target: "/console/api/v1/imports?limit=1"}},
	"POST /console/api/v1/imports":             {{target: "/console/api/v1/imports", body: `{"name":"‹newname›","kind":"people","text":"email\na@b.example\n","more":false}`}},
	"GET /console/api/v1/imports/{id}":         {{target: "/console/api/v1/imports/«import»"}},
	"DELETE /console/api/v1/imports/{id}":      {{target: "/console/api/v1/imports/«import»"}},
	"POST /console/api/v1/imports/{id}/parts":  {{target: "/console/api/v1/imports/«import»/parts", body: `{"offset":0,"text":"a","more":true}`}},
	"POST /console/api/v1/imports/{id}/cancel": {{target: "/console/api/v1/imports/«import»/cancel"}},
	"GET /console/api/v1/imports/{id}/refused": {{target: "/console/api/v1/imports/«import»/refused"}},
	"POST /console/api/v1/imports/{id}/preview": {
		{target: "/console/api/v1/imports/«import»/preview", body: `{"columns":[{"name":"email","field":"email","type":"text"}],"event_type":"","trigger_flows":false}`},
	},
	"POST /console/api/v1/imports/{id}/start": {{target: "/console/api/v1/imports/«import»/start", body: `{"list_id":"‹list›"}`}},

	// Contents.
	"GET /console/api/v1/profiles/{id}/orders": {{target: "/console/api/v1/profiles/«profile»/orders?limit=1"}},
	"GET /console/api/v1/orders":               {{target: "/console/api/v1/orders?order_id=A-1"}},
	"GET /console/api/v1/revenue":              {{target: "/console/api/v1/revenue?from=2020-01-01&to=2100-01-01&campaign_id=«campaign»&flow_id=«flow»", control: "a filter of what there is"}},
	"GET /console/api/v1/ready-flows":          {{target: "/console/api/v1/ready-flows"}},
	"GET /console/api/v1/forms":                {{target: "/console/api/v1/forms?limit=1&cursor=«cursor:/forms»"}},
	"POST /console/api/v1/forms":               {{target: "/console/api/v1/forms", body: formBody}},
	"GET /console/api/v1/forms/{id}":           {{target: "/console/api/v1/forms/«form»"}},
	"PATCH /console/api/v1/forms/{id}":         {{target: "/console/api/v1/forms/«form»", body: formBody}},
	"DELETE /console/api/v1/forms/{id}":        {{target: "/console/api/v1/forms/«form»"}},
	"GET /console/api/v1/forms/{id}/stats":     {{target: "/console/api/v1/forms/«form»/stats?from=2020-01-01&to=2100-01-01"}},
	"GET /console/api/v1/lists":                {{target: "/console/api/v1/lists?limit=1&cursor=«cursor:/lists»"}},
	"POST /console/api/v1/lists":               {{target: "/console/api/v1/lists", body: `{"name":"‹newname›","description":"d"}`}},
	"GET /console/api/v1/lists/{id}":           {{target: "/console/api/v1/lists/«list»"}},
	"PUT /console/api/v1/lists/{id}":           {{target: "/console/api/v1/lists/«list»", body: `{"name":"‹newname›","description":"d","public":true,"public_name":"x","public_description":"d"}`}},
	"DELETE /console/api/v1/lists/{id}":        {{target: "/console/api/v1/lists/«list»"}},
	"GET /console/api/v1/lists/{id}/members":   {{target: "/console/api/v1/lists/«list»/members?limit=2"}},
	"DELETE /console/api/v1/lists/{id}/members/{profile}": {
		{target: "/console/api/v1/lists/«list»/members/«member»"}, {target: "/console/api/v1/lists/‹list›/members/«member»"},
	},
	"GET /console/api/v1/templates":      {{target: "/console/api/v1/templates?limit=1&cursor=«cursor:/templates»"}},
	"POST /console/api/v1/templates":     {{target: "/console/api/v1/templates", body: `{"name":"‹newname›","source":"DRAFT","subject":"S","html":"<p>{{first_name | default: \"you\"}}</p>","text":"t"}`}},
	"GET /console/api/v1/templates/{id}": {{target: "/console/api/v1/templates/«template»"}},
	"PUT /console/api/v1/templates/{id}": {{target: "/console/api/v1/templates/«template»", body: `{"name":"‹newname›","source":"LIST","subject":"S","html":"<p>x</p>"}`}},
	"POST /console/api/v1/templates/{id}/render": {
		{target: "/console/api/v1/templates/«template»/render", body: `{"email":"‹email›","data":{"order":"7"}}`}, {target: "/console/api/v1/templates/‹template›/render", body: `{"profile_id":"«profile»"}`},
		{target: "/console/api/v1/templates/‹template›/render", body: `{"email":"«email»"}`},
	},
	"DELETE /console/api/v1/templates/{id}": {{target: "/console/api/v1/templates/«template»"}},
	"GET /console/api/v1/sender-domains":    {{target: "/console/api/v1/sender-domains"}},
	"POST /console/api/v1/sender-domains": {
		{target: "/console/api/v1/sender-domains", body: `{"domain":"‹newdomain›"}`},
		{target: "/console/api/v1/sender-domains", body: `{"domain":"«domain»"}`, loose: "every domain has a key of its own"},
	},
	"GET /console/api/v1/sender-domains/{id}":         {{target: "/console/api/v1/sender-domains/«domain»"}},
	"POST /console/api/v1/sender-domains/{id}/verify": {{target: "/console/api/v1/sender-domains/«domain»/verify", body: `{"force":false}`}},
	"DELETE /console/api/v1/sender-domains/{id}":      {{target: "/console/api/v1/sender-domains/«domain»"}},
	"GET /console/api/v1/campaigns":                   {{target: "/console/api/v1/campaigns?limit=1&cursor=«cursor:/campaigns»"}},
	"GET /console/api/v1/campaigns/{id}":              {{target: "/console/api/v1/campaigns/«campaign»"}},
	"GET /console/api/v1/campaigns/{id}/stats":        {{target: "/console/api/v1/campaigns/«sent»/stats"}},
	"GET /console/api/v1/credits":                     {{target: "/console/api/v1/credits"}},
	"GET /console/api/v1/outbox":                      {{target: "/console/api/v1/outbox?channel=email&to=«email»&limit=2", control: "nothing was sent there"}},

	// Flows.
	"GET /console/api/v1/flows": {{target: "/console/api/v1/flows?limit=1&cursor=«cursor:/flows»"}},
	"POST /console/api/v1/flows": {
		{target: "/console/api/v1/flows", body: `{"name":"‹newname›","trigger":{"type":"list_joined","list_id":"«list»"},"reentry":"once","steps":` + steps + `}`, loose: "what a draft refers to is looked up when it is published"},
		{target: "/console/api/v1/flows", body: `{"name":"‹newname›","trigger":{"type":"segment_exited","segment_id":"«segment»"},"steps":[{"id":"a","type":"email","template_id":"«template»"}]}`, loose: "what a draft refers to is looked up when it is published"},
	},
	"GET /console/api/v1/flows/{id}":            {{target: "/console/api/v1/flows/«flow»"}},
	"PUT /console/api/v1/flows/{id}":            {{target: "/console/api/v1/flows/«flow»", body: `{"name":"‹newname›","trigger":{"type":"event","event":"bought"},"steps":` + steps + `}`}},
	"PATCH /console/api/v1/flows/{id}":          {{target: "/console/api/v1/flows/«live»", body: `{"status":"paused"}`}},
	"DELETE /console/api/v1/flows/{id}":         {{target: "/console/api/v1/flows/«flow»"}},
	"POST /console/api/v1/flows/{id}/dry-run":   {{target: "/console/api/v1/flows/«live»/dry-run", body: `{"profile_id":"«enrolled»"}`}},
	"GET /console/api/v1/flows/{id}/validate":   {{target: "/console/api/v1/flows/«flow»/validate"}},
	"POST /console/api/v1/flows/{id}/publish":   {{target: "/console/api/v1/flows/«flow»/publish"}},
	"POST /console/api/v1/flows/{id}/pause":     {{target: "/console/api/v1/flows/«live»/pause"}},
	"POST /console/api/v1/flows/{id}/resume":    {{target: "/console/api/v1/flows/«live»/resume"}},
	"PATCH /console/api/v1/flows/{id}/toggle":   {{target: "/console/api/v1/flows/«live»/toggle"}},
	"POST /console/api/v1/flows/{id}/duplicate": {{target: "/console/api/v1/flows/«flow»/duplicate"}},
	"POST /console/api/v1/flows/{id}/trigger":   {{target: "/console/api/v1/flows/«live»/trigger", body: `{"phone":"‹newphone›","data":{"a":{"b":[1]}}}`}},
	"GET /console/api/v1/flows/{id}/enrolments": {{target: "/console/api/v1/flows/«live»/enrolments?limit=2"}},
	"GET /console/api/v1/flows/{id}/enrolments/{profile}": {
		{target: "/console/api/v1/flows/«live»/enrolments/«enrolled»"}, {target: "/console/api/v1/flows/‹live›/enrolments/«enrolled»"},
	},

	// Settings.
	"POST /console/api/v1/app-secret":         {{target: "/console/api/v1/app-secret"}},
	"GET /console/api/v1/in-app/settings":     {{target: "/console/api/v1/in-app/settings"}},
	"PUT /console/api/v1/in-app/settings":     {{target: "/console/api/v1/in-app/settings", body: `{"allowed_origins":["https://shop.example"]}`}},
	"POST /console/api/v1/in-app/secret":      {{target: "/console/api/v1/in-app/secret", body: `{"overlap_hours":2}`}},
	"GET /console/api/v1/profiles/{id}/inbox": {{target: "/console/api/v1/profiles/«profile»/inbox"}},
	"GET /console/api/v1/settings":            {{target: "/console/api/v1/settings"}},
	"PUT /console/api/v1/settings": {
		{target: "/console/api/v1/settings", body: `{"placeholders":["null","guest"],"identifier_cap":50,"idempotency_hours":72,"double_opt_in":false,"require_opt_in":false,"confirm_template_id":"«template»","surface_c_per_minute":600,"preference_page":{"title":"T","text":"t"},"sending_limits":{"timezone":"Asia/Tokyo","quiet_hours":{"from":"22:00","to":"08:00","channels":["in_app"],"then":"wait"},"frequency_caps":[{"channel":"in_app","messages":3,"hours":24}]}}`},
	},
	"GET /console/api/v1/push-credentials":          {{target: "/console/api/v1/push-credentials"}},
	"PUT /console/api/v1/push-credentials/{id}":     {{target: "/console/api/v1/push-credentials/webpush", body: `{"generate":true,"subject":"mailto:a@b.example"}`}, {target: "/console/api/v1/push-credentials/fcm", body: `{"type":"service_account","project_id":"p","client_email":"a@b.example","private_key":"k","token_uri":"https://oauth2.googleapis.com/token"}`}},
	"DELETE /console/api/v1/push-credentials/{id}":  {{target: "/console/api/v1/push-credentials/webpush"}},
	"GET /console/api/v1/message-providers":         {{target: "/console/api/v1/message-providers"}},
	"PUT /console/api/v1/message-providers/{id}":    {{target: "/console/api/v1/message-providers/sms", body: `{"preset":"twilio","account_sid":"AC` + strings.Repeat("0", 32) + `","auth_token":"x","from":"+4930123456"}`}},
	"DELETE /console/api/v1/message-providers/{id}": {{target: "/console/api/v1/message-providers/sms"}},
	"GET /console/api/v1/inbound-providers":         {{target: "/console/api/v1/inbound-providers"}},
	"PUT /console/api/v1/inbound-providers/{id}":    {{target: "/console/api/v1/inbound-providers/ses", body: `{"topics":["arn:aws:sns:eu-west-1:1:t"]}`}, {target: "/console/api/v1/inbound-providers/postmark", body: `{"generate":true}`}},
	"DELETE /console/api/v1/inbound-providers/{id}": {{target: "/console/api/v1/inbound-providers/ses"}},
	"GET /console/api/v1/sources":                   {{target: "/console/api/v1/sources?limit=2"}},
	"POST /console/api/v1/sources": {
		{target: "/console/api/v1/sources", body: `{"name":"‹newname›","kind":"browser","enabled":true,"allowed_origins":["https://shop.example","https://*.shop.example"],"user_id":"email","keep_context":true}`},
		{target: "/console/api/v1/sources", body: `{"name":"‹newname›","kind":"server"}`},
	},
	"GET /console/api/v1/sources/{id}":       {{target: "/console/api/v1/sources/«source»"}},
	"PATCH /console/api/v1/sources/{id}":     {{target: "/console/api/v1/sources/«source»", body: `{"name":"‹newname›","enabled":false,"allowed_origins":["*"],"user_id":"external_id","keep_context":false}`}},
	"DELETE /console/api/v1/sources/{id}":    {{target: "/console/api/v1/sources/«source»"}},
	"POST /console/api/v1/sources/{id}/keys": {{target: "/console/api/v1/sources/«source»/keys"}},
	"DELETE /console/api/v1/sources/{id}/keys/{key}": {
		{target: "/console/api/v1/sources/«source»/keys/«writekey»"}, {target: "/console/api/v1/sources/‹othersource›/keys/«writekey»", control: "it is of another source"},
	},
	"GET /console/api/v1/webhooks":                            {{target: "/console/api/v1/webhooks"}},
	"POST /console/api/v1/webhooks":                           {{target: "/console/api/v1/webhooks", body: `{"url":"https://hooks.example/x","events":["contact.updated"],"description":"d","status":"active"}`}},
	"GET /console/api/v1/webhooks/events":                     {{target: "/console/api/v1/webhooks/events"}},
	"GET /console/api/v1/webhooks/{id}":                       {{target: "/console/api/v1/webhooks/«webhook»"}},
	"PATCH /console/api/v1/webhooks/{id}":                     {{target: "/console/api/v1/webhooks/«webhook»", body: `{"description":"e","events":["contact.updated"]}`}},
	"DELETE /console/api/v1/webhooks/{id}":                    {{target: "/console/api/v1/webhooks/«webhook»"}},
	"POST /console/api/v1/webhooks/{id}/rotate":               {{target: "/console/api/v1/webhooks/«webhook»/rotate"}},
	"POST /console/api/v1/webhooks/{id}/test":                 {{target: "/console/api/v1/webhooks/«webhook»/test"}},
	"GET /console/api/v1/webhooks/{id}/dead-letters":          {{target: "/console/api/v1/webhooks/«webhook»/dead-letters?limit=1"}},
	"POST /console/api/v1/webhooks/{id}/dead-letters/replay":  {{target: "/console/api/v1/webhooks/«webhook»/dead-letters/replay"}},
	"GET /console/api/v1/webhooks/{id}/deliveries":            {{target: "/console/api/v1/webhooks/«webhook»/deliveries?limit=1"}},
	"GET /console/api/v1/webhooks/{id}/deliveries/{delivery}": {{target: "/console/api/v1/webhooks/«webhook»/deliveries/«delivery»"}},
	"POST /console/api/v1/webhooks/{id}/deliveries/{delivery}/redeliver": {
		{target: "/console/api/v1/webhooks/«webhook»/deliveries/«delivery»/redeliver"}, {target: "/console/api/v1/webhooks/‹otherhook›/deliveries/«delivery»/redeliver", control: "it is of another webhook"},
	},
	"GET /console/api/v1/audit":                       {{target: "/console/api/v1/audit?limit=2"}},
	"GET /console/api/v1/segments/{id}/versions":      {{target: "/console/api/v1/segments/«segment»/versions?limit=2"}},
	"GET /console/api/v1/segments/{id}/growth":        {{target: "/console/api/v1/segments/«segment»/growth?" + wide}},
	"GET /console/api/v1/segments/{id}/overlap":       {{target: "/console/api/v1/segments/«segment»/overlap?with=‹segment›"}, {target: "/console/api/v1/segments/‹segment›/overlap?with=«segment»"}},
	"GET /console/api/v1/flows/{id}/versions":         {{target: "/console/api/v1/flows/«flow»/versions?limit=2"}},
	"GET /console/api/v1/flows/{id}/used-in":          {{target: "/console/api/v1/flows/«flow»/used-in"}},
	"GET /console/api/v1/campaigns/{id}/used-in":      {{target: "/console/api/v1/campaigns/«campaign»/used-in"}},
	"GET /console/api/v1/templates/{id}/versions":     {{target: "/console/api/v1/templates/«template»/versions?limit=2"}},
	"GET /console/api/v1/settings/versions":           {{target: "/console/api/v1/settings/versions?limit=2"}},
	"GET /console/api/v1/profiles/{id}/timeline":      {{target: "/console/api/v1/profiles/«profile»/timeline?limit=3&kinds=event,step"}},
	"GET /console/api/v1/segments/{id}/used-in":       {{target: "/console/api/v1/segments/«segment»/used-in"}},
	"GET /console/api/v1/lists/{id}/used-in":          {{target: "/console/api/v1/lists/«list»/used-in"}},
	"GET /console/api/v1/templates/{id}/used-in":      {{target: "/console/api/v1/templates/«template»/used-in"}},
	"GET /console/api/v1/sender-domains/{id}/used-in": {{target: "/console/api/v1/sender-domains/«domain»/used-in"}},
	"POST /console/api/v1/webhooks/{id}/dead-letters/{seq}/replay": {
		{target: "/console/api/v1/webhooks/«webhook»/dead-letters/«seq»/replay"}, {target: "/console/api/v1/webhooks/‹otherhook›/dead-letters/«seq»/replay", control: "it is of another webhook"},
	},

	// What the public and providers call.
	"POST /inbound/{account}/{provider}": {
		{target: "/inbound/«accountid»/generic", secret: "‹inboundsecret›", body: `{"type":"delivery","recipient":"nobody@mail.example","id":"‹newkey›"}`},
		{target: "/inbound/‹accountid›/generic", secret: "‹inboundsecret›", body: `[{"type":"bounce","hard":true,"send_id":"«sendid»","id":"‹newkey›"}]`},
		{target: "/inbound/‹accountid›/generic", secret: "‹inboundsecret›", body: `{"type":"complaint","message_id":"<«messageid»>","id":"‹newkey›"}`},
		{target: "/inbound/‹accountid›/generic", secret: "‹inboundsecret›", body: `{"type":"unsubscribe","recipient":"«email»","id":"‹newkey›","timestamp":"2025-03-01T00:00:00Z"}`},
	},
	"GET /inbound/{account}/{provider}": {
		{target: "/inbound/«accountid»/whatsapp?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=‹verifytoken›"},
		{target: "/inbound/‹accountid›/whatsapp?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=«verifytoken»"},
	},
	"POST /inbound/{account}/mail/{token}": {
		{target: "/inbound/«accountid»/mail/‹mailtoken›", body: "Subject: lunch?\r\n\r\nAt noon?\r\n"},
		{target: "/inbound/‹accountid›/mail/«mailtoken»", body: "Subject: lunch?\r\n\r\nAt noon?\r\n"},
		{target: "/inbound/‹accountid›/mail/‹mailtoken›", body: "To: unsubscribe+«sendid»@in.example\r\nFrom: a@b.example\r\nSubject: unsubscribe\r\n\r\nplease\r\n"},
	},
	"GET /in-app/inbox":                 {{target: "/in-app/inbox?limit=1&cursor=0.0.x", headers: forgedPerson}},
	"GET /in-app/stream":                {{target: "/in-app/stream", headers: forgedPerson}},
	"GET /in-app/muster-inapp.js":       {{target: "/in-app/muster-inapp.js"}},
	"POST /in-app/inbox/{id}/seen":      {{target: "/in-app/inbox/x/seen", headers: forgedPerson}},
	"POST /in-app/inbox/{id}/clicked":   {{target: "/in-app/inbox/x/clicked", headers: forgedPerson}},
	"POST /in-app/inbox/{id}/dismissed": {{target: "/in-app/inbox/x/dismissed", headers: forgedPerson}},
	"GET /forms/{id}": {
		{target: "/forms/‹form›"},
	},
	"POST /forms/{id}": {
		{target: "/forms/‹form›", form: true, body: "email=‹newemail›&phone=%2B4930123456&first_name=Ada&last_name=L&consent=1&consent_version=x&form_token=x&website="},
	},
	"GET /preferences/{token}": {
		{target: "/preferences/«forgedpage»"},
	},
	"POST /preferences/{token}": {
		{target: "/preferences/«forgedpage»", form: true, body: "action=everything"},
		{target: "/preferences/«forgedpage»", form: true, body: "action=save&page=p&was=channel:email&shown=channel:email&shown=topic:‹list›&chosen=topic:‹list›"},
	},
	"GET /t/{token}": {
		{target: "/t/«forged»"},
	},
	"POST /t/{token}": {
		{target: "/t/«forged»", form: true, body: "List-Unsubscribe=One-Click"},
	},
}

// formBody is what a form is made or changed with.
const formBody = `{"name":"‹newname›","title":"T","text":"t","button":"b","fields":[{"name":"email","label":"E-mail","required":true},{"name":"attributes.size","label":"Size","type":"choice","options":["S"]}],"list_ids":["«list»"],"consent":{"text":"Yes","channels":["email"],"required":true},"double_opt_in":true,"message":"m","redirect_url":"https://shop.example/","published":true,"allowed_origins":["https://shop.example"]}`
