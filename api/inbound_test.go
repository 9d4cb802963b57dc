package api

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/providers"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver/messages"
)

// report signs a report as the generic form demands and hands it in.
func (m *mailing) report(secret, body string) (int, providers.InboundResult) {
	m.t.Helper()
	s, err := webhook.ParseSecret(secret)
	ok(m.t, err)
	now := m.clock.Now()
	res, b := m.service.send("POST", providers.ReportPath+m.creds.AccountID+"/generic", body, webhook.HeaderID, "msg_1", webhook.HeaderTimestamp, strconv.FormatInt(now.Unix(), 10),
		webhook.HeaderSignature, webhook.Sign("msg_1", now, []byte(body), []webhook.Secret{s}))
	var a struct{ Data providers.InboundResult }
	ok(m.t, json.Unmarshal(b, &a))
	return res.StatusCode, a.Data
}

func TestReportsOfProvidersAreRecordedOnce(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	for _, e := range []string{"ada@x.io", "bob@x.io", "eve@x.io", "dan@x.io", "soft@x.io"} {
		m.contact(e)
	}
	m.send()
	var set providers.Credential
	m.want("PUT", "/inbound-providers/generic", `{"generate":true}`, &set)
	secret := set.Once["secrets"].([]any)[0].(string)
	if set.Details["path"] != providers.ReportPath+m.creds.AccountID+"/generic" {
		t.Errorf("%+v", set)
	}
	ada := m.mail("ada@x.io")
	body := fmt.Sprintf(`[{"type":"bounce","hard":true,"send_id":%q,"reason":"550 no such user","id":"1"},
		{"type":"complaint","message_id":"<%s>","id":"2"},{"type":"delivery","recipient":"EVE@x.io","id":"3"},{"type":"unsubscribe","recipient":"dan@x.io","id":"4"},
		{"type":"click","send_id":%q,"url":"https://shop.example/b","user_agent":"Mimecast","id":"5"},{"type":"bounce","hard":true,"recipient":"nobody@x.io","id":"6"},
		{"type":"bounce","hard":true,"send_id":"%016x-%s","id":"7"}]`,
		ada.SendID, m.mail("bob@x.io").ID, m.mail("eve@x.io").SendID, m.account, hex.EncodeToString(make([]byte, 16)))
	// Nor does one about a test of a campaign, whichever address it went to.
	test := messages.TestSend([15]byte{1})
	tests := fmt.Sprintf(`[{"type":"bounce","hard":true,"send_id":%q,"recipient":"eve@x.io","id":"8"},{"type":"complaint","message_id":"<%016x.%x@muster.local>","recipient":"eve@x.io","id":"9"}]`,
		compose.SendText(m.account, test), m.account, test[:])
	if status, got := m.report(secret, tests); status != 200 || got != (providers.InboundResult{Events: 2, Recorded: 0, Ignored: 2}) {
		t.Fatalf("%d %+v", status, got)
	}
	for range 2 { // the same report again changes nothing
		if status, got := m.report(secret, body); status != 200 || got != (providers.InboundResult{Events: 7, Recorded: 5, Ignored: 2}) {
			t.Fatalf("%d %+v", status, got)
		}
	}
	for e, want := range map[string]string{"ada@x.io": "Bounced", "bob@x.io": "Complained", "eve@x.io": "Subscribed", "dan@x.io": "Unsubscribed"} {
		if got := m.profile(e).Status("email", m.clock.Now().UnixMilli()); got != want {
			t.Errorf("%s is %s, expected %s", e, got, want)
		}
	}
	if r, n := m.run(); n.Bounced != 1 || n.Complained != 1 || r.Clicks != 0 {
		t.Errorf("%+v %+v", r, n)
	}
	var history struct {
		Events []struct {
			EventType string `json:"event_type"`
		}
	}
	m.want("GET", "/profiles/"+m.profiles["ada@x.io"]+"/events", "", &history)
	bounces := 0
	for _, e := range history.Events {
		if e.EventType == "email_bounced" {
			bounces++
		}
	}
	if bounces != 1 {
		t.Errorf("%d bounces on record", bounces)
	}
	for i := range 3 {
		m.report(secret, fmt.Sprintf(`{"type":"bounce","recipient":"soft@x.io","id":"soft-%d"}`, i))
		if got, want := m.profile("soft@x.io").SuppressionReason("email"), map[bool]string{true: "bounced"}[i == 2]; got != want {
			t.Errorf("after soft bounce %d: %q", i+1, got)
		}
	}
	if r := m.send(); r.Sent != 1 {
		t.Errorf("the next campaign: %+v", r)
	}
}

// TestInboundLetsInWhoProvesIt: everybody else gets the same answer.
func TestInboundLetsInWhoProvesIt(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.contact("ada@x.io")
	m.send()
	path := providers.ReportPath + m.creds.AccountID
	var want string
	same := func(name, path, body string, headers ...string) {
		t.Helper()
		res, b := m.service.send("POST", path, body, headers...)
		if want == "" {
			want = string(b)
		}
		if res.StatusCode != 401 || string(b) != want {
			t.Errorf("%s: %d %s", name, res.StatusCode, b)
		}
	}
	hostile := fmt.Sprintf(`{"type":"bounce","hard":true,"send_id":%q,"RecordType":"HardBounce"}`, m.mail("ada@x.io").SendID)
	same("nothing is set up", path+"/generic", hostile)
	same("no such provider", path+"/x", hostile)
	same("no such account", providers.ReportPath+"acc_0000000000000001/generic", hostile)
	same("no account", providers.ReportPath+"x/generic", hostile)
	same("mail without setting up", path+"/mail", hostile)
	m.want("PUT", "/inbound-providers/generic", `{"generate":true}`, nil)
	m.want("PUT", "/inbound-providers/mailgun", `{"signing_key":"key-0123456789"}`, nil)
	m.want("PUT", "/inbound-providers/postmark", `{"secret":"a secret of some length"}`, nil)
	m.want("PUT", "/inbound-providers/ses", `{"topics":["arn:aws:sns:eu-west-1:1:t"]}`, nil)
	m.want("PUT", "/inbound-providers/mail", `{"token":"a token of some length"}`, nil)
	same("unsigned", path+"/generic", hostile)
	same("unsigned for SES", path+"/ses", `{"Type":"Notification"}`)
	same("raw delivery that was not set up", path+"/ses", hostile, "X-Amz-Sns-Rawdelivery", "true")
	same("unsigned for Postmark", path+"/postmark?secret=guess", hostile)
	same("unsigned for Mailgun", path+"/mailgun", `{"signature":{"timestamp":"1","token":"t","signature":"s"}}`)
	same("mail without a token", path+"/mail", hostile)
	same("mail with another token", path+"/mail/another-token-of-length", hostile)
	same("mail with a wrong header", path+"/mail", hostile, "Authorization", "Bearer wrong")
	if m.profile("ada@x.io").SuppressionReason("email") != "" {
		t.Error("an unauthenticated report was taken")
	}
	for _, x := range []struct {
		path, body string
		status     int
	}{
		{"/postmark?secret=a+secret+of+some+length", "{", 400},
		{"/mail/a%20token%20of%20some%20length", strings.Repeat("x", 2<<20), 413},
		{"/mail/a%20token%20of%20some%20length", "Subject: lunch?\r\n\r\nAt noon?\r\n", 200},
	} {
		if res, b := m.service.send("POST", path+x.path, x.body); res.StatusCode != x.status {
			t.Errorf("%s: %d %s", x.path, res.StatusCode, b)
		}
	}
	if res, _ := m.service.send("GET", path+"/generic", ""); res.StatusCode != 401 { // WhatsApp alone verifies its address so
		t.Errorf("GET: %d", res.StatusCode)
	}
}

// TestMailIsTrustedByMessage: mail acts only when it names a message of ours, and
// the names of other messages cannot be worked out from one.
func TestMailIsTrustedByMessage(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	for _, e := range []string{"ada@x.io", "bob@x.io", "eve@x.io"} {
		m.contact(e)
	}
	m.send()
	m.want("PUT", "/inbound-providers/mail", `{"token":"a-token-of-some-length"}`, nil)
	hand := func(mail string, recorded int) {
		t.Helper()
		res, b := m.service.send("POST", providers.ReportPath+m.creds.AccountID+"/mail", strings.ReplaceAll(mail, "\n", "\r\n"), "Authorization", "Bearer a-token-of-some-length", "Content-Type", "message/rfc822")
		var a struct{ Data providers.InboundResult }
		ok(t, json.Unmarshal(b, &a))
		if res.StatusCode != 200 || a.Data.Recorded != recorded {
			t.Errorf("%d %s for\n%s", res.StatusCode, b, mail)
		}
	}
	status := func(e, want string) {
		t.Helper()
		if got := m.profile(e).Status("email", m.clock.Now().UnixMilli()); got != want {
			t.Errorf("%s is %s, expected %s", e, got, want)
		}
	}
	_, id, _ := strings.Cut(m.mail("ada@x.io").SendID, "-")
	var send messages.ID
	_, err := hex.Decode(send[:], []byte(id))
	ok(t, err)
	unsubscribe := func(to string) string {
		return "From: ada@x.io\nTo: " + to + "\nMessage-ID: <" + to + ">\nSubject: unsubscribe\n\nplease\n"
	}
	// The next recipient's number, with the seal of the one that is known.
	guess := send
	guess[8]++
	hand(unsubscribe("unsubscribe+"+hex.EncodeToString(guess[:])+"@m.example"), 0)
	hand(unsubscribe("unsubscribe@m.example"), 0)
	hand(unsubscribe(compose.UnsubscribeAddress(send, "m.example")), 1)
	status("ada@x.io", "Unsubscribed")
	status("bob@x.io", "Subscribed")
	// A token at the end of the subject.
	_, link, _ := m.links("eve@x.io")
	hand("From: eve@x.io\nTo: unsubscribe@m.example\nMessage-ID: <t@x>\nSubject: unsubscribe "+strings.TrimPrefix(link, "/t/")+"\n\n\n", 1)
	status("eve@x.io", "Unsubscribed")
	_, _, pixel := m.links("bob@x.io")
	hand("From: eve@x.io\nTo: unsubscribe@m.example\nMessage-ID: <u@x>\nSubject: unsubscribe "+strings.TrimPrefix(pixel, "/t/")+"\n\n\n", 0)
	dsn := func(original string) string {
		return "From: mailer-daemon@mx.example\nTo: bounce@m.example\nMessage-ID: <" + original + ".dsn@mx>\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n" +
			"--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example\n\nFinal-Recipient: rfc822; bob@x.io\nAction: failed\nStatus: 5.1.1\n\n" +
			"--b\nContent-Type: message/rfc822\n\nMessage-ID: <" + original + ">\nSubject: s\n\nhi\n--b--\n"
	}
	hand(dsn("made-up@x.io"), 0) // it names the address, but no message
	status("bob@x.io", "Subscribed")
	hand(dsn(m.mail("bob@x.io").ID), 1)
	status("bob@x.io", "Bounced")
}

// TestCredentialsAreNeverShown: what is secret goes in and never comes out, and
// only settings:write may see what is set.
func TestCredentialsAreNeverShown(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.want("PUT", "/push-credentials/webpush", `{"generate":true,"subject":"mailto:a@b.example"}`, nil)
	var list []providers.Credential
	m.want("GET", "/push-credentials", "", &list)
	if len(list) != 1 || list[0].Details["public_key"] == "" || list[0].Details["subject"] != "mailto:a@b.example" || len(list[0].Details) != 2 {
		t.Errorf("%+v", list)
	}
	keys, err := push.GenerateWebCredentials("mailto:c@d.example")
	ok(t, err)
	raw, err := json.Marshal(keys)
	ok(t, err)
	m.want("PUT", "/push-credentials/webpush", string(raw), nil)
	m.want("PUT", "/message-providers/sms", `{"preset":"twilio","account_sid":"AC0123456789abcdef0123456789abcdef","auth_token":"tw-secret-0123456789abcdef012345","from":"+4930123"}`, nil)
	m.want("PUT", "/message-providers/im", `{"url":"https://im.example/send?key=url-secret","format":"json","body":"{\"to\":\"{{to}}\",\"text\":\"{{body}}\"}","token":"im-secret","headers":[{"name":"X-Key","value":"header-secret"}]}`, nil)
	m.want("PUT", "/inbound-providers/mailgun", `{"signing_key":"mg-secret"}`, nil)
	m.want("PUT", "/inbound-providers/postmark", `{"user":"u","password":"pm-secret-of-length"}`, nil)
	m.want("PUT", "/inbound-providers/mail", `{"token":"mail-secret-of-length"}`, nil)
	secrets := []string{keys.PrivateKey, "tw-secret", "url-secret", "im-secret", "header-secret", "mg-secret", "pm-secret", "mail-secret"}
	for _, path := range []string{"/push-credentials", "/message-providers", "/inbound-providers"} {
		_, a := m.get(path)
		for _, s := range secrets {
			if strings.Contains(string(a.Data), s) {
				t.Errorf("%s shows %s: %s", path, s, a.Data)
			}
		}
	}
	for _, x := range []struct{ path, body string }{
		{"/push-credentials/webpush", `{"public_key":"x","private_key":"y","subject":"mailto:a@b.c"}`}, {"/push-credentials/webpush", `{"generate":true}`},
		{"/push-credentials/fcm", `{}`}, {"/push-credentials/apns", `{"key_id":"x"}`}, {"/push-credentials/sms", `{}`},
		{"/message-providers/sms", `{}`}, {"/message-providers/sms", `{"preset":"x"}`}, {"/message-providers/sms", `{"url":"http://x.example","format":"json","body":"{}"}`},
		{"/inbound-providers/generic", `{}`}, {"/inbound-providers/generic", `{"secrets":["short"]}`}, {"/inbound-providers/mail", `{"token":"short"}`},
		{"/inbound-providers/ses", `{}`}, {"/inbound-providers/ses", `{"generate":true}`}, {"/inbound-providers/postmark", `{"secret":"short"}`},
		{"/inbound-providers/sendgrid", `{"public_key":"x"}`}, {"/inbound-providers/mailgun", `{}`}, {"/inbound-providers/mailgun", `{"other":1}`},
	} {
		if status, a := m.do("PUT", x.path, x.body); status != 400 && status != 404 {
			t.Errorf("PUT %s %s: %d %s", x.path, x.body, status, a.Message)
		}
	}
	for _, path := range []string{"/push-credentials/webpush", "/message-providers/im", "/inbound-providers/mail"} {
		m.want("DELETE", path, "", nil)
		if status, _ := m.do("DELETE", path, ""); status != 404 {
			t.Errorf("DELETE %s again: %d", path, status)
		}
	}
	// A user with all permissions of an API key, and that of reading settings, may
	// not see them.
	permissions, err := json.Marshal(append(operation.KeyPermissions(), "settings:read"))
	ok(t, err)
	m.want("POST", "/users", fmt.Sprintf(`{"email":"x@x.io","password":"long enough password","permissions":%s}`, permissions), nil)
	var d struct{ Token string }
	m.want("POST", "/session", `{"email":"x@x.io","password":"long enough password"}`, &d)
	m.token = d.Token
	for _, path := range []string{"/push-credentials", "/message-providers", "/inbound-providers"} {
		if status, _ := m.get(path); status != 403 {
			t.Errorf("GET %s: %d", path, status)
		}
	}
}

func TestDevicesInTheConsole(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	id := m.contact("ada@x.io")
	path := "/profiles/" + id + "/devices"
	var d record.Device
	m.want("POST", path, `{"kind":"apns","device_id":"phone","address":"`+strings.Repeat("ab", 32)+`"}`, &d)
	if d.ID != "phone" || d.Kind != "apns" {
		t.Errorf("%+v", d)
	}
	var list []record.Device
	m.want("GET", path, "", &list)
	if len(list) != 1 || list[0] != d {
		t.Errorf("%+v", list)
	}
	refused := map[string]int{`{"kind":"sms","address":"x"}`: 400, `{"kind":"apns","address":"x"}`: 400, `{"kind":"apns","address":"` + strings.Repeat("ab", 32) + `","x":1}`: 400}
	for _, body := range slices.Sorted(maps.Keys(refused)) {
		if status, _ := m.do("POST", path, body); status != refused[body] {
			t.Errorf("%s: %d", body, status)
		}
	}
	m.want("DELETE", path+"/phone", "", nil)
	for _, x := range []string{"GET /profiles/none/devices", "DELETE " + path + "/phone", "DELETE /profiles/none/devices/x"} {
		method, p, _ := strings.Cut(x, " ")
		if status, _ := m.do(method, p, ""); status != 404 {
			t.Errorf("%s: %d", x, status)
		}
	}
}
