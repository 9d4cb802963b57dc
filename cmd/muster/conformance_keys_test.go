package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/musterhq/muster/eventlog/logtest"
)

const denied = "You don't have permission to perform this action"

// areas are what keys can be permitted to read and to write; personal is what
// people alone can.
var (
	areas    = []string{"contacts", "lists", "segments", "campaigns", "flows", "templates", "push", "analytics", "events"}
	personal = []string{"users", "billing", "settings", "api_keys"}
)

// record is a key as the console lists it.
func (c *check) record(id string) (out obj) {
	c.Helper()
	for _, x := range c.console("GET", "/api-keys?limit=1000", nil).http(200).array("data") {
		if x := x.(obj); x["_id"] == id {
			out = x
		}
	}
	if out == nil {
		c.Fatalf("the key %s is not listed", id)
	}
	return out
}

func keyPart() part {
	return part{"API keys", []rule{
		{"a key begins with svc_live_ and has at least 160 random bits", func(c *check) {
			seen := map[string]bool{}
			for range 5 {
				key := c.newKey()
				if !regexp.MustCompile(`^svc_live_[A-Za-z0-9_-]{27,}$`).MatchString(key) || seen[key] {
					c.Errorf("the key %q", key)
				}
				seen[key] = true
			}
			if !strings.HasPrefix(c.server.creds.APIKey, "svc_live_") {
				c.Errorf("the first key %q", c.server.creds.APIKey)
			}
		}},
		{"it is shown once", func(c *check) {
			made := c.console("POST", "/api-keys", obj{"name": "once"}).http(200)
			key := made.str("data.key")
			if list := c.console("GET", "/api-keys", nil).http(200); bytes.Contains(list.raw, []byte(key)) {
				list.fault("the key is shown again")
			}
			revoked := c.console("DELETE", "/api-keys/"+made.str("data._id"), nil).http(200)
			if bytes.Contains(revoked.raw, []byte(key)) {
				revoked.fault("the key is shown again")
			}
		}},
		{"only a hash is stored: the key is in no file and no line of the log", func(c *check) {
			key := c.newKey()
			c.with(key, "GET", "/api/v1/lists", nil).success()
			files := 0
			ok(c.T, filepath.WalkDir(filepath.Join(c.dir, "data"), func(path string, d fs.DirEntry, err error) error {
				if err != nil || !d.Type().IsRegular() {
					return nil // files come and go
				}
				b, err := os.ReadFile(path)
				if err != nil {
					return nil
				}
				files++
				b = append(b, logtest.Packed(b)...)
				if bytes.Contains(b, []byte(key)) || bytes.Contains(b, []byte(key[len("svc_live_"):])) {
					c.Errorf("%s holds the key", path)
				}
				return nil
			}))
			if files == 0 {
				c.Error("no files were looked at")
			}
			if strings.Contains(c.server.log(), key) {
				c.Error("the server's log holds the key")
			}
		}},
		{"a key has the name it was given", func(c *check) {
			made := c.console("POST", "/api-keys", obj{"name": "The shop's back end"}).http(200).eq("data.name", "The shop's back end")
			if got := c.record(made.str("data._id"))["name"]; got != "The shop's back end" {
				c.Errorf("listed as %v", got)
			}
			c.console("POST", "/api-keys", obj{}).http(400)
		}},
		{"its last use is recorded and visible", func(c *check) {
			made := c.console("POST", "/api-keys", obj{"name": "used"}).http(200).eq("data.last_used_at", nil)
			c.with(made.str("data.key"), "GET", "/api/v1/lists", nil).success()
			at, _ := c.record(made.str("data._id"))["last_used_at"].(string)
			if !instant.MatchString(at) {
				c.Errorf("used at %q", at)
			}
		}},
		{"a key does not expire: it has no date of an end, and none can be set", func(c *check) {
			made := c.console("POST", "/api-keys", obj{"name": "lasting"}).http(200)
			for field := range c.record(made.str("data._id")) {
				if strings.Contains(field, "expir") || strings.Contains(field, "until") {
					c.Errorf("a key has the field %s", field)
				}
			}
			c.console("POST", "/api-keys", obj{"name": "ending", "expires_at": "2030-01-01T00:00:00Z"}).http(400)
		}},
		{"a revoked key stops at once and keeps its record with name and last use", func(c *check) {
			made := c.console("POST", "/api-keys", obj{"name": "revoked"}).http(200)
			id, key := made.str("data._id"), made.str("data.key")
			c.with(key, "GET", "/api/v1/lists", nil).success()
			c.console("DELETE", "/api-keys/"+id, nil).http(200)
			c.with(key, "GET", "/api/v1/lists", nil).http(401)
			got := c.record(id)
			if at, _ := got["last_used_at"].(string); got["revoked"] != true || got["name"] != "revoked" || !instant.MatchString(at) {
				c.Errorf("listed as %v", got)
			}
		}},
		{"permissions have the form area:read or area:write", func(c *check) {
			all := c.console("POST", "/api-keys", obj{"name": "all"}).http(200).array("data.permissions")
			want := []any{}
			for _, a := range areas {
				want = append(want, a+":read", a+":write")
			}
			for _, p := range want {
				if !slices.Contains(all, p) {
					c.Errorf("a key for everything lacks %v", p)
				}
			}
			if len(all) != len(want) {
				c.Errorf("a key for everything has %v", all)
			}
			for _, p := range []string{"contacts", "contacts:delete", "contacts:*", "*", "CONTACTS:READ", ""} {
				c.console("POST", "/api-keys", obj{"name": "x", "permissions": []string{p}}).http(400)
			}
		}},
		{"a key never has more than its creator", func(c *check) {
			small := c.person("contacts:read", "api_keys:read", "api_keys:write")
			made := small.console("POST", "/api-keys", obj{"name": "mine"}).http(200)
			made.eq("data.permissions", []string{"contacts:read"})
			small.with(made.str("data.key"), "GET", "/api/v1/contacts", nil).success()
			small.with(made.str("data.key"), "POST", "/api/v1/contacts", obj{}).failure(denied)
			// What is asked for beyond it does not come about.
			greedy := small.console("POST", "/api-keys", obj{"name": "more", "permissions": []string{"contacts:read", "contacts:write", "campaigns:write"}})
			if greedy.status == 200 {
				key := greedy.str("data.key")
				small.with(key, "POST", "/api/v1/contacts", obj{}).failure(denied)
				small.with(key, "POST", "/api/v1/campaign", campaignOf(nil)).failure(denied)
			} else {
				greedy.http(403)
			}
		}},
		{"a key narrows when its creator's permissions are reduced", func(c *check) {
			all := []string{"contacts:read", "contacts:write", "lists:write", "api_keys:read", "api_keys:write"}
			creator := c.person(all...)
			key := creator.console("POST", "/api-keys", obj{"name": "narrows"}).http(200).str("data.key")
			c.with(key, "POST", "/api/v1/contacts", obj{}).success()
			c.with(key, "POST", "/api/v1/lists", obj{"name": "l"}).success()
			c.console("PATCH", "/users/"+creator.id, obj{"permissions": []string{"contacts:read", "api_keys:read", "api_keys:write"}}).http(200)
			c.with(key, "POST", "/api/v1/contacts", obj{}).failure(denied)
			c.with(key, "POST", "/api/v1/lists", obj{"name": "l"}).failure(denied)
			c.with(key, "GET", "/api/v1/contacts", nil).success()
			c.with(key, "GET", "/api/v1/key", nil).success().eq("data.effective_permissions", []string{"contacts:read"}).eq("data.permissions", []string{"contacts:read", "contacts:write", "lists:write"})
			// It has what its creator has now, and never more than it was given.
			c.console("PATCH", "/users/"+creator.id, obj{"permissions": append([]string{"campaigns:read"}, all...)}).http(200)
			c.with(key, "POST", "/api/v1/contacts", obj{}).success()
			c.with(key, "GET", "/api/v1/campaign", nil).failure(denied)
			c.console("DELETE", "/users/"+creator.id, nil).http(200)
			c.with(key, "GET", "/api/v1/contacts", nil).failure(denied)
		}},
	}}
}

// person is a user of the company with these permissions, signed in.
func (c *check) person(permissions ...string) *check {
	c.Helper()
	e, password := c.mail("user"), "a password of length"
	id := c.console("POST", "/users", obj{"email": e, "password": password, "permissions": permissions}).http(200).str("data._id")
	return &check{c.T, c.world, &company{id: id, account: c.account, app: c.app, secret: c.company.secret, email: e, password: password}}
}

// neverPart is what no key can do, whatever its creator can.
func neverPart() part {
	return part{"what keys can never do", []rule{
		{"no key is given permissions for people alone", func(c *check) {
			for _, area := range personal {
				for _, deed := range []string{"read", "write"} {
					for _, list := range [][]string{{area + ":" + deed}, {"contacts:read", area + ":" + deed}} {
						c.console("POST", "/api-keys", obj{"name": "x", "permissions": list}).http(400)
					}
				}
			}
			for _, p := range c.console("POST", "/api-keys", obj{"name": "all"}).http(200).array("data.permissions") {
				area, _, _ := strings.Cut(p.(string), ":")
				if slices.Contains(personal, area) {
					c.Errorf("a key for everything has %v", p)
				}
			}
		}},
		{"the console takes no key", func(c *check) {
			key := c.newKey()
			for _, x := range []struct{ what, method, path string }{
				{"adding team members", "POST", "/users"}, {"changing team members", "PATCH", "/users/u"}, {"removing team members", "DELETE", "/users/u"}, {"listing team members", "GET", "/users"},
				{"billing", "GET", "/credits"}, {"billing", "POST", "/companies/x/credits"}, {"companies", "PATCH", "/companies/" + c.id}, {"companies", "GET", "/companies"},
				{"settings", "PUT", "/settings"}, {"settings", "GET", "/settings"}, {"settings", "POST", "/app-secret"}, {"settings", "POST", "/sender-domains"}, {"settings", "POST", "/webhooks"},
				{"creating keys", "POST", "/api-keys"}, {"listing keys", "GET", "/api-keys"}, {"revoking keys", "DELETE", "/api-keys/k"},
				{"push credentials", "PUT", "/push-credentials/webpush"}, {"push credentials", "DELETE", "/push-credentials/webpush"}, {"push credentials", "GET", "/push-credentials"},
			} {
				if a := c.with(key, x.method, "/console/api/v1"+x.path, obj{}); a.status != 401 {
					a.fault("%s: expected HTTP 401", x.what)
				}
			}
		}},
		{"Surface A has no way to any of it", func(c *check) {
			for _, path := range []string{"/users", "/team", "/members", "/billing", "/credits", "/invoices", "/settings", "/account", "/app-secret", "/api-keys", "/keys", "/push-credentials", "/push/credentials",
				"/companies", "/sender-domains", "/webhooks"} {
				for _, method := range []string{"GET", "POST"} {
					c.a(method, path, nil).failure("There is nothing at this path.")
				}
			}
		}},
		{"code with a key and without a session reads and writes contacts, lists, campaigns, push, flows, events and analytics", func(c *check) {
			flow := c.live(onEvent("by_code"), tagStep("t", "", "by code"))
			key := c.newKey()
			call := func(method, path string, body any) *answer {
				return c.with(key, method, "/api/v1"+path, body).eq("status", "success")
			}
			e, f := c.mail("code"), c.mail("code")
			call("POST", "/contacts", obj{"email": e})
			call("GET", "/contacts?email="+e, nil).length("data", 1)
			list := call("POST", "/lists", obj{"name": "by code"}).str("data._id")
			call("POST", "/lists/"+list+"/contacts", obj{"email": f})
			call("POST", "/push/send", obj{"title": "T"}).eq("message", "sent").eq("data.total", 0)
			campaign := call("POST", "/campaign", campaignOf(nil)).str("data._id")
			call("POST", "/campaign/"+campaign+"/send", obj{"list_id": []string{list}}).eq("data.emails_sent", 1)
			call("GET", "/campaign/"+campaign+"/stats", nil).eq("data.emails_sent", 1)
			call("POST", "/custom-flows/"+flow+"/pause", nil).eq("data.status", "paused")
			call("POST", "/custom-flows/"+flow+"/resume", nil).eq("data.status", "live")
			call("POST", "/custom-flows/"+flow+"/duplicate", nil).eq("data.status", "draft")
			c.with(key, "POST", "/v1/events", obj{"email": e, "event": "by_code"}).successC()
			call("GET", "/analytics/flows/overview", nil).eq("data.counts.completed", 1)
		}},
		{"everything else its creator can do is open to the key", func(c *check) {
			key := c.newKey()
			for _, path := range []string{"/contacts", "/lists", "/push/segments", "/campaign", "/custom-flows", "/analytics/overview", "/analytics/performance"} {
				c.with(key, "GET", "/api/v1"+path, nil).success()
			}
			c.with(key, "POST", "/api/v1/push/send", obj{"title": "T", "dryRun": true}).eq("status", "success")
			c.with(key, "POST", "/v1/events", obj{"email": c.mail("e"), "event": "seen"}).http(200)
		}},
		{"segments, templates and flows are made, changed and used with a key alone", func(c *check) {
			key, e := c.newKey(), c.mail("rule7")
			call := func(method, path string, body any) *answer {
				return c.with(key, method, "/api/v1"+path, body).success()
			}
			ann := call("POST", "/contacts", obj{"email": e}).str("data._id")
			definition := obj{"kind": "attribute", "field": "email", "op": "=", "value": e}
			call("POST", "/segments/preview", obj{"definition": definition}).eq("data.count", 1)
			segment := call("POST", "/segments", obj{"name": "By key", "definition": definition}).str("data._id")
			call("GET", "/segments/"+segment+"/members", nil).eq("data.members", []any{ann})
			call("GET", "/segments/"+segment+"/explain?profile_id="+ann, nil).eq("data.member", true)
			template := call("POST", "/templates", obj{"name": "By key", "subject": "Hi", "html": "<p>x</p>"}).str("data._id")
			campaign := call("POST", "/campaign", campaignOf(obj{"template_id": template})).str("data._id")
			call("PATCH", "/campaign/"+campaign, obj{"segment_ids": []string{segment}}).eq("data.segment_ids", []any{segment})
			c.with(key, "DELETE", "/api/v1/segments/"+segment, nil).eq("status", "failure") // in use
			flow := call("POST", "/custom-flows", obj{"name": "By key"}).str("data._id")
			call("PUT", "/custom-flows/"+flow, obj{"name": "By key", "trigger": obj{"type": "api"}, "steps": []obj{tagStep("t", "", "by key")}}).eq("data.status", "draft")
			call("POST", "/custom-flows/"+flow+"/publish", nil).eq("data.status", "live")
			call("POST", "/custom-flows/"+flow+"/trigger", obj{"email": e})
			call("GET", "/custom-flows/"+flow+"/enrolments/"+ann, nil).length("data.enrolments", 1)
			call("GET", "/profiles/"+ann, nil).eq("data.segments", []any{segment})
		}},
		{"a key subscribes and unsubscribes a contact, which then says so", func(c *check) {
			key := c.newKey("contacts:read", "contacts:write")
			ann := c.with(key, "POST", "/api/v1/contacts", obj{"email": c.mail("consent")}).success().str("data._id")
			for _, subscribed := range []bool{false, true, false} {
				c.with(key, "PATCH", "/api/v1/contacts/"+ann, obj{"subscribed": subscribed}).success().eq("data.subscribed", subscribed)
				c.with(key, "GET", "/api/v1/contacts/"+ann, nil).success().eq("data.subscribed", subscribed)
			}
			c.with(key, "PATCH", "/api/v1/contacts/"+ann, obj{"consents": obj{"sms": obj{"status": "subscribed", "source": "form"}}}).success().eq("data.sms_consent.status", "subscribed").eq("data.sms_consent.source", "form")
			c.with(key, "PATCH", "/api/v1/contacts/"+ann, obj{"is_subscribed": true}).failure("is_subscribed is not a field of this call. Did you mean subscribed?")
		}},
	}}
}

// endpoint is a row of the table of endpoints with the permission it asks for.
type endpoint struct{ method, path, permission string }

// endpoints are those of Surfaces A and C. A text in braces stands for an id that
// is not there. Where the interface shows no permission, ours is the natural one.
var endpoints = []endpoint{
	{"GET", "/api/v1/push/segments", "segments:read"},
	{"POST", "/api/v1/contacts", "contacts:write"},
	{"GET", "/api/v1/contacts", "contacts:read"},
	{"PATCH", "/api/v1/contacts/{id}", "contacts:write"},
	{"POST", "/api/v1/push/send", "campaigns:write"},
	{"POST", "/api/v1/lists", "lists:write"},
	{"POST", "/api/v1/lists/{id}/contacts", "lists:write"},
	{"POST", "/api/v1/campaign", "campaigns:write"},
	{"POST", "/api/v1/campaign/{id}/send", "campaigns:write"},
	{"GET", "/api/v1/campaign/{id}/stats", "campaigns:read"},
	{"GET", "/api/v1/campaign", "campaigns:read"},
	{"GET", "/api/v1/campaign/{id}/recipients/activity", "campaigns:read"},
	{"POST", "/api/v1/campaign/{id}/ab-test/start", "campaigns:write"},
	{"GET", "/api/v1/analytics/overview", "analytics:read"},
	{"GET", "/api/v1/analytics/performance", "analytics:read"},
	{"GET", "/api/v1/analytics/flows/overview", "analytics:read"},
	{"GET", "/api/v1/custom-flows", "flows:read"},
	{"POST", "/api/v1/custom-flows/{id}/pause", "flows:write"},
	{"POST", "/api/v1/custom-flows/{id}/resume", "flows:write"},
	{"PATCH", "/api/v1/custom-flows/{id}/toggle", "flows:write"},
	{"PATCH", "/api/v1/custom-flows/{id}", "flows:write"},
	{"POST", "/api/v1/custom-flows/{id}/duplicate", "flows:write"},
	{"GET", "/api/v1/custom-flows/{id}", "flows:read"},
	{"POST", "/api/v1/custom-flows/{id}/trigger", "flows:write"},
	{"GET", "/api/v1/analytics/flows/{id}", "analytics:read"},
	{"POST", "/v1/email/send", "campaigns:write"},
	{"POST", "/v1/events", "events:write"},

	// What keys have because people have it; streams and exports aside.
	{"GET", "/api/v1/segments", "segments:read"},
	{"POST", "/api/v1/segments", "segments:write"},
	{"POST", "/api/v1/segments/preview", "segments:read"},
	{"GET", "/api/v1/segments/{id}", "segments:read"},
	{"PUT", "/api/v1/segments/{id}", "segments:write"},
	{"DELETE", "/api/v1/segments/{id}", "segments:write"},
	{"GET", "/api/v1/segments/{id}/members", "segments:read"},
	{"GET", "/api/v1/segments/{id}/explain", "segments:read"},
	{"GET", "/api/v1/templates", "templates:read"},
	{"POST", "/api/v1/templates", "templates:write"},
	{"GET", "/api/v1/templates/{id}", "templates:read"},
	{"PUT", "/api/v1/templates/{id}", "templates:write"},
	{"DELETE", "/api/v1/templates/{id}", "templates:write"},
	{"GET", "/api/v1/catalog", "events:read"},
	{"POST", "/api/v1/catalog", "events:write"},
	{"POST", "/api/v1/custom-flows", "flows:write"},
	{"PUT", "/api/v1/custom-flows/{id}", "flows:write"},
	{"DELETE", "/api/v1/custom-flows/{id}", "flows:write"},
	{"GET", "/api/v1/custom-flows/{id}/validate", "flows:read"},
	{"POST", "/api/v1/custom-flows/{id}/publish", "flows:write"},
	{"GET", "/api/v1/custom-flows/{id}/enrolments", "flows:read"},
	{"GET", "/api/v1/profiles/{id}", "contacts:read"},
	{"GET", "/api/v1/profiles/search", "contacts:read"},
	{"GET", "/api/v1/profiles/{id}/events", "events:read"},
	{"POST", "/api/v1/profiles/{id}/consent", "contacts:write"},
	{"POST", "/api/v1/profiles/{id}/suppression", "contacts:write"},
	{"DELETE", "/api/v1/profiles/{id}/suppression", "contacts:write"},
}

func permissionPart() part {
	missing := regexp.MustCompile(`\{[a-z]+\}`)
	var all []string
	for _, a := range areas {
		all = append(all, a+":read", a+":write")
	}
	return part{"permissions", []rule{
		{"each endpoint asks for its permission and for nothing else", func(c *check) {
			for _, permission := range []string{"segments:read", "contacts:write", "contacts:read", "campaigns:write", "campaigns:read", "lists:write", "flows:read", "flows:write", "analytics:read", "events:write",
				"events:read", "segments:write", "templates:read", "templates:write"} {
				with := c.newKey(permission)
				without := c.newKey(slices.DeleteFunc(slices.Clone(all), func(p string) bool { return p == permission })...)
				for _, e := range endpoints {
					path := missing.ReplaceAllString(e.path, "none")
					yes, no := c.with(with, e.method, path, obj{}), c.with(without, e.method, path, obj{})
					may := e.permission == permission
					for _, x := range []struct {
						a   *answer
						may bool
					}{{yes, may}, {no, !may}} {
						if got := x.a.body.(obj)["message"] != denied; got != x.may {
							x.a.fault("%s with the permission %s: let in %v", e.path, permission, got)
						}
					}
				}
			}
		}},
		{"the refusal is HTTP 200 on Surface A, with its fixed message, and changes nothing", func(c *check) {
			key := c.newKey("push:read")
			for _, e := range endpoints {
				if strings.HasPrefix(e.path, "/api/v1") {
					c.with(key, e.method, missing.ReplaceAllString(e.path, "none"), obj{"name": "x"}).failure(denied).only("", "status", "message", "data").only("data")
				}
			}
			c.a("GET", "/lists", nil).success().length("data", 0)
		}},
	}}
}
