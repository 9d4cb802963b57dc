package keyapi

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestConsentOfSuppressedIsWarnedOf: a consent for a channel on which the contact is
// suppressed is put on record, and the answer says that nothing is sent all the same.
func TestConsentOfSuppressedIsWarnedOf(t *testing.T) {
	t.Parallel()
	k := keyCaller{newService(t, nil)}
	var x struct {
		ID       string `json:"_id"`
		Warning  string
		Consents map[string]struct{ Status, Source string }
	}
	k.must("POST", "/contacts", `{"email":"ann@x.io","phone":"+491"}`, &x)
	path, profile := "/contacts/"+x.ID, "/profiles/"+x.ID
	patch := func(body, want string) {
		t.Helper()
		x.Warning = ""
		if k.must("PATCH", path, body, &x); x.Warning != want {
			t.Errorf("PATCH %s: warning %q, want %q", body, x.Warning, want)
		}
	}
	// set makes the call of the console for one channel; its message has the warning.
	set := func(body, want string) {
		t.Helper()
		_, b := k.send("POST", "/console/api/v1"+profile+"/consent", body, "Authorization", "Bearer "+k.token)
		var a struct{ Status, Message string }
		ok(t, json.Unmarshal([]byte(b), &a))
		if a.Status != "success" || a.Message != want {
			t.Errorf("%s: %s, want the message %q", body, b, want)
		}
		if m := k.must("POST", profile+"/consent", body, nil); m != want {
			t.Errorf("%s by a key: message %q, want %q", body, m, want)
		}
	}
	both := `{"consents":{"email":{"status":"subscribed","source":"form"},"sms":{"status":"subscribed"}}}`
	patch(both, "")
	set(`{"channel":"email","status":"subscribed"}`, "")
	k.console1("POST", profile+"/suppression", `{"channel":"email","reason":"bounced"}`, nil)
	const bounced = "email: the consent is on record, but nothing is sent: the address is suppressed (bounced); lift the suppression first"
	patch(`{"first_name":"Ann"}`, "")
	patch(both, bounced)
	set(`{"channel":"email","status":"subscribed"}`, bounced)
	set(`{"channel":"sms","status":"subscribed"}`, "")
	set(`{"channel":"email","status":"unsubscribed"}`, "")
	patch(`{"consents":{"email":{"status":"unsubscribed"}}}`, "")
	k.console1("POST", profile+"/suppression", `{"channel":"sms","reason":"complained"}`, nil)
	patch(both, bounced+"; "+strings.NewReplacer("email", "sms", "bounced", "complained").Replace(bounced))
	if x.Consents["email"].Status != "subscribed" || x.Consents["sms"].Status != "subscribed" {
		t.Errorf("%+v", x.Consents)
	}
	for _, channel := range []string{"email", "sms"} {
		k.console1("DELETE", profile+"/suppression?channel="+channel, "", nil)
	}
	patch(both, "")
}
