package openapitest

import (
	"fmt"
	"slices"
	"strings"
)

// Story is the whole story, run against a service that has one company with its
// first credentials and captures what it sends. $hook is an address on this
// machine that refuses webhooks for good.
func Story() []Step {
	return slices.Concat(access(), settings(), events(), lists(), contacts(), templates(), segments(), profiles(), devices(),
		campaigns(), flows(), links(), inApp(), signup(), revenue(), messages(), analytics(), sources(), calls(), webhooks(), credentials(), reports(), exports(), imports(), keys(), people(), companies(), endings(), operations())
}

const (
	c = "/console/api/v1"
	a = "/api/v1"
)

func access() []Step {
	return []Step{
		{Request: "POST " + c + "/session", Body: `{"email":"$email","password":"$password","account_id":"$account","cookie":true}`},
		{Request: "POST " + c + "/session", Body: `{"email":"$email","password":"wrong"}`, Fails: true},
		{Request: "POST " + c + "/session", Body: `{"email":"$email","password":"$password"}`, Keep: "session=data.token device=data.device_token"},
		{Request: "POST " + c + "/session", Body: `{"email":"$email","password":"$password","device_token":"$device"}`},
		{Request: "POST " + c + "/session/link", Body: `{"token":"$signin","cookie":false}`},
		{Request: "POST " + c + "/session/link", Body: `{"token":"$signin","cookie":true}`, Fails: true},
		{Request: "GET " + c + "/session"},
		{Request: "PUT " + c + "/password", Body: `{"current_password":"$password","password":"another good password"}`},
		{Request: "PUT " + c + "/password", Body: `{"current_password":"wrong","password":"another good password"}`, Fails: true},
		{Request: "POST " + c + "/users", Body: `{"email":"ann@x.io","name":"Ann","password":"long enough password","permissions":["contacts:read"],"admin":false}`, Keep: "user=data._id"},
		{Request: "POST " + c + "/users", Body: `{"email":"ann@x.io","password":"long enough password","permissions":["contacts:fly"]}`, Fails: true},
		{Request: "GET " + c + "/users/$user"},
		{Request: "GET " + c + "/users?limit=1", Keep: "next=next"},
		{Request: "GET " + c + "/users?limit=1&cursor=$next"},
		{Request: "PATCH " + c + "/users/$user", Body: `{"email":"ann2@x.io","name":"Ann Lee","password":"another long password","permissions":["contacts:read","lists:read"],"admin":false}`},
		{Request: "DELETE " + c + "/users/$user"},
		{Request: "GET " + c + "/users/$user", Fails: true},
		{Request: "POST " + c + "/api-keys", Body: `{"name":"spare","permissions":["contacts:read"]}`, Keep: "spare=data._id"},
		{Request: "POST " + c + "/api-keys", Body: `{"name":"x","permissions":["users:read"]}`, Fails: true},
		{Request: "DELETE " + c + "/api-keys/$spare"},
		{Request: "GET " + c + "/api-keys"},
	}
}

func settings() []Step {
	return []Step{
		{Request: "GET " + c + "/settings"},
		{Request: "PUT " + c + "/settings", Body: `{"placeholders":["null","none"],"identifier_cap":60,"idempotency_hours":100,"double_opt_in":false,"require_opt_in":false,"surface_c_per_minute":700,"confirm_template_id":"","flow_event_age_hours":12,"max_event_age_hours":87840,"ignore_unknown_event_fields":false,"preference_page":{"title":"What do you want to hear about?","text":"We write seldom."},"revenue_attribution":{"click_hours":48,"open_hours":2},"sending_limits":{"timezone":"Europe/Berlin","quiet_hours":{"from":"03:00","to":"03:01","channels":["in_app"],"then":"skip"},"frequency_caps":[{"channel":"push","messages":100,"hours":1}]}}`},
		{Request: "PUT " + c + "/settings", Body: `{"placeholders":["null","none"],"identifier_cap":60,"idempotency_hours":100,"double_opt_in":false,"require_opt_in":false,"surface_c_per_minute":700,"sending_limits":{"timezone":"Berlin"}}`, Fails: true},
		{Request: "PUT " + c + "/settings", Body: `{"placeholders":[]}`, Fails: true},
		{Request: "GET " + c + "/settings/versions?limit=1"},
		{Request: "GET " + c + "/settings"},
		{Request: "POST " + c + "/app-secret", Keep: "secret=data.app_secret"},
	}
}

func events() []Step {
	ann := `{"event_type":"item_purchased","user":{"email":"ann@example.com","external_id":"42","phone":"+491701","first_name":"Ann","last_name":"Lee","geo":{"country":"DE"},"attributes":{"plan":"pro"}},
		"properties":{"value":79.9,"tags":["a"]},"idempotency_key":"k-1"}`
	return []Step{
		{Request: "POST " + a + "/events", Body: ann, Keep: "ann=profile_id"},
		{Request: "POST " + a + "/events", Body: `{"event_type":"item_viewed","user":{"email":"ann@example.com"},"timestamp":"2026-01-31T09:00:00Z"}`},
		{Request: "POST " + a + "/events", Body: `{"event_type":"Item Purchased","user":{"email":"ann@example.com"}}`, Fails: true},
		{Request: "POST " + a + "/events", Body: `{"event_type":"item_purchased"}`, Fails: true},
		{Request: "POST " + a + "/events", Body: ann, Headers: map[string]string{"X-App-Secret": "sk_live_wrong"}, Fails: true},
		{Request: "POST " + a + "/events/batch", Body: `{"events":[` + ann + `,{"event_type":"page_viewed","user":{"external_id":"43"}}]}`},
		{Request: "POST " + a + "/events/batch", Body: `{"events":[` + ann + `,{"event_type":"page_viewed","user":{}}]}`, Fails: true},
		{Request: "POST " + a + "/events/batch", Body: `{"events":[]}`, Headers: map[string]string{"X-App-Id": "app_0"}, Fails: true},
		{Request: "POST " + a + "/events/batch", Body: `{}`, Fails: true},
		{Request: "POST " + a + "/events/import", Body: `{"file":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","first_row":0,"trigger_flows":false,"events":[
			{"event_type":"signed_up","user":{"external_id":"44"},"timestamp":"2024-05-31T12:30:00Z"},{"event_type":"signed_up","user":{"external_id":"45"},"timestamp":1717158600000}]}`},
		{Request: "POST " + a + "/events/import", Body: `{"file":"x","first_row":0,"events":[]}`, Fails: true},
		{Request: "POST " + a + "/events/import", Body: `{}`, Headers: map[string]string{"X-App-Id": "app_0"}, Fails: true},
		{Request: "POST /v1/events", Body: `{"email":"bob@example.com","event":"item_viewed","properties":{"value":1},"idempotency_key":"k-2"}`},
		{Request: "POST /v1/events", Body: `{"email":"bob@example.com","event":"item_viewed","timestamp":"2026-01-31T09:00:00Z"}`},
		{Request: "POST /v1/events", Body: `{"email":"bob@example.com"}`, Fails: true},
		{Request: "POST " + c + "/catalog", Body: `{"name":"Item returned"}`},
		{Request: "POST " + c + "/catalog", Body: `{"name":""}`, Fails: true},
		{Request: "GET " + c + "/catalog"},
		{Request: "GET " + c + "/catalog/item_purchased"},
		{Request: "GET " + c + "/catalog/item_bought", Fails: true},
		{Request: "PATCH " + c + "/catalog/item_purchased", Body: `{"description":"Somebody bought something.","hidden":false}`},
		{Request: "PATCH " + c + "/catalog/item_bought", Body: `{"hidden":true}`, Fails: true},
		{Request: "GET " + c + "/attributes"},
		{Request: "GET " + c + "/events/live"},
		{Request: "GET " + c + "/events/recent?last_seconds=600"},
	}
}

func lists() []Step {
	return []Step{
		{Request: "POST " + a + "/lists", Body: `{"name":"News","description":"Monthly","public":true,"public_name":"News","public_description":"Once a month"}`, Keep: "list=data._id"},
		{Request: "POST " + a + "/lists", Body: `{"description":"x"}`, Fails: true},
		{Request: "POST " + c + "/lists", Body: `{"name":"Second","description":"Weekly","public":true,"public_name":"Tips","public_description":"Once a week"}`, Keep: "second=data._id"},
		{Request: "GET " + a + "/lists?limit=1", Keep: "next=next"},
		{Request: "GET " + a + "/lists?limit=1&cursor=$next"},
		{Request: "GET " + a + "/lists?limit=0", Fails: true},
		{Request: "GET " + a + "/lists/$list"},
		{Request: "GET " + a + "/lists/lst_none", Fails: true},
		{Request: "PATCH " + a + "/lists/$list", Body: `{"name":"Newsletter","description":"Monthly news","public":true,"public_name":"Newsletter","public_description":""}`},
		{Request: "PATCH " + a + "/lists/$list", Body: `{"public_name":""}`, Fails: true},
		{Request: "GET " + c + "/lists"},
		{Request: "GET " + c + "/lists/$second"},
		{Request: "PUT " + c + "/lists/$second", Body: `{"name":"Second list","description":"","public":false,"public_name":"Tips","public_description":""}`},
		{Request: "DELETE " + c + "/lists/lst_none", Fails: true},
		{Request: "POST " + a + "/lists/$list/contacts", Body: `{"email":"cy@example.com","first_name":"Cy","last_name":"Ode","phone":"+491702","external_id":"77"}`, Keep: "cy=data._id"},
		{Request: "POST " + a + "/lists/$list/contacts", Body: `{"first_name":"Cy"}`, Fails: true},
		{Request: "POST " + a + "/lists/$second/contacts", Body: `{"email":"cy@example.com"}`},
		{Request: "GET " + c + "/lists/$second/members?limit=1"},
		{Request: "GET " + c + "/lists/$second/used-in"},
		{Request: "DELETE " + a + "/lists/$list/contacts/$cy"},
		{Request: "DELETE " + c + "/lists/$second/members/$cy"},
	}
}

func contacts() []Step {
	return []Step{
		{Request: "POST " + a + "/contacts", Body: `{"email":"Dee@example.com","first_name":"Dee","last_name":"Fox","phone":"+491703","external_id":"99","list_id":"$list"}`, Keep: "dee=data._id"},
		{Request: "POST " + a + "/contacts", Body: `{"email":"dee@EXAMPLE.com"}`, Fails: true},
		{Request: "POST " + a + "/contacts"},
		{Request: "GET " + a + "/contacts?limit=2", Keep: "next=next"},
		{Request: "GET " + a + "/contacts?limit=2&cursor=$next"},
		{Request: "GET " + a + "/contacts?email=ann@example.com"},
		{Request: "GET " + a + "/contacts?external_id=42"},
		{Request: "GET " + a + "/contacts?phone=%2B491701"},
		{Request: "GET " + a + "/contacts?list_id=$list"},
		{Request: "GET " + a + "/contacts?list_id=lst_none", Fails: true},
		{Request: "GET " + a + "/contacts/$dee"},
		{Request: "GET " + a + "/contacts/prf_none", Fails: true},
		{Request: "PATCH " + a + "/contacts/$dee", Body: `{"email":"dee2@example.com","first_name":"Dee","last_name":"","phone":"+491704","external_id":"100","geo":{"city":"Bonn"},"attributes":{"seats":3},"subscribed":true,"consents":{"sms":{"status":"unsubscribed","source":"form"}}}`},
		{Request: "PATCH " + a + "/contacts/$dee", Body: `{"external_id":"42"}`, Fails: true},
		{Request: "GET " + a + "/contacts/$ann/export"},
	}
}

func templates() []Step {
	return []Step{
		{Request: "POST " + c + "/templates", Body: `{"name":"Order","source":"LIST","subject":"Your order {{order}}","html":"<p>Hello {{first_name | friend}} <a href=\"https://example.com/x\">look</a></p>","text":"Hello","transactional":false}`, Keep: "template=data._id"},
		{Request: "POST " + c + "/templates", Body: `{"name":"Order","source":"list"}`, Fails: true},
		{Request: "PUT " + c + "/templates/$template", Body: `{"name":"Order 2","source":"LIST","subject":"Your order","html":"<p>Hello {{first_name | friend}} <a href=\"https://example.com/x\">look</a></p>","text":"","transactional":true}`},
		{Request: "GET " + c + "/templates/$template"},
		{Request: "GET " + c + "/templates"},
		{Request: "GET " + c + "/templates/$template/used-in"},
		{Request: "GET " + c + "/templates/$template/versions?limit=1"},
		{Request: "POST " + c + "/sender-domains", Body: `{"domain":"mail.example.invalid"}`},
		{Request: "POST " + c + "/sender-domains", Body: `{"domain":"no domain"}`, Fails: true},
		{Request: "GET " + c + "/sender-domains"},
		{Request: "GET " + c + "/sender-domains/mail.example.invalid"},
		{Request: "GET " + c + "/sender-domains/mail.example.invalid/used-in"},
		{Request: "POST " + c + "/sender-domains/mail.example.invalid/verify", Body: `{"force":true}`},
		{Request: "DELETE " + c + "/sender-domains/mail.example.invalid"},
	}
}

// whole is a definition with all kinds of conditions.
const whole = `{"kind":"group","match":"any","conditions":[
	{"kind":"activity","event":"item_purchased","did":true,"window":{"last_days":30},"where":[{"property":"value","op":">","value":1},{"property":"tags","op":"exists"}],"count":{"op":"between","value":[1,9]}},
	{"kind":"activity","event":"item_purchased","did":false,"window":{"all_time":true},"aggregate":{"fn":"avg","property":"value","op":">=","value":100}},
	{"kind":"attribute","field":"geo.country","op":"in","value":["DE","AT"]},
	{"kind":"attribute","field":"status.email","op":"in","value":["Subscribed","Engaged"]},
	{"kind":"attribute","field":"suppressed.sms","op":"=","value":true},
	{"kind":"attribute","field":"engagement_score","op":"between","value":[20,100]},
	{"kind":"attribute","field":"last_event_at","op":"not_in_last_days","value":90},
	{"kind":"attribute","field":"event_count","op":">=","value":3},
	{"kind":"attribute","field":"push_devices","op":"exists"},
	{"kind":"consent","channel":"email","status":"pending"},
	{"kind":"consent","channel":"email","status":"subscribed","since":"2020-01-01","until":"2090-01-01"},
	{"kind":"list","list_id":"$list","member":true},
	{"kind":"segment","segment_id":"$buyers","member":false}]}`

func segments() []Step {
	return []Step{
		{Request: "POST " + c + "/segments", Body: `{"name":"Buyers","definition":{"kind":"activity","event":"item_purchased"}}`, Keep: "buyers=data._id"},
		{Request: "POST " + c + "/segments", Body: `{"name":"Whole","definition":` + whole + `}`, Keep: "whole=data._id"},
		{Request: "POST " + c + "/segments", Body: `{"name":"Bad","definition":{"kind":"activity"}}`, Fails: true},
		{Request: "POST " + c + "/segments/preview", Body: `{"definition":` + whole + `}`},
		{Request: "POST " + c + "/segments/preview", Body: `{"definition":{"match":"none"}}`, Fails: true},
		{Request: "GET " + c + "/segments/$buyers", Until: `"status":"live"`},
		{Request: "GET " + c + "/segments/$whole", Until: `"status":"live"`},
		{Request: "GET " + c + "/segments?limit=1", Keep: "next=next"},
		{Request: "GET " + c + "/segments?limit=1&cursor=$next"},
		{Request: "PUT " + c + "/segments/$buyers", Body: `{"name":"All buyers","definition":{"match":"all","conditions":[{"kind":"activity","event":"item_purchased"}]}}`},
		{Request: "GET " + c + "/segments/$buyers", Until: `"status":"live"`},
		{Request: "POST " + c + "/segments/preview", Body: `{"definition":` + whole + `,"segment_id":"$buyers","explain":true}`},
		{Request: "GET " + c + "/segments/$whole/members?limit=1", Keep: "next=data.next"},
		{Request: "GET " + c + "/segments/$whole/members?limit=1&cursor=$next"},
		{Request: "GET " + c + "/segments/$whole/explain?profile_id=$ann"},
		{Request: "GET " + c + "/segments/$whole/explain?profile_id=$dee"},
		{Request: "GET " + c + "/segments/$whole/explain", Fails: true},
		{Request: "POST " + c + "/segments/explain", Body: `{"definition": {"kind": "activity", "event": "item_purchased"}, "profile_id": "$ann"}`},
		{Request: "POST " + c + "/segments/explain", Body: `{"definition": {"kind": "activity", "event": "item_purchased"}}`, Fails: true},
		{Request: "GET " + c + "/segments/$whole/transitions?after=0-0"},
		{Request: "GET " + c + "/segments/$buyers/used-in"},
		{Request: "GET " + c + "/segments/$buyers/versions?limit=1"},
		{Request: "GET " + c + "/segments/$buyers/growth?granularity=hour"},
		{Request: "GET " + c + "/segments/$buyers/growth?granularity=year", Fails: true},
		{Request: "GET " + c + "/segments/$buyers/overlap?with=$whole"},
		{Request: "GET " + c + "/segments/$buyers/overlap", Fails: true},
		{Request: "GET " + c + "/audit?limit=1"},
		{Request: "GET " + c + "/segments/$whole/transitions?after=x", Fails: true},
		{Request: "DELETE " + c + "/segments/$buyers", Fails: true},
		{Request: "DELETE " + c + "/lists/$list", Fails: true},
		{Request: "DELETE " + a + "/lists/$list", Fails: true},
		{Request: "GET " + a + "/push/segments"},
		{Request: "GET " + a + "/push/segments?limit=x", Fails: true},
	}
}

func profiles() []Step {
	return []Step{
		{Request: "GET " + c + "/profiles?email=ann@example.com"},
		{Request: "GET " + c + "/profiles?external_id=42"},
		{Request: "GET " + c + "/profiles?phone=%2B491701"},
		{Request: "GET " + c + "/profiles?email=nobody@example.com", Fails: true},
		{Request: "GET " + c + "/profiles", Fails: true},
		{Request: "GET " + c + "/profiles/search?q=ann&sort=last_event&limit=1&status=Subscribed&channel=email"},
		{Request: "GET " + c + "/profiles/search?limit=1", Keep: "next=next"},
		{Request: "GET " + c + "/profiles/search?limit=1&cursor=$next"},
		{Request: "GET " + c + "/profiles/search?sort=match", Fails: true},
		{Request: "GET " + c + "/profiles/$ann"},
		{Request: "GET " + c + "/profiles/prf_none", Fails: true},
		{Request: "PATCH " + c + "/profiles/$ann", Body: `{"email":"ann@work.example","first_name":"Anne","last_name":"Lee","phone":"+491709","external_id":"421","geo":{"city":"Berlin"},"attributes":{"seats":null}}`},
		{Request: "GET " + c + "/profiles/$ann/events?limit=1", Keep: "next=data.next"},
		{Request: "GET " + c + "/profiles/$ann/events?limit=1&cursor=x", Fails: true},
		{Request: "GET " + c + "/profiles/$ann/timeline?limit=1", Keep: "next=next"},
		{Request: "GET " + c + "/profiles/$ann/timeline?limit=1&cursor=$next"},
		{Request: "GET " + c + "/profiles/$ann/timeline?kinds=none", Fails: true},
		{Request: "POST " + c + "/profiles/$ann/consent", Body: `{"channel":"email","status":"subscribed","source":"form"}`},
		{Request: "POST " + c + "/profiles/$ann/consent", Body: `{"channel":"post","status":"subscribed"}`, Fails: true},
		{Request: "POST " + c + "/profiles/$ann/suppression", Body: `{"channel":"sms","reason":"complained"}`},
		{Request: "POST " + c + "/profiles/$ann/suppression", Body: `{"channel":"sms","reason":"mood"}`, Fails: true},
		{Request: "GET " + a + "/contacts/$ann/export"},
		{Request: "DELETE " + c + "/profiles/$ann/suppression?channel=sms"},
	}
}

func devices() []Step {
	return []Step{
		{Request: "POST " + a + "/contacts/$dee/devices", Body: `{"device_id":"dees-phone","kind":"fcm","address":"a-registration-token-1"}`},
		{Request: "POST " + a + "/contacts/$dee/devices", Body: `{"kind":"pigeon","address":"x"}`, Fails: true},
		{Request: "GET " + a + "/contacts/$dee/devices"},
		{Request: "POST " + c + "/profiles/$ann/devices", Body: `{"device_id":"anns-phone","kind":"fcm","address":"a-registration-token-2"}`},
		{Request: "POST " + c + "/profiles/$ann/devices", Body: `{"kind":"fcm","address":"x"}`, Fails: true},
		{Request: "GET " + c + "/profiles/$ann/devices"},
		{Request: "POST " + a + "/push/send", Body: `{"title":"Hi","body":"there","segmentId":"$buyers","link":"https://example.com/","image":"https://example.com/a.jpg","collapse":"sale","ttlSeconds":3600,"dryRun":true}`},
		{Request: "POST " + a + "/push/send", Body: `{"title":"Hi"}`},
		{Request: "POST " + a + "/push/send", Body: `{"title":"Hi","segmentId":""}`, Fails: true},
		{Request: "DELETE " + a + "/contacts/$dee/devices/dees-phone"},
		{Request: "DELETE " + c + "/profiles/$ann/devices/anns-phone"},
	}
}

func campaigns() []Step {
	return append(otherChannels(a+"/campaign"), []Step{
		{Request: "POST " + a + "/campaign", Body: `{"name":"Sale","channel":2,"type":1,"date":"2026-01-31T09:00:00Z","subject":"Sale","body":"<p>Hello {{first_name}} <a href=\"https://example.com/sale\">look</a></p>",
			"sender":"news@muster.local","sender_name":"Example","reply_to":"help@example.com","link":"","template_id":"$template","list_id":["$list"],"segment_ids":["$buyers"]}`, Keep: "campaign=data._id"},
		{Request: "POST " + a + "/campaign", Body: `{"name":"Sale","channel":"email"}`, Fails: true},
		{Request: "PATCH " + a + "/campaign/$campaign", Body: `{"name":"Sale 2","channel":2,"type":1,"date":"2026-02-01","subject":"Sale!","body":"<p>Hi <a href=\"https://example.com/sale\">look</a></p>","sender":"news@muster.local",
			"sender_name":"Ex","reply_to":"","link":"","template_id":"","list_id":["$list"],"segment_ids":["$buyers"]}`},
		{Request: "POST " + a + "/campaign", Body: `{"name":"Test","channel":1,"subject":"T","body":"<p>Hi</p>"}`, Keep: "test=data._id"},
		{Request: "POST " + a + "/campaign", Body: `{"name":"Paced","channel":1,"date":"2090-01-31T09:00","local_time":true,"rate":{"messages":600,"per":"hour"},"ignore_sending_limits":true,"subject":"T","body":"<p>Hi</p>"}`, Keep: "paced=data._id"},
		{Request: "PATCH " + a + "/campaign/$paced", Body: `{"date":"2090-01-31T10:00","local_time":true,"rate":{"messages":60,"per":"minute"},"ignore_sending_limits":false}`},
		{Request: "PATCH " + a + "/campaign/$paced", Body: `{"rate":{"messages":0,"per":"day"}}`, Fails: true},
		{Request: "GET " + a + "/campaign?limit=1", Keep: "next=next"},
		{Request: "GET " + a + "/campaign?limit=1&cursor=$next"},
		{Request: "GET " + a + "/campaign/$campaign"},
		{Request: "GET " + a + "/campaign/$campaign/stats"},
		{Request: "GET " + c + "/campaigns/$campaign/stats"},
		{Request: "POST " + a + "/campaign/$campaign/test-send", Body: `{"to":["ann@example.com"],"profile_id":"$ann","subject":"Soon","body":"<p>Hi {{first_name}}</p>","sender":"news@muster.local","sender_name":"Ex","reply_to":"help@example.com","link":"","template_id":""}`},
		{Request: "POST " + a + "/campaign/$campaign/test-send", Body: `{"to":["ann@example.com"],"email":"ann@example.com","body":"<p>Hi</p>","subject":"Soon"}`},
		{Request: "POST " + a + "/campaign/$campaign/test-send", Body: `{"to":[]}`, Fails: true},
		{Request: "POST " + a + "/campaign/$campaign/send", Body: `{"all_contacts":true,"batch_size":0}`, Fails: true},
		{Request: "POST " + a + "/campaign/$campaign/send", Body: `{"list_id":["$list"],"segment_ids":["$buyers"],"template_source":"LIST","template_id":"$template","batch_size":10,"delay_between_batches":0.1}`},
		{Request: "GET " + a + "/campaign/$campaign/stats"},
		{Request: "GET " + c + "/campaigns/$campaign/stats"},
		{Request: "POST " + a + "/campaign/$test/ab-test/start", Body: `{"variants":[{"subject":"A","body":"<p>A</p>","sender_name":"A"},{"subject":"B"}],"test_percent":50,"metric":"clicks","wait_seconds":3600,
			"list_id":["$list"],"segment_ids":["$buyers"],"template_source":"LIST","template_id":"$template","batch_size":10,"delay_between_batches":0.5}`},
		{Request: "POST " + a + "/campaign", Body: `{"name":"All","channel":1,"subject":"All","body":"<p>Hi</p>"}`, Keep: "all=data._id"},
		{Request: "POST " + a + "/campaign/$all/send", Body: `{"all_contacts":true}`},
		{Request: "POST " + a + "/campaign", Body: `{"name":"All 2","channel":1,"subject":"All","body":"<p>Hi</p>"}`, Keep: "all=data._id"},
		{Request: "POST " + a + "/campaign/$all/ab-test/start", Body: `{"variants":[{"subject":"A"},{"subject":"B"}],"wait_seconds":0,"all_contacts":true}`},
		{Request: "POST " + a + "/campaign/$test/ab-test/start", Body: `{"variants":[],"all_contacts":true}`, Fails: true},
		{Request: "GET " + a + "/campaign/$test/stats"},
		{Request: "GET " + c + "/campaigns"},
		{Request: "GET " + c + "/campaigns/$campaign"},
		{Request: "GET " + c + "/credits"},
		{Request: "POST " + a + "/campaign", Body: `{"name":"Later","channel":1,"date":"2090-01-31T09:00:00Z","list_id":["$list"]}`, Keep: "later=data._id"},
		{Request: "DELETE " + a + "/campaign/$later/schedule"},
		{Request: "POST " + a + "/campaign/$later/audience"},
		{Request: "POST " + a + "/campaign/$later/audience", Body: `{"list_id":["$list"],"segment_ids":["$buyers"]}`},
		{Request: "POST " + a + "/campaign/$later/audience", Body: `{"all_contacts":true}`},
		{Request: "POST " + a + "/campaign/$later/audience", Body: `{"list_id":["lst_none"]}`, Fails: true},
		{Request: "POST " + a + "/campaign/$later/render", Body: `{"profile_id":"$ann","template_id":"$template"}`},
		{Request: "POST " + a + "/campaign/$later/render", Body: `{"email":"ann@example.com"}`},
		{Request: "POST " + a + "/campaign/$later/render", Body: `{"profile_id":"$ann","subject":"Hello","body":"<p>Hi {{first_name | default:\"you\"}}</p>","sender":"news@mail.example.invalid","sender_name":"Shop","reply_to":"help@example.com","link":"https://example.com"}`},
		{Request: "POST " + a + "/campaign/$later/render", Body: `{"email":"nobody@example.com"}`, Fails: true},
		{Request: "POST " + a + "/templates/$template/render", Body: `{"profile_id":"$ann","data":{"order":"7"}}`},
		{Request: "POST " + a + "/templates/$template/render", Body: `{"email":"ann@example.com"}`},
		{Request: "POST " + a + "/templates/$template/render", Body: `{"profile_id":"$ann","subject":"Hello","html":"<p>Hi</p>","text":"Hi"}`},
		{Request: "POST " + a + "/templates/$template/render", Body: `{}`, Fails: true},
		{Request: "DELETE " + a + "/campaign/cmp_none/schedule", Fails: true},
		{Request: "POST " + a + "/campaign", Body: `{"name":"Draft","channel":1}`, Keep: "draft=data._id"},
		{Request: "DELETE " + a + "/campaign/$draft"},
	}...)
}

// otherChannels are the calls of campaigns by WhatsApp, of push messages and of campaigns of
// several channels, below a path.
func otherChannels(path string) []Step {
	return []Step{
		{Request: "POST " + path, Body: `{"name":"Sale","channel":2,"type":3,"service":"whatsapp","date":"2026-01-31T09:00:00Z","whatsapp":{"template":"january_sale","language":"en_US","parameters":["{{first_name}}"],"header":"https://example.com/sale.jpg","named_parameters":{},"header_type":"image","header_name":"","header_filename":"","header_location":null,"buttons":[{"type":"quick_reply","index":0,"value":"more"}]}}`, Keep: "chat=data._id"},
		{Request: "PATCH " + path + "/$chat", Body: `{"service":"whatsapp","whatsapp":{"template":"january_sale","language":"en",` + templateOptions + `}}`},
		{Request: "POST " + path + "/$chat/render", Body: `{"email":"ann@example.com","whatsapp":{"template":"january_sale","language":"en",` + templateOptions + `}}`},
		{Request: "POST " + path + "/$chat/test-send", Body: `{"to":["+491701234567"],"via":"whatsapp","channels":[],"whatsapp":{"template":"january_sale","language":"en",` + templateOptions + `}}`},
		{Request: "PATCH " + path + "/$chat", Body: `{"whatsapp":{"template":"visit","language":"en_US","header_type":"location","header_location":{"latitude":"52.52","longitude":"13.405","name":"Shop","address":"Unter den Linden 1"},"buttons":[{"type":"copy_code","index":0,"value":"SALE25"}]}}`},
		{Request: "DELETE " + path + "/$chat"},
		{Request: "POST " + path, Body: `{"name":"Sale","channel":2,"type":4,"date":"2026-01-31T09:00:00Z","subject":"Sale","link":"myapp://sale","track_links":true,"push":{"image":"https://example.com/sale.jpg","collapse":"sale","ttl_seconds":86400}}`, Keep: "ring=data._id"},
		{Request: "PATCH " + path + "/$ring", Body: `{"track_links":false,"push":{"image":"","collapse":"sale","ttl_seconds":0}}`},
		{Request: "PATCH " + path + "/$ring", Body: `{"type":4,"service":"in_app","track_links":false,"push":{},"in_app":{"display":"banner","image":"https://example.com/sale.jpg","priority":3,"ttl_hours":48}}`},
		{Request: "DELETE " + path + "/$ring"},
		{Request: "POST " + path, Body: inAppCampaign, Keep: "inapp=data._id"},
		{Request: "DELETE " + path + "/$inapp"},
		{Request: "POST " + path, Body: `{"name":"Sale","channel":1,"subject":"Sale","body":"<p>Hi</p>",` + channels + `}`, Keep: "omni=data._id"},
		{Request: "PATCH " + path + "/$omni", Body: `{` + channels + `}`},
		{Request: "POST " + path + "/$omni/render", Body: `{"email":"ann@example.com","via":"sms",` + channels + `}`},
		{Request: "POST " + path + "/$omni/audience", Body: `{"all_contacts":true}`},
		{Request: "GET " + path + "/$omni/stats"},
		{Request: "POST " + path, Body: `{"name":"Sale","channel":1,"channels":[{"channel":"sms"},{"channel":"sms"}]}`, Fails: true},
		{Request: "DELETE " + path + "/$omni"},
	}
}

// templateOptions are all fields of a template of WhatsApp beside its name and language.
const templateOptions = `"parameters":[],"named_parameters":{"name":"{{first_name | you}}"},"header":"https://example.com/a.pdf","header_type":"document","header_name":"","header_filename":"a.pdf","header_location":{},"buttons":[{"type":"url","index":1,"value":"sale"}]`

// channels are those of a campaign of several channels, with all their fields.
const channels = `"channels":[{"channel":"push","subject":"Sale","body":"Now","link":"https://example.com","push":{"image":"https://example.com/a.jpg","collapse":"sale","ttl_seconds":60}},{"channel":"in_app","subject":"Sale","body":"Now","link":"https://example.com","in_app":{"display":"modal","image":"https://example.com/a.jpg","priority":3,"ttl_hours":48}},{"channel":"whatsapp","whatsapp":{"template":"sale","language":"en",` + templateOptions + `}},{"channel":"sms","body":"Now","sender":"Shop"},{"channel":"email"}]`

// links follows what the captured messages lead to.
func links() []Step {
	return []Step{
		{Request: "GET " + c + "/outbox?channel=email&to=ann@work.example&limit=1", Keep: "send=data.0.send_id message=data.0.id"},
		{Request: "GET " + c + "/outbox?channel=email&limit=1", Keep: "unsubscribe=data.0.headers.List-Unsubscribe"},
		{Request: "GET " + c + "/outbox?limit=0", Fails: true},
		{Request: "GET $unsubscribe"},
		{Request: "POST $unsubscribe", Body: "List-Unsubscribe=One-Click", Headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
		{Request: "GET " + c + "/profiles/$ann/preferences-link", Keep: "page=data.url"},
		{Request: "GET " + c + "/profiles/prf_none/preferences-link", Fails: true},
		{Request: "GET $page"},
		{Request: "POST $page", Body: "action=save&page=other&shown=topic%3A$list&was=topic%3A$list&chosen=topic%3A$list&shown=channel%3Asms&chosen=channel%3Asms", Headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, Fails: true},
		{Request: "POST $page", Body: "action=everything", Headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}},
		{Request: "POST $page", Body: "action=none", Headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, Fails: true},
		{Request: "GET " + c + "/profiles/$ann/consents"},
		{Request: "GET " + c + "/profiles/prf_none/consents", Fails: true},
		{Request: "GET /preferences/forged", Fails: true},
		{Request: "POST /preferences/forged", Fails: true},
		{Request: "GET /t/forged", Fails: true},
		{Request: "POST /t/forged", Fails: true},
		{Request: "GET " + a + "/campaign/$campaign/recipients/activity?limit=1"},
	}
}

// signupForm is a form with all its fields.
const signupForm = `{"name":"News","title":"News","text":"Once a month.","button":"Go","fields":[{"name":"email","label":"E-mail","type":"text","required":true},{"name":"phone","label":"Phone"},{"name":"first_name","label":"First name"},{"name":"last_name","label":"Last name"},{"name":"attributes.size","label":"Size","type":"choice","required":false,"options":["S","M"]}],"list_ids":["$list"],"consent":{"text":"Send me news.","channels":["email","sms"],"required":true},"double_opt_in":false,"message":"Thanks.","redirect_url":"","published":true,"allowed_origins":["https://shop.example"]}`

// signup makes forms, sends them, and reads what became of it.
func signup() []Step {
	posted := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	return []Step{
		{Request: "POST " + c + "/forms", Body: signupForm, Keep: "form=data._id says=data.version formurl=data.url"},
		{Request: "POST " + c + "/forms", Body: `{"name":"Bad","fields":[{"name":"age","label":"Age"}]}`, Fails: true},
		{Request: "GET " + c + "/forms/$form"},
		{Request: "GET " + c + "/forms/frm_none", Fails: true},
		{Request: "POST " + c + "/forms", Body: signupForm, Keep: "other=data._id"},
		{Request: "GET " + c + "/forms?limit=1", Keep: "next=next"},
		{Request: "GET " + c + "/forms?limit=1&cursor=$next"},
		{Request: "PATCH " + c + "/forms/$form?if_version=$says", Body: `{"name":"Newsletter","title":"Newsletter","text":"Monthly.","button":"Join","fields":[{"name":"email","label":"E-mail","type":"text","required":true},{"name":"phone","label":"Phone"},{"name":"first_name","label":"First name"},{"name":"last_name","label":"Last name"},{"name":"attributes.size","label":"Size","type":"choice","required":false,"options":["S","M"]}],"list_ids":["$list"],"consent":{"text":"","channels":[],"required":false},"double_opt_in":false,"message":"Thanks.","redirect_url":"https://shop.example/thanks","published":true,"allowed_origins":["*"]}`},
		{Request: "PATCH " + c + "/forms/$form?if_version=0000000000000000", Body: `{"title":"Mine"}`, Fails: true},
		{Request: "PATCH " + c + "/forms/frm_none", Body: `{"title":"Mine"}`, Fails: true},
		{Request: "GET $formurl"},
		{Request: "GET /forms/frm_none", Fails: true},
		{Request: "POST $formurl", Body: "email=fay%40example.com&phone=%2B4930123456&first_name=Fay&last_name=Lee&attributes.size=M&consent=1&consent_version=x&website=", Headers: posted},
		{Request: "POST $formurl", Body: "email=bot%40example.com&form_token=forged&website=spam", Headers: posted},
		{Request: "POST $formurl", Body: "email=none", Headers: posted, Fails: true},
		{Request: "POST /forms/frm_none", Body: "email=fay%40example.com", Headers: posted, Fails: true},
		{Request: "GET " + c + "/forms/$form/stats?from=2020-01-01&to=2100-01-01"},
		{Request: "GET " + c + "/forms/$form/stats?from=yesterday", Fails: true},
		{Request: "GET " + c + "/forms/frm_none/stats", Fails: true},
		{Request: "DELETE " + c + "/forms/$other"},
		{Request: "DELETE " + c + "/forms/frm_none", Fails: true},
	}
}

// revenue sends orders and carts, and reads what they came to.
func revenue() []Step {
	sends := func(typ, properties string) Step {
		return Step{Request: "POST " + a + "/events", Body: `{"event_type":"` + typ + `","user":{"email":"ann@example.com"},"properties":` + properties + `}`}
	}
	items := `[{"product_id":"sku-7","name":"Shoe","quantity":2,"price":29.95}]`
	var reads []Step
	for _, s := range []string{c, a} {
		reads = append(reads, []Step{
			{Request: "GET " + s + "/profiles/$ann/orders?limit=1", Keep: "next=data.next"},
			{Request: "GET " + s + "/profiles/$ann/orders?cursor=$next"},
			{Request: "GET " + s + "/profiles/prf_00000000000000000000000000000000/orders", Fails: true},
			{Request: "GET " + s + "/orders?order_id=A-1"},
			{Request: "GET " + s + "/orders?order_id=none", Fails: true},
			{Request: "GET " + s + "/orders", Fails: true},
			{Request: "GET " + s + "/revenue?from=2020-01-01&to=2100-01-01"},
			{Request: "GET " + s + "/revenue?campaign_id=cmp_none", Fails: true}, {Request: "GET " + s + "/revenue?flow_id=flw_none", Fails: true},
			{Request: "GET " + s + "/revenue?from=yesterday", Fails: true},
			{Request: "GET " + s + "/ready-flows"},
		}...)
	}
	return append([]Step{
		sends("order_placed", `{"order_id":"A-1","total":59.9,"currency":"EUR","items":`+items+`}`),
		sends("order_placed", `{"order_id":"A-1","total":59.9,"currency":"EUR"}`),
		sends("order_placed", `{"order_id":"A-2","total":10,"currency":"EUR"}`),
		sends("order_refunded", `{"order_id":"A-1","amount":9.9}`),
		sends("cart_updated", `{"cart_id":"c","total":59.9,"currency":"EUR","items":`+items+`}`),
	}, reads...)
}

func messages() []Step {
	return []Step{
		{Request: "POST /v1/email/send", Body: `{"to":"eve@example.com","template_id":"$template","data":{"order":"7"},"subject":"Order","sender":"shop@muster.local","sender_name":"Shop","idempotency_key":"o-7"}`},
		{Request: "POST /v1/email/send", Body: `{"to":"eve@example.com","template_id":"tpl_none"}`, Fails: true},
	}
}

func analytics() []Step {
	span := "?from=2024-01-01&to=2090-01-01&granularity=month"
	return []Step{
		{Request: "GET " + a + "/analytics/overview" + span},
		{Request: "GET " + a + "/analytics/overview?from=x", Fails: true},
		{Request: "GET " + a + "/analytics/performance" + span + "&campaign_id=$campaign"},
		{Request: "GET " + a + "/analytics/performance" + span + "&channel=sms"},
		{Request: "GET " + a + "/analytics/performance?granularity=minute", Fails: true},
		{Request: "GET " + a + "/analytics/flows/overview" + span},
		{Request: "GET " + a + "/analytics/flows/overview?from=x", Fails: true},
		{Request: "GET " + a + "/analytics/flows/$flow" + span},
		{Request: "GET " + a + "/analytics/flows/flw_none", Fails: true},
		{Request: "GET " + a + "/analytics/campaigns" + span + "&limit=1", Keep: "next=next"},
		{Request: "GET " + a + "/analytics/campaigns?cursor=$next"},
		{Request: "GET " + a + "/analytics/domains?from=2024-01-01&to=2090-01-01"},
		{Request: "GET " + a + "/analytics/domains?campaign_id=$campaign"},
		{Request: "GET " + a + "/analytics/domains?campaign_id=cmp_none", Fails: true},
		{Request: "GET " + a + "/analytics/events" + span},
		{Request: "GET " + a + "/analytics/events" + span + "&event_type=item_purchased"},
		{Request: "GET " + a + "/analytics/segments" + span},
		{Request: "GET " + a + "/analytics/contacts?granularity=week"},
	}
}

// calls are those of SDKs, with the key of a server's source.
func calls() []Step {
	const common = `"messageId":"$message","timestamp":"2025-05-31 12:30:00","sentAt":"2025-05-31T12:30:02.000Z","context":{"page":{"path":"/shop"}},"writeKey":"$write"`
	story := []Step{
		{Request: "POST /v1/track", Body: `{"userId":"sdk-1","anonymousId":"d-1","event":"Product Viewed","properties":{"sku":"sku-7"},` + common + `}`},
		{Request: "POST /v1/track", Body: `{"userId":"sdk-1"`, Fails: true},
		{Request: "POST /v1/identify", Body: `{"userId":"sdk-1","anonymousId":"d-1","traits":{"email":"sdk@example.com","plan":"pro"},` + common + `}`},
		{Request: "POST /v1/page", Body: `{"userId":"sdk-1","anonymousId":"d-1","name":"Pricing","category":"Docs","properties":{"sku":"sku-7"},` + common + `}`},
		{Request: "POST /v1/screen", Body: `{"userId":"sdk-1","anonymousId":"d-1","name":"Pricing","category":"Docs","properties":{"sku":"sku-7"},` + common + `}`},
		{Request: "POST /v1/group", Body: `{"userId":"sdk-1","anonymousId":"d-1","groupId":"acme","traits":{"size":7},` + common + `}`},
		{Request: "POST /v1/alias", Body: `{"userId":"sdk-1","previousId":"d-2",` + common + `}`},
		{Request: "POST /v1/merge", Body: `{"mergeProperties":[{"type":"email","value":"sdk@example.com"},{"type":"mobile","value":"+4930123999"}],` + common + `}`},
		{Request: "POST /v1/batch", Body: `{"batch":[{"type":"track","userId":"sdk-1","anonymousId":"d-1","event":"Product Viewed","name":"x","category":"y","properties":{"sku":"sku-7"},"traits":{"a":1},"groupId":"acme","previousId":"d-2",` +
			`"mergeProperties":[{"type":"email","value":"sdk@example.com"},{"type":"mobile","value":"+4930123999"}],` + common + `},{"type":"track","userId":"sdk-1"}],"context":{"library":{"name":"shop"}},"sentAt":"2025-05-31T12:30:02.000Z","writeKey":"$write"}`},
		{Request: "POST /batch/", Body: `{"api_key":"$write","sent_at":"2025-05-31T12:30:02.000Z","batch":[{"event":"item viewed","distinct_id":"sdk-1","uuid":"u-1","timestamp":"2025-05-31T12:30:00Z","properties":{"sku":"sku-7"}}]}`},
		{Request: "GET /v1/projects/$write/settings"},
	}
	for i := range story {
		story[i].Body = strings.ReplaceAll(story[i].Body, "$message", fmt.Sprint("m-", i))
	}
	return story
}

// sources are those of the tracking API: by people, then by a key.
func sources() []Step {
	return []Step{
		{Request: "POST " + c + "/sources", Body: `{"name":"Web","kind":"browser","enabled":true,"allowed_origins":["https://shop.example","https://*.shop.example"],"user_id":"external_id","keep_context":true}`, Keep: "source=data._id"},
		{Request: "POST " + c + "/sources", Body: `{"name":"Web","kind":"browser","allowed_origins":["shop.example"]}`, Fails: true},
		{Request: "GET " + c + "/sources/$source", Keep: "writekey=data.keys.0._id"},
		{Request: "GET " + c + "/sources?limit=1"},
		{Request: "PATCH " + c + "/sources/$source", Body: `{"name":"Shop","enabled":false,"allowed_origins":["*"],"user_id":"email","keep_context":false}`},
		{Request: "POST " + c + "/sources/$source/keys"},
		{Request: "DELETE " + c + "/sources/$source/keys/$writekey"},
		{Request: "DELETE " + c + "/sources/$source/keys/wky_none", Fails: true},
		{Request: "DELETE " + c + "/sources/$source"},
		{Request: "GET " + c + "/sources/$source", Fails: true},

		{Request: "POST " + a + "/sources", Body: `{"name":"App","kind":"browser","enabled":true,"allowed_origins":["https://shop.example"],"user_id":"email","keep_context":true}`, Keep: "source=data._id"},
		{Request: "POST " + a + "/sources", Body: `{"name":"Backend","kind":"server"}`, Keep: "write=data.write_key"},
		{Request: "POST " + a + "/sources", Body: `{"name":"Backend","kind":"app"}`, Fails: true},
		{Request: "GET " + a + "/sources/$source", Keep: "writekey=data.keys.0._id"},
		{Request: "GET " + a + "/sources"},
		{Request: "PATCH " + a + "/sources/$source", Body: `{"name":"Shop","enabled":true,"allowed_origins":["*"],"user_id":"external_id","keep_context":false}`},
		{Request: "POST " + a + "/sources/$source/keys"},
		{Request: "DELETE " + a + "/sources/$source/keys/$writekey"},
		{Request: "DELETE " + a + "/sources/$source"},
	}
}

func webhooks() []Step {
	return []Step{
		{Request: "POST " + c + "/webhooks", Body: `{"url":"$hook","events":["contact.*"],"description":"CRM","status":"active","ordered":true}`, Keep: "webhook=data._id"},
		{Request: "POST " + c + "/webhooks", Body: `{"url":"ftp://x","events":["*"]}`, Fails: true},
		{Request: "GET " + c + "/webhooks/events"},
		{Request: "POST " + c + "/webhooks/$webhook/test"},
		{Request: "GET " + c + "/webhooks/$webhook/dead-letters", Until: `"seq"`, Keep: "seq=data.0.seq"},
		{Request: "GET " + c + "/webhooks/$webhook"},
		{Request: "PATCH " + c + "/webhooks/$webhook", Body: `{"url":"$hook/2","events":["list.joined"],"description":"","status":"active","ordered":false}`},
		{Request: "GET " + c + "/webhooks/$webhook/deliveries?limit=1&status=failed", Until: `"_id"`, Keep: "delivery=data.0._id"},
		{Request: "GET " + c + "/webhooks/$webhook/deliveries/$delivery"},
		{Request: "POST " + c + "/webhooks/$webhook/dead-letters/$seq/replay"},
		{Request: "POST " + c + "/webhooks/$webhook/dead-letters/x/replay", Fails: true},
		// What was sent again is refused again, which may be at once.
		{Request: "GET " + c + "/webhooks/$webhook", Until: `"status":"gone"`},
		{Request: "PATCH " + c + "/webhooks/$webhook", Body: `{"status":"active"}`},
		{Request: "POST " + c + "/webhooks/$webhook/dead-letters/replay"},
		{Request: "GET " + c + "/webhooks/$webhook", Until: `"status":"gone"`},
		{Request: "PATCH " + c + "/webhooks/$webhook", Body: `{"status":"active"}`},
		{Request: "POST " + c + "/webhooks/$webhook/deliveries/$delivery/redeliver"},
		{Request: "POST " + c + "/webhooks/$webhook/rotate"},
		{Request: "GET " + c + "/webhooks"},
		{Request: "DELETE " + c + "/webhooks/$webhook"},
	}
}

func credentials() []Step {
	return []Step{
		{Request: "PUT " + c + "/push-credentials/webpush", Body: `{"generate":true,"subject":"mailto:push@example.com"}`, Keep: "public=data.details.public_key"},
		{Request: "PUT " + c + "/push-credentials/webpush", Body: `{"public_key":"$vapidpublic","private_key":"$vapidprivate","subject":"mailto:push@example.com"}`},
		{Request: "PUT " + c + "/push-credentials/fcm", Body: `{"type":"service_account","project_id":"demo-1","private_key_id":"k","private_key":$rsa,"client_email":"a@demo-1.example.com","token_uri":"https://oauth2.googleapis.com/token","base_url":"https://push.example.com"}`},
		{Request: "PUT " + c + "/push-credentials/apns", Body: `{"key_id":"ABC123DEFG","team_id":"DEF123GHIJ","private_key":$ec,"topic":"com.example.app","sandbox":true}`},
		{Request: "PUT " + c + "/push-credentials/apns", Body: `{"key_id":"x"}`, Fails: true},
		{Request: "GET " + c + "/push-credentials"},
		{Request: "DELETE " + c + "/push-credentials/fcm"},
		{Request: "PUT " + c + "/message-providers/sms", Body: `{"preset":"twilio","account_sid":"AC123","auth_token":"secret","from":"+15005550006","base_url":"https://sms.example.com"}`},
		{Request: "PUT " + c + "/message-providers/whatsapp", Body: `{"preset":"whatsapp_cloud","version":"v21.0","phone_number_id":"1062840","token":"secret","base_url":"https://graph.example.com"}`},
		{Request: "PUT " + c + "/message-providers/im", Body: `{"url":"https://im.example.com/send","method":"POST","token":"secret","headers":[{"name":"X-Key","value":"k"}],"format":"json","body":"{\"to\":\"{{to}}\",\"text\":\"{{body}}\"}",
			"from":"Example","any_address":true,"max_body":500,"id_path":"id","code_path":"code","error_path":"message","codes":{"7":"hard"}}`},
		{Request: "PUT " + c + "/message-providers/im", Body: `{"url":"https://im.example.com/send","username":"u","password":"p","format":"form","form":[{"name":"To","value":"{{to}}"}]}`},
		{Request: "PUT " + c + "/message-providers/im", Body: `{"url":"x"}`, Fails: true},
		{Request: "GET " + c + "/message-providers"},
		{Request: "DELETE " + c + "/message-providers/im"},
		{Request: "PUT " + c + "/inbound-providers/generic", Body: `{"generate":true}`, Keep: "generic=data.once.secrets.0"},
		{Request: "PUT " + c + "/inbound-providers/generic", Body: `{"secrets":["$generic"]}`},
		{Request: "PUT " + c + "/inbound-providers/mail", Body: `{"token":"a-long-enough-token"}`},
		{Request: "PUT " + c + "/inbound-providers/mailgun", Body: `{"signing_key":"key-0123456789"}`},
		{Request: "PUT " + c + "/inbound-providers/postmark", Body: `{"user":"postmark","password":"a-long-enough-password","secret":"a-long-enough-secret"}`},
		{Request: "PUT " + c + "/inbound-providers/sendgrid", Body: `{"public_key":"$sendgrid"}`},
		{Request: "PUT " + c + "/inbound-providers/twilio", Body: `{"auth_token":"0f1e2d3c4b5a69788796a5b4c3d2e1f0","stop_reply":"Bye","start_reply":"Welcome back","help_reply":"Shop Ltd"}`},
		{Request: "PUT " + c + "/inbound-providers/whatsapp", Body: `{"app_secret":"5ebe2294ecd0e0f08eab7690d2a6ee69","verify_token":"a-long-enough-token","phone_number_id":"1062840"}`},
		{Request: "PUT " + c + "/inbound-providers/ses", Body: `{"topics":["arn:aws:sns:eu-west-1:123456789012:t"]}`},
		{Request: "PUT " + c + "/inbound-providers/ses", Body: `{}`, Fails: true},
		{Request: "GET " + c + "/inbound-providers"},
		{Request: "DELETE " + c + "/inbound-providers/ses"},
	}
}

func reports() []Step {
	mail := map[string]string{"Content-Type": "message/rfc822"}
	return []Step{
		{Request: "POST /inbound/$account/generic", Sign: "generic", Body: `[{"type":"bounce","hard":true,"send_id":"$send","status":"5.1.1","reason":"no such user","id":"1"},
			{"type":"delivery","message_id":"<$message>","timestamp":"2026-01-31T09:00:00Z","id":"2"},
			{"type":"click","recipient":"ann@example.com","url":"https://example.com/sale","user_agent":"Mozilla/5.0","ip":"192.0.2.7","machine":false,"timestamp":1769850000000,"id":"3"}]`},
		{Request: "POST /inbound/$account/generic", Body: `{"type":"bounce","recipient":"ann@example.com"}`, Fails: true},
		{Request: "POST /inbound/$account/mail/a-long-enough-token", Body: "From: a@example.com\r\nTo: b@example.com\r\nSubject: hello\r\n\r\nNo report.\r\n", Headers: mail},
		{Request: "POST /inbound/$account/generic", Sign: "generic", Body: `[{"type":"reply","channel":"sms","from":"+491701234567","to":"+4930123456","text":"HELP","id":"4"},
			{"type":"failure","hard":false,"send_id":"$send","reason":"no network","id":"5"}]`},
		{Request: "GET /inbound/$account/whatsapp?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=a-long-enough-token"},
		{Request: "GET /inbound/$account/whatsapp?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=wrong", Fails: true},
		{Request: "POST /inbound/$account/mail/wrong", Body: "x", Headers: mail, Fails: true},
	}
}

func exports() []Step {
	return []Step{
		{Request: "GET " + c + "/export/profiles"},
		{Request: "GET " + c + "/export/consents"},
		{Request: "GET " + c + "/export/segments/$buyers"},
		{Request: "GET " + c + "/export/segments/seg_none", Fails: true},
		{Request: "GET " + c + "/export/events?event_type=item_purchased"},
	}
}

func companies() []Step {
	return []Step{
		{Request: "POST " + c + "/companies", Body: `{"name":"Second","email":"second@example.com","email_credits":500}`, Keep: "company=data._id"},
		{Request: "POST " + c + "/companies", Body: `{"name":""}`, Fails: true},
		{Request: "GET " + c + "/companies?limit=1", Keep: "next=next"},
		{Request: "GET " + c + "/companies?limit=1&cursor=$next"},
		{Request: "GET " + c + "/companies/$company"},
		{Request: "PATCH " + c + "/companies/$company", Body: `{"name":"Second Ltd","api_access":true,"active":true,"surface_c_per_minute":800}`},
		{Request: "POST " + c + "/companies/$company/credits", Body: `{"amount":23}`},
		{Request: "POST " + c + "/companies/$company/credits", Body: `{"amount":0}`, Fails: true},
	}
}

// endings deletes what the story has made.
func endings() []Step {
	return []Step{
		{Request: "DELETE " + a + "/contacts/$dee"},
		{Request: "DELETE " + a + "/contacts/$dee", Fails: true},
		{Request: "DELETE " + c + "/profiles/$cy"},
		{Request: "GET " + c + "/erasures?limit=1", Keep: "erasure=data.0.hash next=next"},
		{Request: "GET " + c + "/erasures?limit=1&cursor=$next"},
		{Request: "DELETE " + c + "/erasures/$erasure"},
		{Request: "DELETE " + c + "/erasures/none", Fails: true},
		{Request: "DELETE " + c + "/segments/$whole"},
		{Request: "DELETE " + c + "/lists/$second"},
		{Request: "POST " + a + "/lists", Body: `{"name":"Short"}`, Keep: "short=data._id"},
		{Request: "DELETE " + a + "/lists/$short"},
		{Request: "POST " + c + "/templates", Body: `{"name":"Short"}`, Keep: "short=data._id"},
		{Request: "DELETE " + c + "/templates/$short"},
		{Request: "DELETE " + c + "/templates/$short", Fails: true},
		{Request: "POST " + c + "/session", Body: `{"email":"$email","password":"another good password"}`, Keep: "other=data.token"},
		{Request: "DELETE " + c + "/session", Headers: map[string]string{"Authorization": "Bearer $other"}},
	}
}

func operations() []Step {
	return []Step{
		{Request: "GET /healthz"}, {Request: "GET /readyz"}, {Request: "GET /metrics"}, {Request: "GET /openapi.json"}, {Request: "GET /reference"},
	}
}
