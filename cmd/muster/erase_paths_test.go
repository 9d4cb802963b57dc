package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// eraser is what the ways have at hand by which a person's data comes into files.
type eraser struct {
	*check
	providers *repeating
	inApp     inAppKeys
	form      string // path of a form with double opt-in
	template  string
	call      string // id of a flow that calls start
	trackKey  string
	underWay  sync.WaitGroup // calls that end when late answers come
}

// erasedPath is a way by which a person's data comes into files.
type erasedPath struct {
	name string
	come func(*eraser, erasedPerson)
	// shows is what must be found of it before the erasure.
	shows func(erasedPerson) []string
}

// erasedPaths are all ways. A person whose way is named "…refused" is repeated by the answers of
// relays and providers.
var erasedPaths = []erasedPath{
	{name: "event", come: func(e *eraser, p erasedPerson) {
		for i := range 10 {
			e.event("seen", p.user("email"), obj{"n": i, "text": p.tag + "-text"})
		}
	}},
	// Events of the account that wait for a receiver, and one that is a dead letter.
	{name: "webhook", come: func(e *eraser, p erasedPerson) {
		gone := e.console("POST", "/webhooks", obj{"url": e.providers.plain.URL + "/gone", "events": []string{"contact.created"}}).http(200).str("data._id")
		e.contact(obj{"email": p.email(), "first_name": p.tag + "-Firstname"})
		e.until("the delivery is a dead letter", func() bool {
			return len(e.console("GET", "/webhooks/"+gone+"/dead-letters", nil).http(200).array("data")) == 1
		})
		for i := range 50 {
			e.event("seen", p.user("email", "external_id"), obj{"n": i, "text": p.tag + "-text"})
		}
	}, shows: func(p erasedPerson) []string { return []string{"no more of " + p.email()} }},
	{name: "merge", come: func(e *eraser, p erasedPerson) {
		e.event("seen", p.user("external_id"), p.properties())
		e.event("seen", p.user("email"), p.properties())
		e.event("seen", p.user("email", "external_id", "phone"), p.properties())
	}},
	{name: "contact", come: func(e *eraser, p erasedPerson) {
		id := e.contact(obj{"email": p.email(), "first_name": p.tag + "-Firstname", "last_name": p.tag + "-Lastname"})
		e.console("PATCH", "/profiles/"+id, obj{"first_name": p.tag + "-Secondname", "attributes": obj{"x": p.tag + "-attributevalue"}}).http(200)
		e.console("PATCH", "/profiles/"+id, obj{"phone": "ask " + p.tag + "-neighbour"}).http(400)
	}, shows: func(p erasedPerson) []string { return []string{p.tag + "-secondname", p.tag + "-neighbour"} }},
	{name: "import", come: func(e *eraser, p erasedPerson) {
		e.b("/events/batch", obj{"events": []obj{{"event_type": "seen", "timestamp": "2026-01-02T03:04:05Z", "user": obj{"email": "other2@people.example"}},
			{"event_type": "seen", "timestamp": "2026-01-02T03:04:05Z", "user": p.user("email"), "properties": p.properties()}}}).http(202)
	}},
	// Imported, with a row that is refused and kept with its reason; complete and not started;
	// and not complete.
	{name: "upload", come: func(e *eraser, p erasedPerson) { e.uploadPerson(p) }, shows: func(p erasedPerson) []string { return []string{p.tag + "-never"} }},
	{name: "order", come: func(e *eraser, p erasedPerson) {
		item := []obj{{"product_id": p.tag + "-product", "name": p.tag + "-engraved", "quantity": 1, "price": 10.5}}
		e.event("cart_updated", p.user("email"), obj{"cart_id": p.tag + "-cart", "items": item})
		e.b("/events", obj{"event_type": "order_placed", "user": p.user("email"), "idempotency_key": p.tag + "-key",
			"properties": obj{"order_id": p.tag + "-order", "total": 10.5, "currency": "EUR", "note": p.tag, "items": item}}).http(202).eq("success", true)
		e.event("order_refunded", p.user("email"), obj{"order_id": p.tag + "-order", "amount": 2, "reason": p.tag + "-reason"})
		e.event("order_refunded", p.user("email"), obj{"order_id": p.tag + "-unknown", "amount": 2})
		e.event("cart_updated", p.user("email"), obj{"cart_id": p.tag + "-left", "items": item})
	}, shows: func(p erasedPerson) []string {
		return []string{p.tag + "-order", p.tag + "-engraved", p.tag + "-reason", p.tag + "-left", p.tag + "-key"}
	}},
	{name: "formconfirmed", come: func(e *eraser, p erasedPerson) {
		e.submit(p)
		e.until("the message of the form came", func() bool { return len(e.relay.to(p.email())) > 0 })
		link := e.links(p.email()).in(e.relay.to(p.email())[0].html)
		e.do(e.T, "POST", strings.TrimPrefix(link, e.server.origin), "", slices.Concat(browser, []string{"Content-Type", "application/x-www-form-urlencoded"})...).http(200)
	}, shows: func(p erasedPerson) []string { return []string{p.tag + "-size"} }},
	{name: "formpending", come: func(e *eraser, p erasedPerson) { e.submit(p) }, shows: func(p erasedPerson) []string { return []string{p.tag + "-size"} }},
	{name: "inapp", come: func(e *eraser, p erasedPerson) {
		e.subscriber(p)
		e.sendBy(p, "in_app")
		token := personToken(e.inApp.Secret, e.inApp.Issuer, p.tag+"-id", time.Hour)
		var shown inbox
		e.until("the message is in the inbox", func() bool {
			status, _ := e.server.page("GET", "/in-app/inbox", token, "", &shown)
			return status == 200 && len(shown.Messages) == 1
		})
		for _, action := range []string{"seen", "clicked"} {
			if status, _ := e.server.page("POST", "/in-app/inbox/"+shown.Messages[0].ID+"/"+action, token, "", nil); status != 200 {
				e.Errorf("%s: %d", action, status)
			}
		}
	}, shows: func(p erasedPerson) []string { return []string{"campaign_in_app " + p.tag + "-firstname"} }},
	{name: "campaigns", come: func(e *eraser, p erasedPerson) {
		e.subscriber(p)
		id := e.campaign(obj{"subject": "For {{first_name}}", "body": `<p>Dear {{first_name}} <a href="https://shop.example/a">A</a></p>`})
		e.send(id, e.list(p.email(), "other1@people.example")).success()
		e.sendBy(p, "email", "sms", "im", "push", "whatsapp", "omni")
		l := e.links(p.email())
		e.fetch(l.pixel)
		e.fetch(l.clicks[0])
	}},
	{name: "campaignsrefused", come: func(e *eraser, p erasedPerson) {
		e.subscriber(p)
		e.sendBy(p, "email", "sms", "im", "push", "whatsapp", "omni")
	}, shows: func(p erasedPerson) []string {
		return []string{"mailbox=(recipient): no such user (recipient) here", "cannot deliver to=(recipient) (subscriber campaign_sms (recipient))"}
	}},
	{name: "flows", come: func(e *eraser, p erasedPerson) {
		e.subscriber(p)
		e.event("go", p.user("email"), p.properties())
	}, shows: func(p erasedPerson) []string {
		return []string{idOf("wamid.", p.phone()), idOf("sm", p.phone())}
	}},
	{name: "flowsrefused", come: func(e *eraser, p erasedPerson) {
		e.subscriber(p)
		e.event("go", p.user("email"), p.properties())
	}, shows: func(p erasedPerson) []string {
		return []string{"mailbox=" + p.email(), "no such user " + p.tag + "-mail here", "cannot deliver to=" + p.phone(), "(subscriber flow_sms " + p.tag + "-firstname)"}
	}},
	{name: "mail", come: (*eraser).mail},
	{name: "mailrefused", come: (*eraser).mail, shows: func(p erasedPerson) []string { return []string{"mailbox=" + p.email()} }},
	{name: "trigger", come: func(e *eraser, p erasedPerson) {
		e.contact(obj{"email": p.email()})
		e.a("POST", "/custom-flows/"+e.call+"/trigger", obj{"email": p.email(), "data": obj{"v": p.tag + "-data"}, "idempotency_key": p.tag + "-key"}).success()
	}, shows: func(p erasedPerson) []string { return []string{p.tag + "-data", p.tag + "-key"} }},
	{name: "preferences", come: func(e *eraser, p erasedPerson) {
		e.subscriber(p)
		id := e.campaign(obj{"subject": "For {{first_name}}", "body": `<p>Dear {{first_name}} <a href="{{preferences_url}}">choose</a></p>`})
		e.send(id, e.list(p.email())).success()
		link := regexp.MustCompile(`https?://[^/"]+(/preferences/[A-Za-z0-9_-]+)`).FindStringSubmatch(e.relay.to(p.email())[0].html)
		if link == nil {
			e.Fatal("no link to the page")
		}
		page := string(e.do(e.T, "GET", link[1], nil, browser...).http(200).raw)
		shown := regexp.MustCompile(`name="page" value="([^"]*)"`).FindStringSubmatch(page)
		if shown == nil {
			e.Fatal(page)
		}
		e.post(link[1], url.Values{"action": {"save"}, "page": shown[1:], "shown": {"channel:email"}, "was": {"channel:email"}}).http(200)
	}},
	{name: "tracking", come: func(e *eraser, p erasedPerson) {
		for _, x := range []struct{ path, body string }{
			{"/v1/page", `{"anonymousId":"TAG-browser","name":"TAG","messageId":"TAG-message","properties":{"url":"https://shop.example/TAG"}}`},
			{"/v1/identify", `{"userId":"TAG-id","anonymousId":"TAG-browser","traits":{"email":"MAIL","name":"TAG Name","address":{"city":"TAG"}},"context":{"ip":"192.0.2.7","userAgent":"TAG","traits":{"x":"TAG"}}}`},
			{"/v1/track", `{"userId":"TAG-id","anonymousId":"TAG-other","event":"Viewed","properties":{"a":"TAG"},"context":{"page":{"url":"https://shop.example/TAG"},"device":{"token":"TAG-token","id":"TAG"}}}`},
			{"/v1/alias", `{"userId":"TAG-id","previousId":"TAG-previous"}`},
			{"/v1/group", `{"userId":"TAG-id","groupId":"TAG-group","traits":{"a":"TAG"}}`},
		} {
			if status, answer := e.server.track(e.trackKey, x.path, strings.NewReplacer("TAG", p.tag, "MAIL", p.email()).Replace(x.body)); status != 200 || answer != trackTaken {
				e.Errorf("%s: %d %s", x.path, status, answer)
			}
		}
	}, shows: func(p erasedPerson) []string {
		return []string{p.tag + "-browser", p.tag + "-other", p.tag + "-previous", p.tag + "-message"}
	}},
	{name: "reports", come: func(e *eraser, p erasedPerson) {
		e.subscriber(p)
		e.report(obj{"type": "bounce", "id": p.tag + "-bounce", "recipient": p.email(), "hard": false, "reason": "mailbox of " + p.tag},
			obj{"type": "click", "id": p.tag + "-click", "recipient": p.email(), "url": "https://shop.example/" + p.tag, "user_agent": p.tag, "ip": "192.0.2.9"})
	}, shows: func(p erasedPerson) []string {
		return []string{p.tag + "-bounce", "mailbox of " + p.tag, "https://shop.example/" + p.tag}
	}},
	{name: "texts", come: func(e *eraser, p erasedPerson) {
		e.subscriber(p)
		e.report(obj{"type": "reply", "id": p.tag + "-reply", "channel": "sms", "from": p.phone(), "to": "+4930123456", "text": "Hello from " + p.tag})
		e.sendBy(p, "whatsapp")
		number := strings.TrimPrefix(p.phone(), "+")
		e.providers.mu.Lock()
		sent := e.providers.mu.whatsApp[number]
		e.providers.mu.Unlock()
		if len(sent) != 1 {
			e.Fatalf("WhatsApp took %d messages", len(sent))
		}
		e.cloudReport(obj{"contacts": []obj{{"profile": obj{"name": p.tag + "-whatsappname"}, "wa_id": number}},
			"messages": []obj{{"from": number, "id": idOf("wamid.", number), "timestamp": strconv.FormatInt(time.Now().Unix(), 10), "type": "text", "text": obj{"body": "I am " + p.tag + "-words"}}}})
		for _, status := range []string{"delivered", "read", "failed"} {
			x := obj{"id": sent[0].theirs, "biz_opaque_callback_data": sent[0].ours, "status": status, "timestamp": strconv.FormatInt(time.Now().Unix(), 10), "recipient_id": number}
			if status == "failed" {
				x["errors"] = []obj{{"code": 131026, "title": "undeliverable " + number, "message": "for " + p.tag, "error_data": obj{"details": p.tag + "-details"}}}
			}
			e.cloudReport(obj{"statuses": []obj{x}})
		}
	}, shows: func(p erasedPerson) []string { return []string{"hello from " + p.tag, "i am " + p.tag + "-words"} }},
	{name: "unreachable", come: func(e *eraser, p erasedPerson) {
		id := e.subscriber(p)
		e.a("POST", "/contacts/"+id+"/devices", obj{"kind": "webpush", "device_id": p.tag + "-device", "address": e.providers.subscription(p, false)}).success()
		e.a("POST", "/contacts/"+id+"/devices", obj{"kind": "fcm", "device_id": p.tag + "-phone", "address": p.tag + "-token"}).success()
		e.a("DELETE", "/contacts/"+id+"/devices/"+p.tag+"-phone", nil).success()
		e.sendBy(p, "push")
	}, shows: func(p erasedPerson) []string { return []string{p.tag + "-device", p.tag + "-token"} }},
}

// latePaths are sends whose provider answers after the recipient was erased, and repeats the recipient.
var latePaths = []erasedPath{
	{name: "lateflows", come: func(e *eraser, p erasedPerson) {
		e.subscriber(p)
		e.event("go", p.user("email"), p.properties())
	}},
	{name: "latemail", come: (*eraser).mail},
	{name: "latecampaigns", come: func(e *eraser, p erasedPerson) {
		e.subscriber(p)
		e.sendBy(p, "email", "sms", "push", "whatsapp")
	}},
}

// newEraser sets up what the ways need: providers, flows on each channel, a form, a source.
func newEraser(c *check) *eraser {
	c.Helper()
	e := &eraser{check: c, providers: newRepeating(c.T)}
	e.relay.refuseBy(e.providers.mail)
	for _, channel := range []string{"sms", "im"} {
		e.console("PUT", "/message-providers/"+channel, obj{"url": e.providers.plain.URL + "/text", "format": "json", "body": `{"to":"{{to}}","text":"{{body}}"}`, "from": "Shop",
			"id_path": "id", "code_path": "error.code", "error_path": "error.message"}).http(200)
	}
	e.console("PUT", "/message-providers/whatsapp", obj{"preset": "whatsapp_cloud", "version": "v21.0", "phone_number_id": "1062840", "token": "cloud-token", "base_url": e.providers.plain.URL}).http(200)
	e.console("PUT", "/inbound-providers/whatsapp", obj{"app_secret": cloudSecret, "verify_token": "verify-token-verify"}).http(200)
	e.console("PUT", "/push-credentials/webpush", obj{"generate": true, "subject": "mailto:push@muster.local"}).http(200)
	ok(c.T, e.server.surfaceA("POST", "/in-app/secret", nil, &e.inApp))
	e.template = e.console("POST", "/templates", obj{"name": "t", "subject": "Order {{order}}", "html": "<p>{{first_name}} {{order}}</p>", "transactional": true}).http(200).str("data._id")
	e.call = e.flow(obj{"type": "api"}, obj{"id": "w", "type": "wait", "seconds": 86400})
	for _, x := range channelTable {
		if x.step != nil {
			step := forCell(x.step, "flow_"+x.channel).(obj)
			step["id"] = "send"
			e.flow(obj{"type": "event", "event": "go"}, step)
		}
	}
	e.flow(obj{"type": "event", "event": "go"}, obj{"id": "send", "type": "webhook", "method": "POST", "url": e.providers.plain.URL + "/hook/{{first_name}}", "body": `{"email":"{{email}}"}`})
	e.form = "/forms/" + e.a("POST", "/forms", obj{"name": "Newsletter", "published": true, "double_opt_in": true, "list_ids": []string{e.list()}, "allowed_origins": []string{"https://shop.example"},
		"fields":  []obj{{"name": "email", "label": "E-mail", "required": true}, {"name": "phone", "label": "Phone"}, {"name": "first_name", "label": "First name"}, {"name": "attributes.size", "label": "Size", "type": "text"}},
		"consent": obj{"text": "Send me news.", "channels": []string{"email", "sms"}, "required": true}}).success().str("data._id")
	e.trackKey = e.console("POST", "/sources", obj{"name": "Server", "kind": "server"}).http(200).str("data.write_key")
	return e
}

// flow publishes a flow.
func (e *eraser) flow(trigger, step obj) string {
	e.Helper()
	id := e.a("POST", "/custom-flows", obj{"name": e.name("flow"), "trigger": trigger, "steps": []obj{step}}).success().str("data._id")
	e.a("POST", "/custom-flows/"+id+"/publish", nil).success()
	return id
}

// subscriber makes the person a contact with a browser and the consents of all channels.
func (e *eraser) subscriber(p erasedPerson) string {
	e.Helper()
	id := e.contact(obj{"email": p.email(), "phone": p.phone(), "external_id": p.tag + "-id", "first_name": p.tag + "-Firstname", "last_name": p.tag + "-Lastname"})
	e.a("POST", "/contacts/"+id+"/devices", obj{"kind": "webpush", "address": e.providers.subscription(p, true)}).success()
	for _, channel := range preference {
		e.console("POST", "/profiles/"+id+"/consent", obj{"channel": channel, "status": "subscribed", "source": p.tag + "-source"}).http(200)
	}
	return id
}

// sendBy sends campaigns of these channels to the person. Those to a late person end when the
// answers come.
func (e *eraser) sendBy(p erasedPerson, channels ...string) {
	e.Helper()
	list := e.list(p.email())
	for _, x := range channelTable {
		if !slices.Contains(channels, x.channel) {
			continue
		}
		fields := obj{"name": "campaign"}
		maps.Copy(fields, forCell(x.campaign, "campaign_"+x.channel).(obj))
		if body, is := fields["body"].(string); is && fields["sender"] != nil {
			fields["body"] = body + `<p>Dear {{first_name}} <a href="https://shop.example/{{first_name}}">A</a></p>`
		}
		path := "/campaign/" + e.a("POST", "/campaign", fields).success().str("data._id") + "/send"
		if !strings.HasPrefix(p.tag, "zqlate") {
			e.a("POST", path, obj{"list_id": []string{list}})
			continue
		}
		e.underWay.Go(func() { _ = e.server.surfaceA("POST", path, obj{"list_id": []string{list}}, nil) }) // refused: no recipient is left
	}
}

// mail sends a single e-mail.
func (e *eraser) mail(p erasedPerson) {
	e.Helper()
	e.contact(obj{"email": p.email(), "first_name": p.tag + "-Firstname"})
	e.c("/email/send", obj{"to": p.email(), "template_id": e.template, "subject": "For " + p.tag, "data": obj{"order": p.tag + "-order"}, "idempotency_key": p.tag + "-key"}).successC()
}

// submit fills the form in, as the page of a site does.
func (e *eraser) submit(p erasedPerson) {
	e.Helper()
	says := regexp.MustCompile(`name="consent_version" value="([^"]*)"`).FindSubmatch(e.do(e.T, "GET", e.form, nil, browser...).http(200).raw)
	if says == nil {
		e.Fatal("the form has no consent")
	}
	e.post(e.form, url.Values{"email": {p.email()}, "phone": {p.phone()}, "first_name": {p.tag + "-Firstname"}, "attributes.size": {p.tag + "-size"}, "consent": {"1"}, "consent_version": {string(says[1])}}).http(200)
}

// post sends a form as a browser does.
func (e *eraser) post(path string, values url.Values) *answer {
	e.Helper()
	return e.do(e.T, "POST", path, values.Encode(), slices.Concat(browser, []string{"Content-Type", "application/x-www-form-urlencoded", "Origin", "https://shop.example"})...)
}

const cloudSecret = "5ebe2294ecd0e0f08eab7690d2a6ee69"

// cloudReport calls as WhatsApp does.
func (e *eraser) cloudReport(value obj) {
	e.Helper()
	value["messaging_product"] = "whatsapp"
	value["metadata"] = obj{"display_phone_number": "15550", "phone_number_id": "1062840"}
	body, err := json.Marshal(obj{"object": "whatsapp_business_account", "entry": []obj{{"id": "1", "changes": []obj{{"field": "messages", "value": value}}}}})
	ok(e.T, err)
	mac := hmac.New(sha256.New, []byte(cloudSecret))
	mac.Write(body)
	e.do(e.T, "POST", "/inbound/"+e.account+"/whatsapp", string(body), "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil))).http(200)
}

// profile is the id of the person.
func (e *eraser) profile(p erasedPerson) string {
	e.Helper()
	return e.console("GET", "/profiles?email="+url.QueryEscape(p.email()), nil).http(200).str("data.profile_id")
}
