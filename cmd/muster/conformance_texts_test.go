package main

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// phone is a number that nobody else has.
func (c *check) phone() string { return fmt.Sprintf("+49170%07d", c.names.Add(1)) }

// subscribe puts consents to channels on record.
func (c *check) subscribe(profile string, channels ...string) {
	c.Helper()
	for _, channel := range channels {
		c.console("POST", "/profiles/"+profile+"/consent", obj{"channel": channel, "status": "subscribed"}).http(200)
	}
}

// consents expects the status of a consent.
func (c *check) consents(profile, channel, status string) {
	c.Helper()
	c.console("GET", "/profiles/"+profile, nil).http(200).eq("data.consent."+channel+".status", status)
}

// recorded expects how many events of a type a profile has; reports are recorded at once.
func (c *check) recorded(profile, kind string, n int) {
	c.Helper()
	c.until(fmt.Sprint(n, " events ", kind), func() bool {
		have := 0
		for _, x := range c.history(profile).array("data.events") {
			if x.(obj)["event_type"] == kind {
				have++
			}
		}
		return have == n
	})
}

// cloud is WhatsApp's Cloud API as a company uses it.
type cloud struct {
	*check
	number string // phone_number_id
}

// path is where the Cloud API takes messages.
func (x *cloud) path() string { return "/v21.0/" + x.number + "/messages" }

// setUp has the company send by WhatsApp, and take its reports.
func (x *cloud) setUp() {
	x.Helper()
	x.console("PUT", "/message-providers/whatsapp", obj{"preset": "whatsapp_cloud", "version": "v21.0", "phone_number_id": x.number, "token": "cloud-token", "base_url": x.remote.plain.URL}).http(200)
	x.console("PUT", "/inbound-providers/whatsapp", obj{"app_secret": cloudSecret, "phone_number_id": x.number, "generate": true}).http(200)
}

// came are the messages that the Cloud API has taken.
func (x *cloud) came() (out []*answer) {
	for _, d := range x.remote.received(x.path()) {
		a := &answer{t: x.T, what: x.path(), status: 200, header: d.header, raw: d.body}
		dec := json.NewDecoder(strings.NewReader(string(d.body)))
		dec.UseNumber()
		ok(x.T, dec.Decode(&a.body))
		out = append(out, a)
	}
	return out
}

// reports hands in what WhatsApp tells, signed.
func (x *cloud) reports(value obj) *answer {
	x.Helper()
	value["metadata"] = obj{"phone_number_id": x.number}
	body := jsonOf(obj{"object": "whatsapp_business_account", "entry": []obj{{"changes": []obj{{"field": "messages", "value": value}}}}})
	mac := hmac.New(sha256.New, []byte(cloudSecret))
	mac.Write([]byte(body))
	return x.do(x.T, "POST", "/inbound/"+x.account+"/whatsapp", body, "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil))).http(200)
}

// writes has a person write a text.
func (x *cloud) writes(phone, text string, at time.Time) {
	x.Helper()
	x.reports(obj{"messages": []obj{{"from": phone[1:], "id": x.name("wamid."), "timestamp": fmt.Sprint(at.Unix()), "type": "text", "text": obj{"body": text}}}}).eq("data.recorded", 1)
}

// whatsAppPart: templates, free texts within a day, and what people and the provider say.
func whatsAppPart() part {
	var number, ada, phone, campaign, sent string
	fields := func(more obj) obj {
		out := obj{"name": "sale", "channel": 2, "type": 3, "service": "whatsapp", "date": "2026-01-31"}
		maps.Copy(out, more)
		return out
	}
	return part{"whatsapp", []rule{
		{"a campaign sends its template, filled in, to subscribers and to nobody else", func(c *check) {
			number, phone = fmt.Sprint(1_000_000+c.names.Add(1)), c.phone()
			x := &cloud{c, number}
			x.setUp()
			ada = x.contact(obj{"phone": phone, "first_name": "Ada"})
			x.contact(obj{"phone": c.phone(), "first_name": "Eve"})
			x.subscribe(ada, "whatsapp")
			campaign = x.a("POST", "/campaign", fields(obj{"whatsapp": obj{"template": "january_sale", "language": "en_US", "parameters": []string{"{{first_name}}"}}})).success().str("data._id")
			x.a("POST", "/campaign/"+campaign+"/send", obj{"all_contacts": true}).success().eq("data.emails_sent", 1)
			x.a("GET", "/campaign/"+campaign+"/stats", nil).success().eq("data.skipped", obj{"not subscribed": 1})
			got := x.came()
			if len(got) != 1 {
				c.Fatalf("%d messages came", len(got))
			}
			got[0].eq("messaging_product", "whatsapp").eq("type", "template").eq("template.name", "january_sale").eq("template.language.code", "en_US").eq("template.components.0.parameters.0.text", "Ada")
			if to := got[0].str("to"); strings.TrimPrefix(to, "+") != phone[1:] || got[0].header.Get("Authorization") != "Bearer cloud-token" {
				got[0].fault("it came for %s with %v", to, got[0].header)
			}
			sent = got[0].str("biz_opaque_callback_data")
		}},
		{"sent, delivered and read are reported: a read counts once as delivered and as an open, and a later failure is ignored", func(c *check) {
			x := &cloud{c, number}
			for _, status := range []string{"sent", "delivered", "read", "read", "failed"} {
				a := x.reports(obj{"statuses": []obj{{"id": "wamid.1", "status": status, "timestamp": fmt.Sprint(time.Now().Unix()), "recipient_id": phone[1:], "biz_opaque_callback_data": sent}}})
				if status == "failed" {
					a.eq("data.ignored", 1)
				}
			}
			x.recorded(ada, "whatsapp_delivered", 1)
			x.recorded(ada, "whatsapp_opened", 1)
			x.recorded(ada, "whatsapp_failed", 0)
			x.a("GET", "/campaign/"+campaign+"/stats", nil).success().eq("data.delivered", 1).eq("data.unique_opens", 1).eq("data.bounces", 0).eq("data.failed", 0)
		}},
		{"a step of a flow sends its template", func(c *check) {
			x := &cloud{c, number}
			kind := c.name("paid_")
			flow := x.live(onEvent(kind), step("w", "whatsapp", "", obj{"template": "receipt", "language": "en", "parameters": []string{"{{event.n}}"}}))
			x.event(kind, obj{"phone": phone}, obj{"n": 7})
			x.through(flow, ada)
			x.until("the template comes", func() bool { return len(x.came()) == 2 })
			x.came()[1].eq("template.name", "receipt").eq("template.components.0.parameters.0.text", "7")
		}},
		{"a text goes out within 24 hours of what the person wrote last, and not later", func(c *check) {
			x := &cloud{c, number}
			before := len(x.came())
			id := x.a("POST", "/campaign", fields(obj{"body": "Dear {{first_name}}"})).success().str("data._id")
			late := func() {
				c.Helper()
				c.a("POST", "/campaign/"+id+"/send", obj{"all_contacts": true}).fails("the person has not written in the last 24 hours").eq("data.emails_sent", 0)
			}
			late()
			x.writes(phone, "Hello", time.Now().Add(-24*time.Hour-time.Minute))
			late()
			x.a("GET", "/campaign/"+id+"/stats", nil).success().eq("data.emails_sent", 0)
			if n := len(x.came()); n != before {
				c.Fatalf("%d messages came", n-before)
			}
			x.writes(phone, "Hello", time.Now().Add(-23*time.Hour))
			c.a("POST", "/campaign/"+id+"/send", obj{"all_contacts": true}).success().eq("data.emails_sent", 1)
			x.recorded(ada, "whatsapp_received", 2)
			got := x.came()
			if len(got) != before+1 {
				c.Fatalf("%d messages came", len(got)-before)
			}
			got[before].eq("type", "text").eq("text.body", "Dear Ada")
		}},
		{"STOP withdraws the consent, and nothing is sent any more; START gives it", func(c *check) {
			x := &cloud{c, number}
			before := len(x.came())
			x.writes(phone, "Stop", time.Now().Add(-2*time.Second))
			x.consents(ada, "whatsapp", "unsubscribed")
			id := x.a("POST", "/campaign", fields(obj{"whatsapp": obj{"template": "t", "language": "en"}})).success().str("data._id")
			x.a("POST", "/campaign/"+id+"/send", obj{"all_contacts": true}).success().eq("data.emails_sent", 0)
			if n := len(x.came()); n != before {
				c.Errorf("%d messages came after STOP", n-before)
			}
			x.writes(phone, "START", time.Now().Add(-time.Second))
			x.consents(ada, "whatsapp", "subscribed")
		}},
		{"a report with another signature, and a challenge with another token, are refused", func(c *check) {
			x := &cloud{c, number}
			path := "/inbound/" + c.account + "/whatsapp"
			x.do(c.T, "POST", path, "{}", "X-Hub-Signature-256", "sha256=00").http(401)
			x.do(c.T, "GET", path+"?hub.mode=subscribe&hub.challenge=1&hub.verify_token=x", nil).http(401)
		}},
		{"a template and a text together are refused", func(c *check) {
			x := &cloud{c, number}
			x.a("POST", "/campaign", fields(obj{"body": "b", "whatsapp": obj{"template": "t"}})).names("whatsapp Input should be left out where there is a body or template_id")
			x.a("POST", "/campaign", fields(obj{"whatsapp": obj{"language": "de"}})).names("whatsapp.template Field required")
		}},
	}}
}

// keywordPart: what people write by SMS, in Twilio's form.
func keywordPart() part {
	const token = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
	var ada, phone, twilio string
	// writes has a person write a text, signed as Twilio signs.
	writes := func(c *check, id, from, text, secret string) *answer {
		c.Helper()
		path := "/inbound/" + c.account + "/twilio"
		form := url.Values{"MessageSid": {id}, "SmsStatus": {"received"}, "From": {from}, "To": {"+15005550006"}, "Body": {text}}
		return c.do(c.T, "POST", path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "X-Twilio-Signature", twilioSignature(secret, c.server.origin+path, form))
	}
	// texts are the bodies that went out.
	texts := func(c *check) (out []string) {
		for _, d := range c.remote.received(twilio) {
			form, err := url.ParseQuery(string(d.body))
			ok(c.T, err)
			out = append(out, form.Get("To")+" "+form.Get("Body"))
		}
		return out
	}
	send := func(c *check, body string) *answer {
		id := c.a("POST", "/campaign", obj{"name": "sms", "channel": 2, "type": 2, "date": "2026-01-31", "body": body}).success().str("data._id")
		return c.a("POST", "/campaign/"+id+"/send", obj{"all_contacts": true}).success()
	}
	return part{"texts that people write", []rule{
		{"a text is an event of the profile with the number, once however often it is reported", func(c *check) {
			phone = c.phone()
			sid := c.name("AC")
			twilio = "/2010-04-01/Accounts/" + sid + "/Messages.json"
			c.console("PUT", "/message-providers/sms", obj{"preset": "twilio", "account_sid": sid, "auth_token": token, "from": "+15005550006", "base_url": c.remote.plain.URL}).http(200)
			c.console("PUT", "/inbound-providers/twilio", obj{"auth_token": token, "help_reply": "Shop Ltd", "stop_reply": "Bye"}).http(200)
			ada = c.contact(obj{"phone": phone})
			for range 2 {
				writes(c, "SM1", phone, "Where is my order?", token).http(200)
			}
			c.recorded(ada, "sms_received", 1)
		}},
		{"START subscribes: a campaign reaches the person", func(c *check) {
			c.console("POST", "/profiles/"+ada+"/consent", obj{"channel": "sms", "status": "unsubscribed"}).http(200)
			send(c, "before").eq("data.emails_sent", 0)
			writes(c, "SM2", phone, "start", token).http(200)
			c.consents(ada, "sms", "subscribed")
			send(c, "after").eq("data.emails_sent", 1)
			if got := texts(c); !slices.Contains(got, phone+" after") || slices.Contains(got, phone+" before") {
				c.Errorf("came: %q", got)
			}
		}},
		{"STOP unsubscribes and is answered; no campaign reaches the person", func(c *check) {
			writes(c, "SM3", phone, "STOP", token).http(200)
			c.consents(ada, "sms", "unsubscribed")
			c.until("the answer comes", func() bool { return slices.Contains(texts(c), phone+" Bye") })
			send(c, "late").eq("data.emails_sent", 0)
			writes(c, "SM2", phone, "start", token).http(200) // an old one, again
			c.consents(ada, "sms", "unsubscribed")
			c.recorded(ada, "sms_unsubscribed", 1)
		}},
		{"HELP is answered, also to people who never subscribed, and changes no consent; a number of no profile makes one", func(c *check) {
			never := c.phone()
			writes(c, "SM4", never, "help", token).http(200)
			c.until("the answer comes", func() bool { return slices.Contains(texts(c), never+" Shop Ltd") })
			c.consents(c.console("GET", "/profiles?phone="+url.QueryEscape(never), nil).http(200).str("data.profile_id"), "sms", "never_subscribed")
		}},
		{"a text whose signature is of another secret is refused, and changes nothing", func(c *check) {
			writes(c, "SM9", phone, "START", "another").http(401)
			c.consents(ada, "sms", "unsubscribed")
		}},
	}}
}

// twilioSignature is the signature of a form that Twilio sends to an address.
func twilioSignature(secret, address string, form url.Values) string {
	for _, name := range slices.Sorted(maps.Keys(form)) {
		address += name + form.Get(name)
	}
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(address))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
