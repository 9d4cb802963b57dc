package main

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
)

func itoa(n int) string { return strconv.Itoa(n) }

// device registers a browser whose push service answers at a path, and returns
// the path.
func (c *check) device(contact, kind string) (path string) {
	c.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	ok(c.T, err)
	path = "/" + kind + "/" + c.name("device")
	text := base64.RawURLEncoding
	address, err := json.Marshal(obj{"endpoint": c.remote.secure.URL + path, "keys": obj{"p256dh": text.EncodeToString(key.PublicKey().Bytes()), "auth": text.EncodeToString(make([]byte, 16))}})
	ok(c.T, err)
	c.a("POST", "/contacts/"+contact+"/devices", obj{"kind": "webpush", "address": string(address)}).success()
	return path
}

func pushFields(a *answer) *answer {
	a.t.Helper()
	return a.kinds("data", map[string]string{"campaignId": "string", "segmentName": "string", "contactsInSegment": "integer", "reachableContacts": "integer",
		"total": "integer", "accepted": "integer", "retired": "integer", "dryRun": "boolean"})
}

func pushPart() part {
	var seg, name, dead string
	live := []string{}
	return part{"push messages", []rule{
		{"a dry run without recipients and without anything set up succeeds with zeroes", func(c *check) {
			pushFields(c.other().a("POST", "/push/send", obj{"title": "T", "body": "B", "dryRun": true}).http(200).eq("status", "success")).
				eq("data.total", 0).eq("data.contactsInSegment", 0).eq("data.reachableContacts", 0).eq("data.accepted", 0).eq("data.retired", 0).eq("data.dryRun", true)
		}},
		{"segments to send to are an array, with the ids that a message takes", func(c *check) {
			c.console("PUT", "/push-credentials/webpush", obj{"generate": true, "subject": "mailto:push@muster.local"}).http(200)
			many, none, lost := c.contact(obj{"email": c.mail("many")}), c.contact(obj{"email": c.mail("none")}), c.contact(obj{"email": c.mail("lost")})
			outside := c.contact(obj{})
			for range 3 {
				live = append(live, c.device(many, "live"))
			}
			dead = c.device(lost, "dead")
			live = append(live, c.device(outside, "live"))
			_ = none
			seg = c.segment(obj{"kind": "attribute", "field": "email", "op": "exists"})
			a := c.a("GET", "/push/segments", nil).success().length("data", 1).eq("data.0._id", seg)
			name = a.str("data.0.name")
		}},
		{"a dry run checks and counts everything and delivers nothing", func(c *check) {
			a := c.a("POST", "/push/send", obj{"title": "Hello", "body": "Now", "segmentId": seg, "dryRun": true}).http(200).eq("status", "success")
			pushFields(a).eq("data.dryRun", true).eq("data.segmentName", name).eq("data.contactsInSegment", 3).eq("data.reachableContacts", 2).
				eq("data.total", 4).eq("data.accepted", 0).eq("data.retired", 0)
			for _, path := range append([]string{dead}, live...) {
				if n := c.remote.pushed(path); n != 0 {
					c.Errorf("the dry run asked %d times for %s", n, path)
				}
			}
			c.a("GET", "/campaign", nil).success().length("data", 0)
		}},
		{"a dry run answers real errors", func(c *check) {
			for field, body := range map[string]obj{
				"title": {"body": "B"}, "segmentId": {"title": "T", "segmentId": "seg_none"}, "link": {"title": "T", "link": "javascript:x"},
				"title Input should be a valid string": {"title": 5}, "dryRun Input should be a valid boolean": {"title": "T", "dryRun": "yes"}, "body Input should be a valid string": {"title": "T", "body": 5},
			} {
				for _, dry := range []bool{true, false} {
					if _, given := body["dryRun"]; !given {
						body["dryRun"] = dry
						c.a("POST", "/push/send", body).names(field)
						delete(body, "dryRun")
						continue
					}
					c.a("POST", "/push/send", body).names(field)
				}
			}
		}},
		{"a message is sent to a segment; contacts, devices, accepted and dead ones are counted", func(c *check) {
			a := pushFields(c.a("POST", "/push/send", obj{"title": "Hello", "body": "Now", "segmentId": seg, "link": "https://shop.example/x"}).says("success", "sent"))
			a.eq("data.segmentName", name).eq("data.contactsInSegment", 3).eq("data.reachableContacts", 2).eq("data.total", 4).eq("data.accepted", 3).eq("data.retired", 1).eq("data.dryRun", false)
			for _, path := range append([]string{dead}, live[:3]...) {
				if n := c.remote.pushed(path); n != 1 {
					c.Errorf("%s was asked for %d times", path, n)
				}
			}
			row := c.a("GET", "/campaign/"+a.str("data.campaignId"), nil).success()
			row.eq("data.channel", 2).eq("data.type", 4).eq("data.subject", "Hello").eq("data.body", "Now").eq("data.link", "https://shop.example/x")
		}},
		{"a device that was dead is not addressed again", func(c *check) {
			c.a("POST", "/push/send", obj{"title": "Again", "segmentId": seg}).says("success", "sent").
				eq("data.total", 3).eq("data.accepted", 3).eq("data.retired", 0).eq("data.reachableContacts", 1).eq("data.contactsInSegment", 3)
			if n := c.remote.pushed(dead); n != 1 {
				c.Errorf("the dead device was asked for %d times", n)
			}
		}},
		{"names are exact, and each is given once: another is refused with the one that is meant, and nothing is sent", func(c *check) {
			x := c.other()
			x.a("POST", "/contacts/"+x.contact(obj{})+"/devices", obj{"kind": "fcm", "address": "token-1234567890-abcdef"}).success()
			for _, body := range []string{`{"title":"T","dryRun":true,"DryRun":false}`, `{"title":"T","DRYRUN":false,"dryRun":true,"dryrun":false}`} {
				x.a("POST", "/push/send", body).fails("Did you mean dryRun?")
			}
			x.a("POST", "/push/send", `{"title":"T","dryRun":true,"dryRun":false}`).names("dryRun ")
			x.a("POST", "/push/send", `{"title":"\ud800","dryRun":true}`).names("title ")
			x.console("GET", "/outbox?channel=push", nil).http(200).length("data", 0)
			x.console("POST", "/lists", `{"name":"a","Name":"b"}`).http(400).eq("data.field", "Name")
			x.a("POST", "/lists", `{"name":"\u0000"}`).names("name ")
			id := x.contact(obj{})
			if a := x.a("PATCH", "/contacts/"+id, `{"attributes":{"n":12345678901234567890}}`).success(); !strings.Contains(string(a.raw), "12345678901234567890") {
				a.fault("the number is not as it was written")
			}
		}},
		{"a message that no device took is a failure with its counts", func(c *check) {
			x := c.other()
			x.console("PUT", "/push-credentials/webpush", obj{"generate": true, "subject": "mailto:push@muster.local"}).http(200)
			x.device(x.contact(obj{"email": x.mail("lost")}), "dead")
			pushFields(x.a("POST", "/push/send", obj{"title": "Hello"}).fails("0 of 1 devices")).eq("data.total", 1).eq("data.accepted", 0).eq("data.retired", 1)
			x.a("POST", "/push/send", obj{"title": "Again"}).says("success", "sent").eq("data.total", 0)
		}},
		{"without a segment every live device of the company is addressed", func(c *check) {
			pushFields(c.a("POST", "/push/send", obj{"title": "All"}).says("success", "sent")).eq("data.total", 4).eq("data.accepted", 4).eq("data.retired", 0)
			if n := c.remote.pushed(live[3]); n != 1 {
				c.Errorf("the device outside the segment was asked for %d times", n)
			}
		}},
		{"title, body and link are what is delivered", func(c *check) {
			x := c.other() // with no credentials, messages are kept for looking at
			x.a("POST", "/contacts/"+x.contact(obj{"first_name": "Ada"})+"/devices", obj{"kind": "fcm", "address": "token-1234567890-abcdef"}).success()
			x.a("POST", "/push/send", obj{"title": "Hi {{first_name}}", "body": "Look", "link": "https://shop.example/look"}).says("success", "sent").eq("data.total", 1).eq("data.accepted", 1)
			a := x.console("GET", "/outbox?channel=push", nil).http(200).length("data", 1).eq("data.0.subject", "Hi Ada").eq("data.0.body", "Look")
			if headers, _ := a.at("data.0.headers"); !containsValue(headers, "https://shop.example/look") {
				a.fault("expected the link among the headers")
			}
		}},
		{"another company's segment is as unknown", func(c *check) {
			c.other().a("POST", "/push/send", obj{"title": "T", "segmentId": seg}).names("segmentId")
		}},
	}}
}

func containsValue(v any, text string) bool {
	x, _ := v.(map[string]any)
	for _, y := range x {
		if y == text {
			return true
		}
	}
	return false
}
