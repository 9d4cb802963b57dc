package keyapi

import (
	"encoding/json"
	"testing"
)

// TestRecordsOfBothCalls: the console answers campaigns, lists and devices in the
// same form as the calls of keys do, and with the same fields.
func TestRecordsOfBothCalls(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	call := func(method, path, body string, data any) {
		t.Helper()
		_, b := s.with(s.creds.APIKey, method, "/api/v1"+path, body)
		var a struct {
			Status string
			Data   json.RawMessage
		}
		ok(t, json.Unmarshal([]byte(b), &a))
		if a.Status != "success" {
			t.Fatalf("%s %s: %s", method, path, b)
		}
		ok(t, json.Unmarshal(a.Data, data))
	}
	var campaign, list, contact struct {
		ID string `json:"_id"`
	}
	call("POST", "/campaign", `{"name":"n","channel":2,"type":4,"date":"2026-01-01","subject":"s","body":"b","link":"https://x.io/"}`, &campaign)
	call("POST", "/lists", `{"name":"l","description":"d"}`, &list)
	call("POST", "/contacts", `{"email":"a@x.io"}`, &contact)
	call("POST", "/contacts/"+contact.ID+"/devices", `{"kind":"fcm","address":"token-of-a-device"}`, &struct{}{})
	for _, x := range []struct{ ours, console, has string }{
		{"/campaign/" + campaign.ID, "/campaigns/" + campaign.ID, "link"},
		{"/lists/" + list.ID, "/lists/" + list.ID, "contacts"},
		{"/contacts/" + contact.ID + "/devices", "/profiles/" + contact.ID + "/devices", ""},
	} {
		var ours, console json.RawMessage
		call("GET", x.ours, "", &ours)
		s.console1("GET", x.console, "", &console)
		var fields map[string]any
		if string(ours) != string(console) || x.has != "" && (json.Unmarshal(console, &fields) != nil || fields[x.has] == nil) {
			t.Errorf("%s: %s\n%s: %s", x.ours, ours, x.console, console)
		}
	}
}
