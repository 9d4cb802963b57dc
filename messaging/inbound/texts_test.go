package inbound

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // Twilio signs with it
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

const twilioURL = "https://muster.example/inbound/00000000000000a1/twilio"

// twilioRequest is a webhook as Twilio signs it.
func twilioRequest(token, address string, form url.Values) Request {
	text := address
	names := make([]string, 0, len(form))
	for n := range form {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		text += n + form.Get(n)
	}
	h := hmac.New(sha1.New, []byte(token))
	h.Write([]byte(text))
	signature := base64.StdEncoding.EncodeToString(h.Sum(nil))
	return Request{URL: address, Body: []byte(form.Encode()), Header: func(name string) string {
		if name == "X-Twilio-Signature" {
			return signature
		}
		return ""
	}}
}

// TestTwilioSignature checks the signature of the example in Twilio's own libraries.
func TestTwilioSignature(t *testing.T) {
	form := url.Values{"CallSid": {"CA1234567890ABCDE"}, "Digits": {"1234"}, "From": {"+14158675309"}, "To": {"+18005551212"}, "Caller": {"+14158675309"}}
	r := Request{URL: "https://mycompany.com/myapp.php?foo=1&bar=2", Header: func(string) string { return "RSOYDt4T1cUTdK1PDd93/VVr8B8=" }}
	if !(Twilio{AuthToken: "12345"}).signed(r, form) {
		t.Error("the example's signature does not hold")
	}
	if (Twilio{AuthToken: "12346"}).signed(r, form) || (Twilio{}).signed(r, form) {
		t.Error("it holds for another token")
	}
	r.URL += "&x"
	if (Twilio{AuthToken: "12345"}).signed(r, form) {
		t.Error("it holds for another address")
	}
}

// TestTwilio: texts, keywords and what became of messages, of SMS and WhatsApp.
func TestTwilio(t *testing.T) {
	for what, c := range map[string]struct {
		url  string
		form url.Values
		want Event // without its ID; the zero value for none
	}{
		"a text": {twilioURL, url.Values{"MessageSid": {"SM1"}, "SmsStatus": {"received"}, "From": {"+491701234567"}, "To": {"+4930123"}, "Body": {"Stop it"}},
			Event{Type: Reply, Channel: "sms", From: "+491701234567", To: "+4930123", Text: "Stop it"}},
		"a keyword that Twilio answers": {twilioURL, url.Values{"MessageSid": {"SM1"}, "SmsStatus": {"received"}, "From": {"+491701234567"}, "To": {"+4930123"}, "Body": {"cease"}, "OptOutType": {"STOP"}},
			Event{Type: Reply, Channel: "sms", From: "+491701234567", To: "+4930123", Text: "cease", Keyword: KeywordStop, Answered: true}},
		"WhatsApp": {twilioURL, url.Values{"MessageSid": {"SM1"}, "SmsStatus": {"received"}, "From": {"whatsapp:+491701234567"}, "To": {"whatsapp:+4930123"}, "Body": {"Hi"}},
			Event{Type: Reply, Channel: "whatsapp", From: "+491701234567", To: "+4930123", Text: "Hi"}},
		"delivered": {twilioURL + "?send_id=abc-1", url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"delivered"}, "From": {"+4930123"}, "To": {"+491701234567"}},
			Event{Type: Delivery, Channel: "sms", SendID: "abc-1", Phone: "+491701234567"}},
		"read": {twilioURL + "?send_id=abc-1", url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"read"}, "From": {"whatsapp:+4930123"}, "To": {"whatsapp:+491701234567"}},
			Event{Type: Open, Channel: "whatsapp", SendID: "abc-1", Phone: "+491701234567"}},
		"undelivered": {twilioURL + "?send_id=abc-1", url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"undelivered"}, "ErrorCode": {"30003"}, "From": {"+4930123"}, "To": {"+491701234567"}},
			Event{Type: Failure, Channel: "sms", SendID: "abc-1", Phone: "+491701234567", Reason: "Twilio error 30003"}},
		"a dead number": {twilioURL + "?send_id=abc-1", url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"undelivered"}, "ErrorCode": {"30005"}, "From": {"+4930123"}, "To": {"+491701234567"}},
			Event{Type: Failure, Channel: "sms", SendID: "abc-1", Phone: "+491701234567", Reason: "Twilio error 30005", Hard: true}},
		"on its way":   {twilioURL + "?send_id=abc-1", url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"sent"}, "To": {"+491701234567"}}, Event{}},
		"not ours":     {twilioURL, url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"delivered"}, "To": {"+491701234567"}}, Event{}},
		"a short code": {twilioURL, url.Values{"MessageSid": {"SM1"}, "SmsStatus": {"received"}, "From": {"12345"}, "Body": {"x"}}, Event{}},
	} {
		b, err := Twilio{AuthToken: "token"}.Parse(context.Background(), time.Time{}, twilioRequest("token", c.url, c.form))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if c.want.Type == "" {
			if len(b.Events) != 0 {
				t.Errorf("%s: %+v", what, b.Events)
			}
			continue
		}
		if len(b.Events) != 1 || b.Events[0].ID == "" {
			t.Errorf("%s: %+v", what, b.Events)
			continue
		}
		b.Events[0].ID = ""
		if !reflect.DeepEqual(b.Events[0], c.want) {
			t.Errorf("%s:\n%+v, expected\n%+v", what, b.Events[0], c.want)
		}
	}
	r := twilioRequest("other", twilioURL, url.Values{"MessageSid": {"SM1"}, "SmsStatus": {"received"}, "From": {"+491701234567"}})
	if _, err := (Twilio{AuthToken: "token"}).Parse(context.Background(), time.Time{}, r); !errors.Is(err, ErrUnauthorised) {
		t.Errorf("signed with another token: %v", err)
	}
}

// TestTwilioOptedOut: a message that Twilio did not deliver because the person had answered
// STOP is an opt-out, too.
func TestTwilioOptedOut(t *testing.T) {
	form := url.Values{"MessageSid": {"SM1"}, "MessageStatus": {"failed"}, "ErrorCode": {"21610"}, "From": {"+4930123"}, "To": {"+491701234567"}}
	b, err := Twilio{AuthToken: "token"}.Parse(context.Background(), time.Time{}, twilioRequest("token", twilioURL+"?send_id=abc-1", form))
	if err != nil || len(b.Events) != 2 || b.Events[0].Type != Failure || b.Events[1].Type != Unsubscribe || b.Events[1].SendID != "abc-1" || b.Events[0].ID == b.Events[1].ID {
		t.Errorf("%+v, %v", b.Events, err)
	}
}

func whatsAppRequest(secret, body string) Request {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(body))
	signature := "sha256=" + hex.EncodeToString(h.Sum(nil))
	return Request{Body: []byte(body), Header: func(name string) string {
		if name == "X-Hub-Signature-256" {
			return signature
		}
		return ""
	}}
}

// TestWhatsApp: a webhook with each kind of news.
func TestWhatsApp(t *testing.T) {
	const body = `{"object":"whatsapp_business_account","entry":[{"id":"1","changes":[
	{"field":"messages","value":{"messaging_product":"whatsapp","metadata":{"display_phone_number":"4930123","phone_number_id":"1062840"},
	 "messages":[
	  {"from":"491701234567","id":"wamid.1","timestamp":"1769850000","type":"text","text":{"body":"Hello"}},
	  {"from":"491701234567","id":"wamid.2","timestamp":"1769850001","type":"button","button":{"text":"Stop","payload":"p"}},
	  {"from":"491701234567","id":"wamid.3","timestamp":"1769850002","type":"interactive","interactive":{"type":"list_reply","list_reply":{"id":"1","title":"Blue"}}},
	  {"from":"491701234567","id":"wamid.4","timestamp":"1769850003","type":"image","image":{"caption":"look"}},
	  {"from":"491701234567","id":"wamid.5","timestamp":"1769850003","type":"reaction","reaction":{"emoji":"x"}}]}},
	{"field":"messages","value":{"metadata":{"phone_number_id":"1062840"},"statuses":[
	  {"id":"wamid.a","status":"sent","timestamp":"1769850004","recipient_id":"491701234567","biz_opaque_callback_data":"abc-1"},
	  {"id":"wamid.a","status":"delivered","timestamp":"1769850004","recipient_id":"491701234567","biz_opaque_callback_data":"abc-1"},
	  {"id":"wamid.a","status":"read","timestamp":"1769850005","recipient_id":"491701234567","biz_opaque_callback_data":"abc-1"},
	  {"id":"wamid.b","status":"failed","timestamp":"1769850006","recipient_id":"491701234567","biz_opaque_callback_data":"abc-2","errors":[{"code":131026,"title":"Message undeliverable","error_data":{"details":"No WhatsApp"}}]},
	  {"id":"wamid.c","status":"failed","timestamp":"1769850006","recipient_id":"491701234567","biz_opaque_callback_data":"abc-3","errors":[{"code":131050,"title":"no more advertising"}]}]}},
	{"field":"user_preferences","value":{"metadata":{"phone_number_id":"1062840"},"user_preferences":[{"wa_id":"491701234567","detail":"d","category":"marketing_messages","value":"stop","timestamp":1769850007}]}},
	{"field":"messages","value":{"metadata":{"phone_number_id":"77"},"messages":[{"from":"491701234567","id":"wamid.9","type":"text","text":{"body":"to another number"}}]}}]}]}`
	b, err := WhatsApp{AppSecret: "secret", PhoneNumberID: "1062840"}.Parse(context.Background(), time.Time{}, whatsAppRequest("secret", body))
	if err != nil {
		t.Fatal(err)
	}
	const me = "+491701234567"
	want := []Event{
		{Type: Reply, From: me, To: "+4930123", Text: "Hello"},
		{Type: Reply, From: me, To: "+4930123", Text: "Stop"},
		{Type: Reply, From: me, To: "+4930123", Text: "Blue"},
		{Type: Reply, From: me, To: "+4930123", Text: "look"},
		{Type: Delivery, SendID: "abc-1", Phone: me},
		{Type: Open, SendID: "abc-1", Phone: me},
		{Type: Failure, SendID: "abc-2", Phone: me, Reason: "WhatsApp error 131026: No WhatsApp"},
		{Type: Failure, SendID: "abc-3", Phone: me, Reason: "WhatsApp error 131050: no more advertising"},
		{Type: Unsubscribe, SendID: "abc-3", Phone: me, Reason: "WhatsApp error 131050: no more advertising"},
		{Type: Reply, From: me, Keyword: KeywordStop, Answered: true, Preference: true},
	}
	if len(b.Events) != len(want) {
		t.Fatalf("%d events: %+v", len(b.Events), b.Events)
	}
	seen := map[string]bool{}
	for i, e := range b.Events {
		if e.ID == "" || seen[e.ID] || e.At.Unix() < 1769850000 {
			t.Errorf("event %d: id %q at %v", i, e.ID, e.At)
		}
		seen[e.ID] = true
		e.ID, e.At = "", time.Time{}
		want[i].Channel = ChannelWhatsApp
		if !reflect.DeepEqual(e, want[i]) {
			t.Errorf("event %d:\n%+v, expected\n%+v", i, e, want[i])
		}
	}
	if b.WithoutNumber != 0 {
		t.Errorf("%d texts have no number", b.WithoutNumber)
	}
	// People who hide their number: a text, a reaction, which is none, and a setting.
	b, err = WhatsApp{AppSecret: "secret"}.Parse(context.Background(), time.Time{}, whatsAppRequest("secret", `{"entry":[{"changes":[{"field":"messages","value":{
		"contacts":[{"profile":{"name":"Ada"},"user_id":"US.13491208655302741918"}],
		"messages":[{"from_user_id":"US.13491208655302741918","id":"wamid.1","timestamp":"1769850000","type":"text","text":{"body":"STOP"}},{"id":"wamid.2","type":"reaction"},{"from":"491701234567","id":"wamid.3","type":"text","text":{"body":"x"}}]}},
		{"field":"user_preferences","value":{"user_preferences":[{"user_id":"US.1","category":"marketing_messages","value":"stop"}]}}]}]}`))
	if err != nil || len(b.Events) != 1 || b.WithoutNumber != 2 {
		t.Errorf("%+v, %v", b, err)
	}
	for what, r := range map[string]Request{
		"another secret": whatsAppRequest("other", body),
		"no signature":   {Body: []byte(body), Header: func(string) string { return "" }},
	} {
		if _, err := (WhatsApp{AppSecret: "secret"}).Parse(context.Background(), time.Time{}, r); !errors.Is(err, ErrUnauthorised) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := (WhatsApp{AppSecret: "secret"}).Parse(context.Background(), time.Time{}, whatsAppRequest("secret", "{")); !errors.Is(err, ErrMalformed) {
		t.Errorf("half a body: %v", err)
	}
	if _, err := (WhatsApp{}).Parse(context.Background(), time.Time{}, whatsAppRequest("", body)); !errors.Is(err, ErrUnauthorised) {
		t.Errorf("without a secret: %v", err)
	}
}

// TestKeywordOf: a keyword is the whole text.
func TestKeywordOf(t *testing.T) {
	for text, want := range map[string]Keyword{
		"STOP": KeywordStop, " stop. ": KeywordStop, "“Stop”": KeywordStop, "Stop all!": KeywordStop, "opt-out": KeywordStop, "Arrêt": KeywordStop, "Stop…": KeywordStop, "*STOP*": KeywordStop, "stop\u00a0\u200b": KeywordStop, "🛑 STOP 🛑": KeywordStop, "Stop promotions": KeywordStop,
		"STOP❗️": KeywordStop, "STOP ❤️": KeywordStop, "Stop ⚠️": KeywordStop, "STOP ‼️": KeywordStop, "stop ✋🏽": KeywordStop, "Arre\u0302t": KeywordStop, "STOP #️⃣": KeywordStop,
		"start": KeywordStart, "UNSTOP": KeywordStart, "help?": KeywordHelp, "Info": KeywordHelp,
		"": "", "...": "", "stop it": "", "please stop": "", "yes": "", "non-stop": "", "stop 2": "", strings.Repeat("stop ", 20): "",
	} {
		if got := KeywordOf(text); got != want {
			t.Errorf("%q: %q, expected %q", text, got, want)
		}
	}
}

// TestOtherForm: both forms of a number lead to each other, and other numbers have one.
func TestOtherForm(t *testing.T) {
	for _, pair := range [][2]string{{"+5215512345678", "+525512345678"}, {"+5491112345678", "+541112345678"}, {"+5511987654321", "+551187654321"}} {
		if a, b := OtherForm(pair[0]), OtherForm(pair[1]); a != pair[1] || b != pair[0] {
			t.Errorf("%q: %q and %q", pair, a, b)
		}
	}
	for _, number := range []string{"", "+491701234567", "+52", "+5225512345678", "+521551234567", "+1555123456"} {
		if got := OtherForm(number); got != "" && OtherForm(got) != number {
			t.Errorf("%q has %q", number, got)
		}
	}
}

// FuzzTexts: no webhook makes a reader panic, and what comes out is bounded.
func FuzzTexts(f *testing.F) {
	f.Add([]byte("SmsStatus=received&From=%2B491701234567&Body=x"))
	f.Add([]byte(`{"entry":[{"changes":[{"value":{"messages":[{"from":"1","type":"text"}],"statuses":[{"status":"failed","errors":[{}]}]}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		form, err := url.ParseQuery(string(body))
		batches := []Batch{}
		if err == nil {
			b, _ := Twilio{AuthToken: "t"}.Parse(context.Background(), time.Time{}, twilioRequest("t", twilioURL, form))
			batches = append(batches, b)
		}
		b, _ := WhatsApp{AppSecret: "s"}.Parse(context.Background(), time.Time{}, whatsAppRequest("s", string(body)))
		for _, b := range append(batches, b) {
			for _, e := range b.Events {
				if len(e.Text) > maxText || len(e.ID) > maxID || len(e.Reason) > maxReason || e.From == "" && e.SendID == "" && e.Phone == "" {
					t.Fatalf("%+v", e)
				}
			}
		}
	})
}
