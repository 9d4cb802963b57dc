package keyapi

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation/operationtest"
)

// TestStrangeFieldsAreRefused: no operation takes a field or a parameter that it does
// not have; the refusal names it, and nothing is done.
func TestStrangeFieldsAreRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, func(o *Options) { o.PerMinute = 1 << 20 })
	entered := ""
	tries := 0
	for _, x := range []*surface{s.api.surfaceA, s.api.surfaceC} {
		for i := range x.routes {
			r := &x.routes[i]
			r.Handle = func(*keycall.Call) (any, error) { entered = r.Path; return nil, nil }
			for _, q := range operationtest.Refused(t, x.Prefix, &r.Operation) {
				if slices.Contains([]string{"setFlowStatus", "createFlowByKey", "updateFlowByKey"}, r.ID) && !strings.Contains(q.Path, "?") {
					continue // they have words of their own: TestFlowTransitions, TestFlowsByKey
				}
				if r.ID == "v1RecordEvent" && !strings.Contains(q.Path, "?") {
					continue // the account's settings decide, which the handler looks up
				}
				entered = ""
				res, b := s.with(s.creds.APIKey, q.Method, q.Path, q.Body)
				if m := failureOf(t, res.StatusCode, b); entered != "" || !strings.HasPrefix(m, q.Names) || x.name == "c" && (res.StatusCode != 400 || !strings.Contains(b, `"code":"invalid_request"`)) {
					t.Errorf("%s %s %s: %d %s", q.Method, q.Path, q.Body, res.StatusCode, b)
				}
				tries++
			}
		}
	}
	if tries < 150 {
		t.Errorf("only %d requests were made", tries)
	}
}

// TestStrangeFieldsHint: what is probably meant is said.
func TestStrangeFieldsHint(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	for _, x := range []struct{ method, path, body, want string }{
		{"POST", "/api/v1/campaign/none/send", `{"list_ids":["lst_1"]}`, "list_ids is not a field of this call. Did you mean list_id?"},
		{"POST", "/api/v1/push/send", `{"title":"x","segmentID":"seg_1"}`, "segmentID is not a field of this call. Did you mean segmentId?"},
		{"POST", "/api/v1/push/send", `{"title":"x","segment_id":"seg_1"}`, "segment_id is not a field of this call. Did you mean segmentId?"},
		{"POST", "/api/v1/contacts", `{"eMail":"a@x.io"}`, "eMail is not a field of this call. Did you mean email?"},
		{"PATCH", "/api/v1/contacts/none", `{"unsubscribed":false}`, "unsubscribed is not a field of this call. Did you mean subscribed?"},
		{"PATCH", "/api/v1/contacts/none", `{"status":"Bounced"}`, "status is not a field of this call: " + byConsents},
		{"PATCH", "/api/v1/contacts/none", `{"tags":["vip"]}`, `tags is not a field of this call: send attributes with the whole list, such as {"tags": ["vip"]}`},
		{"POST", "/api/v1/contacts", `{"email":"a@x.io","subscribed":false}`, "subscribed is not a field of this call: " + afterwards},
		{"POST", "/api/v1/contacts", `{"email":"a@x.io","attributes":{"plan":"pro"}}`, "attributes is not a field of this call: " + byUpdate},
		{"POST", "/api/v1/lists/none/contacts", `{"email":"a@x.io","subscribed":false}`, "subscribed is not a field of this call: " + afterwards},
		{"POST", "/api/v1/lists", `{"title":"News"}`, "title is not a field of this call; leave it out, or use description, name, public, public_description or public_name"},
		{"POST", "/api/v1/campaign/none/send", `{"dryRun":true}`, "dryRun is not a field of this call: " + noDryRun},
		{"POST", "/api/v1/campaign/none/send", `{"scheduled_at":"2026-12-01T09:00:00Z"}`, "scheduled_at is not a field of this call: " + noScheduling},
		{"POST", "/v1/email/send", `{"email":"a@x.io","template_id":"tpl_1"}`, "email is not a field of this call: " + oneRecipient},
		{"POST", "/api/v1/campaign/none/ab-test/start", `{"variants":[{"subject":"a"},{"Subject":"b"}]}`, "variants[1].Subject is not a field of this call. Did you mean variants[1].subject?"},
		{"POST", "/api/v1/custom-flows/none/pause", `{"hours":3}`, "hours is not a field of this call; leave it out"},
		{"POST", "/v1/email/send", `{"to":"a@x.io","template":"tpl_1"}`, "template is not a field of this call. Did you mean template_id?"},
		{"POST", "/v1/email/send", `{"to":"a@x.io","templateId":"tpl_1"}`, "templateId is not a field of this call. Did you mean template_id?"},
		{"GET", "/api/v1/contacts?e_mail=a@x.io", "", "e_mail is not a parameter of this call. Did you mean email?"},
		{"GET", "/api/v1/campaign?page=2", "", "page is not a parameter of this call; leave it out of the query"},
	} {
		res, b := s.with(s.creds.APIKey, x.method, x.path, x.body)
		if m := failureOf(t, res.StatusCode, b); m != x.want {
			t.Errorf("%s %s %s:\n%s\nwant\n%s", x.method, x.path, x.body, m, x.want)
		}
	}
	// An object without fields is as good as no body.
	for _, body := range []string{"", "{}", "null"} {
		if res, b := s.with(s.creds.APIKey, "POST", "/api/v1/custom-flows/none/pause", body); failureOf(t, res.StatusCode, b) != "there is no flow with this id" {
			t.Errorf("%q: %s", body, b)
		}
	}
}
