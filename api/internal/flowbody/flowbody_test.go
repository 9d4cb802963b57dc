package flowbody

import (
	"strings"
	"testing"
)

// TestStatus: only a status is taken, and what is refused is named.
func TestStatus(t *testing.T) {
	for _, x := range []struct{ body, status, fault string }{
		{`{"status":"paused"}`, "paused", ""},
		{" {\n\"status\" : \"live\" } ", "live", ""},
		{`{"\u0073tatus":"live"}`, "live", ""},
		{`{"status":"live","name":"n"}`, "", "name must not be given"},
		{`{"status":"paused","steps":[]}`, "", "steps must not be given"},
		{`{"status":"paused","Status":"live"}`, "", "Status must not be given"},
		{`{"STATUS":"live"}`, "", "STATUS must not be given"},
		{`{"status":"live","":1}`, "", `[""] must not be given`},
		{`{"status":"live","status":"paused"}`, "", "status must be given only once"},
		{`{}`, "", "status must be given: paused or live"},
		{`{"status":null}`, "", "status must be a string, not null"},
		{`{"status":"draft"}`, "", "status must be one of paused, live"},
		{`{"status":"Live"}`, "", "status must be one of paused, live"},
		{`{"status":["live"]}`, "", "status must be a string, not an array"},
		{``, "", "body must be valid JSON"},
		{`{"status":"live"}{}`, "", "body must be valid JSON"},
		{`["status"]`, "", "body must be an object, not an array"},
		{`null`, "", "body must be an object, not null"},
		{"{\"status\":\"\xff\"}", "", "body must be valid UTF-8"},
	} {
		status, err := Status([]byte(x.body))
		if status != x.status || (err == nil) != (x.fault == "") || err != nil && !strings.HasPrefix(err.Error(), x.fault) {
			t.Errorf("%s: %q, %v", x.body, status, err)
		}
	}
}

func TestTrigger(t *testing.T) {
	got, err := Trigger("flw", []byte(`{"email":"a@x.io","external_id":null,"phone":"+1","data":{"a": [1, 2]},"idempotency_key":"k","more":1}`))
	if err != nil || got.ID != "flw" || got.Email != "a@x.io" || got.ExternalID != "" || got.Phone != "+1" || string(got.Data) != `{"a":[1,2]}` || got.Key != "k" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := Trigger("flw", []byte(`{"data":null}`)); err != nil || got.Data != nil {
		t.Errorf("%+v, %v", got, err)
	}
	for body, fault := range map[string]string{
		`{"email":1}`:            "email must be a string, not a number",
		`{"data":[]}`:            "data must be an object, not an array",
		`{"data":{"a":1,"a":2}}`: "data.a must be given only once",
		`{"phone":"` + strings.Repeat("1", 513) + `"}`: "phone must have at most 512 bytes",
		`{"idempotency_key":"\u0000"}`:                 "idempotency_key must not contain the NUL character",
		`"a"`:                                          "body must be an object, not a string",
	} {
		if _, err := Trigger("flw", []byte(body)); err == nil || !strings.HasPrefix(err.Error(), fault) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// FuzzStatus: a status comes only of an object that has nothing else.
func FuzzStatus(f *testing.F) {
	for _, x := range []string{`{"status":"live"}`, `{"status":"paused","a":{}}`, `{`, ``} {
		f.Add([]byte(x))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if status, err := Status(body); err == nil && status != "live" && status != "paused" || err != nil && (status != "" || err.Error() == "") {
			t.Errorf("%q: %q, %v", body, status, err)
		}
		_, _ = Trigger("f", body)
	})
}
