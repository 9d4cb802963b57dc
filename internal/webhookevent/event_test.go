package webhookevent

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestPayload(t *testing.T) {
	at := time.Date(2026, 3, 1, 13, 4, 5, 678999999, time.FixedZone("", 3600))
	got, err := Payload(EmailOpened, at, json.RawMessage(" {\"a\": 1,\n\"b\":\"x y\"} "))
	if want := `{"type":"email.opened","timestamp":"2026-03-01T12:04:05.678Z","data":{"a":1,"b":"x y"}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	for name, data := range map[string]string{"email.opend": "{}", EmailOpened: "[]", EmailSent: "", EmailClicked: "{}{}", EmailBounced: "{", SMSSent: "null"} {
		if got, err := Payload(name, at, json.RawMessage(data)); err == nil {
			t.Errorf("%s with %q: %s", name, data, got)
		}
	}
}

func TestSubscriptions(t *testing.T) {
	for entry, ok := range map[string]bool{"*": true, EmailOpened: true, "email.*": true, "analytics.*": true, "e*": false, ".*": false, "*.*": false, "mail.*": false, "": false} {
		err := CheckSubscription(entry)
		if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "events") {
			t.Errorf("%q: %v", entry, err)
		}
	}
	for _, c := range []struct {
		entries []string
		name    string
		want    bool
	}{
		{[]string{"*"}, SMSSent, true},
		{[]string{"email.*"}, EmailClicked, true},
		{[]string{"email.*"}, SMSSent, false},
		{[]string{SMSFailed, SMSSent}, SMSSent, true},
		{[]string{SMSFailed}, SMSSent, false},
		{[]string{"e*"}, EmailClicked, false},
		{nil, EmailClicked, false},
		{nil, EndpointTest, true},
	} {
		if got := Subscribed(c.entries, c.name); got != c.want {
			t.Errorf("%v covers %s: %v", c.entries, c.name, got)
		}
	}
	seen := map[string]bool{}
	for _, ty := range Types() {
		if seen[ty.Name] || ty.Doc == "" || CheckSubscription(ty.Name) != nil {
			t.Errorf("%+v", ty)
		}
		seen[ty.Name] = true
	}
}
