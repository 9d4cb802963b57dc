package api

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/api/internal/providers"
	"github.com/musterhq/muster/ingest"
	"github.com/musterhq/muster/internal/logbuffer"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/conversations"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
	"github.com/musterhq/muster/resolver/view"
)

const (
	twilioToken    = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
	whatsAppSecret = "5ebe2294ecd0e0f08eab7690d2a6ee69"
)

// twilio calls as Twilio does, at the path and with the query.
func (m *mailing) twilio(query string, fields ...string) (int, providers.InboundResult) {
	m.t.Helper()
	path := providers.ReportPath + m.creds.AccountID + "/twilio" + query
	form, text := url.Values{}, "https://muster.test"+path
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	for _, name := range slices.Sorted(maps.Keys(form)) {
		text += name + form.Get(name)
	}
	h := hmac.New(sha1.New, []byte(twilioToken))
	h.Write([]byte(text))
	return m.inboundCall(path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "X-Twilio-Signature", base64.StdEncoding.EncodeToString(h.Sum(nil)))
}

func (m *mailing) whatsApp(value string) (int, providers.InboundResult) {
	m.t.Helper()
	body := `{"object":"whatsapp_business_account","entry":[{"changes":[{"field":"messages","value":` + value + `}]}]}`
	h := hmac.New(sha256.New, []byte(whatsAppSecret))
	h.Write([]byte(body))
	return m.inboundCall(providers.ReportPath+m.creds.AccountID+"/whatsapp", body, "Content-Type", "application/json", "X-Hub-Signature-256", "sha256="+hex.EncodeToString(h.Sum(nil)))
}

func (m *mailing) inboundCall(path, body string, headers ...string) (int, providers.InboundResult) {
	m.t.Helper()
	res, b := m.service.send("POST", path, body, headers...)
	var a struct{ Data providers.InboundResult }
	if res.StatusCode == 200 && strings.Contains(path, "/twilio") { // which takes nothing else
		if _, err := fmt.Sscanf(string(b), `<?xml version="1.0" encoding="UTF-8"?><Response><!-- events %d, recorded %d, ignored %d --></Response>`, &a.Data.Events, &a.Data.Recorded, &a.Data.Ignored); err != nil || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/xml") {
			m.t.Fatalf("%s %s", res.Header.Get("Content-Type"), b)
		}
		return res.StatusCode, a.Data
	}
	ok(m.t, json.Unmarshal(b, &a))
	return res.StatusCode, a.Data
}

// holder is the profile of a phone.
func (m *mailing) holder(phone string) (p *view.Profile) {
	m.t.Helper()
	ok(m.t, m.node.Read(m.t.Context(), m.account, func(v *resolver.View) (err error) {
		if o, known := v.Profiles().Find(resolver.IdentityPhone, phone); known {
			p, err = v.Profiles().Get(o)
		}
		return err
	}))
	return p
}

// queued are the texts of one kind that wait to be sent.
func (m *mailing) queued(kind string) (out []string) {
	m.t.Helper()
	ok(m.t, m.node.Look(m.account, func(v *resolver.View) error {
		list, err := v.OutboxDue(kind, m.clock.Now().UnixMilli(), 100, func(uint64) bool { return false })
		for _, w := range list {
			var x messages.Text
			ok(m.t, json.Unmarshal(w.Payload, &x))
			if !x.Answer {
				m.t.Errorf("an answer is marked as none: %s", w.Payload)
			}
			out = append(out, x.Text)
		}
		return err
	}))
	return out
}

// TestTextsThatPeopleWrite: a text is an event of the profile with that number, STOP and START change
// the consent of its channel, each text once however often it is delivered, and HELP is answered.
func TestTextsThatPeopleWrite(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	m.want("PUT", "/inbound-providers/twilio", `{"auth_token":"`+twilioToken+`","help_reply":"Shop Ltd","stop_reply":"Bye"}`, nil)
	const phone = "+491701234567"
	say := func(id, text string, more ...string) (int, providers.InboundResult) {
		m.clock.Advance(2 * time.Minute)
		return m.twilio("", append([]string{"MessageSid", id, "SmsStatus", "received", "From", phone, "To", "+4930123", "Body", text}, more...)...)
	}
	for range 2 {
		if status, got := say("SM1", "Hello"); status != 200 || got != (providers.InboundResult{Events: 1, Recorded: 1, Ignored: 0}) {
			t.Fatalf("%d %+v", status, got)
		}
	}
	p := m.holder(phone)
	if p == nil {
		t.Fatal("no profile has a new number")
	}
	consent := func() string {
		return m.holder(phone).Consent("sms").Status
	}
	if got := consent(); got != "never_subscribed" {
		t.Errorf("who wrote is %q", got)
	}
	say("SM2", "Start")
	if got := consent(); got != "subscribed" {
		t.Errorf("after START: %q", got)
	}
	say("SM3", "stop!")
	if got := consent(); got != "unsubscribed" {
		t.Errorf("after STOP: %q", got)
	}
	if got := m.queued(outbox.KindSMS); !slices.Equal(got, []string{"Bye"}) {
		t.Errorf("answers: %q", got)
	}
	say("SM2", "Start") // told again, late
	if got := consent(); got != "unsubscribed" {
		t.Errorf("an old START that was delivered again: %q", got)
	}
	say("SM4", "help")
	say("SM4", "help")
	say("SM5", "cease", "OptOutType", "STOP") // Twilio answers
	if got := m.queued(outbox.KindSMS); !slices.Equal(got, []string{"Bye", "Shop Ltd"}) {
		t.Errorf("answers: %q", got)
	}
	if n := m.count("sms_received"); n != 5 {
		t.Errorf("%d texts are on record, 5 were written", n)
	}
	if n := m.count("sms_unsubscribed"); n != 2 {
		t.Errorf("%d times unsubscribed", n)
	}
	// A signature for another address, and without any.
	if res, _ := m.service.send("POST", providers.ReportPath+m.creds.AccountID+"/twilio", "MessageSid=SM9&SmsStatus=received&From=%2B491701234567&Body=STOP", "X-Twilio-Signature", "x"); res.StatusCode != 401 {
		t.Errorf("unsigned: %d", res.StatusCode)
	}
	// STOP counts also where its event is refused, such as beyond the most event types.
	say("SM7", "Start")
	m.events.refuses.Store(true)
	say("SM8", "STOP")
	m.events.refuses.Store(false)
	if got := consent(); got != "unsubscribed" {
		t.Errorf("after STOP of an event that was refused: %q", got)
	}
	// STOP counts before its event is on record: its sender may not send it again.
	say("SM9", "Start")
	m.events.away.Store(true)
	if status, _ := say("SM10", "STOP"); status != 503 || consent() != "unsubscribed" {
		t.Errorf("STOP while no event is taken: %d, %s", status, consent())
	}
	m.events.away.Store(false)
	if status, got := say("SM10", "STOP"); status != 200 || got.Recorded != 1 || m.count("sms_unsubscribed") != 4 {
		t.Errorf("the same again: %d %+v, %d times unsubscribed", status, got, m.count("sms_unsubscribed"))
	}
	// So does START: its repeat does not undo a STOP that came in between.
	m.events.away.Store(true)
	say("SM11", "Start")
	m.events.away.Store(false)
	say("SM12", "STOP")
	if status, _ := say("SM11", "Start"); status != 200 || consent() != "unsubscribed" {
		t.Errorf("a repeated START after a STOP: %d, %s", status, consent())
	}
	// An erased person's number is refused, and the provider need not try again.
	m.command(resolver.CommandContactErase, resolver.ContactErase{ID: p.ID.String()}, nil)
	if status, got := say("SM6", "me again"); status != 200 || got.Ignored != 1 {
		t.Errorf("an erased person: %d %+v", status, got)
	}
}

// refusable takes events unless it refuses them.
type refusable struct {
	events interface {
		Record(account uint64, event []byte) (resolver.ProfileID, string, error)
	}
	refuses atomic.Bool
	// away answers as a full log does: the same may be taken later.
	away atomic.Bool
}

func (r *refusable) Record(account uint64, event []byte) (id resolver.ProfileID, warning string, err error) {
	if r.refuses.Load() {
		return id, "", &ingest.EventError{Status: 400, Message: "the account has 10000 event types"}
	}
	if r.away.Load() {
		return id, "", &ingest.EventError{Status: 503, Message: "the log is full"}
	}
	return r.events.Record(account, event)
}

// count is how many events of a type the account has.
func (m *mailing) count(typ string) (n uint64) {
	m.t.Helper()
	ok(m.t, m.node.Read(m.t.Context(), m.account, func(v *resolver.View) error {
		if x := v.EventTypes().Get(typ); x != nil {
			n = x.Count
		}
		return nil
	}))
	return n
}

// TestWhatsAppWebhooks: Meta verifies the address, a text opens a conversation for a day,
// and settings of WhatsApp withdraw consents.
func TestWhatsAppWebhooks(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	var set providers.Credential
	m.want("PUT", "/inbound-providers/whatsapp", `{"app_secret":"`+whatsAppSecret+`","phone_number_id":"1062840","generate":true}`, &set)
	token := set.Once["verify_token"].(string)
	address := providers.ReportPath + m.creds.AccountID + "/whatsapp?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token="
	if res, b := m.service.send("GET", address+url.QueryEscape(token), ""); res.StatusCode != 200 || string(b) != "1158201444" || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %s %s", res.StatusCode, b, res.Header)
	}
	for _, wrong := range []string{address + "x", address, providers.ReportPath + m.creds.AccountID + "/whatsapp"} {
		if res, _ := m.service.send("GET", wrong, ""); res.StatusCode != 401 {
			t.Errorf("%s: %d", wrong, res.StatusCode)
		}
	}
	message := func(id, text string, at time.Time) string {
		return fmt.Sprintf(`{"metadata":{"display_phone_number":"4930123","phone_number_id":"1062840"},"messages":[{"from":"491701234567","id":%q,"timestamp":"%d","type":"text","text":{"body":%q}}]}`, id, at.Unix(), text)
	}
	began := m.clock.Now()
	m.clock.Advance(time.Minute)
	if status, got := m.whatsApp(message("wamid.1", "Hi", began)); status != 200 || got != (providers.InboundResult{Events: 1, Recorded: 1, Ignored: 0}) {
		t.Fatalf("%d %+v", status, got)
	}
	open := func(at time.Time) (may bool) {
		ok(t, m.node.Read(t.Context(), m.account, func(v *resolver.View) error {
			may = v.Reach().MayWriteFreelyTo("+491701234567", at.UnixMilli())
			return nil
		}))
		return may
	}
	if until := began.Truncate(time.Second).Add(conversations.WindowMs * time.Millisecond); !open(until.Add(-time.Millisecond)) || open(until) {
		t.Errorf("the conversation does not end at %s", until)
	}
	const preference = `{"metadata":{"phone_number_id":"1062840"},"user_preferences":[{"wa_id":"491701234567","category":"marketing_messages","value":%q,"timestamp":%d}]}`
	m.whatsApp(fmt.Sprintf(preference, "resume", 1))
	if c := m.holder("+491701234567").Consent("whatsapp"); c.Status != "subscribed" {
		t.Errorf("%+v", c)
	}
	m.whatsApp(fmt.Sprintf(preference, "stop", 2))
	if c := m.holder("+491701234567").Consent("whatsapp"); c.Status != "unsubscribed" {
		t.Errorf("%+v", c)
	}
	if n := m.count("whatsapp_received"); n != 1 {
		t.Errorf("%d texts are on record", n)
	}
	if status, got := m.whatsApp(`{"metadata":{"phone_number_id":"1062840"},"user_preferences":[{"wa_id":"499999999999","category":"marketing_messages","value":"stop","timestamp":3}]}`); status != 200 || got.Ignored != 1 {
		t.Errorf("a number of no profile: %d %+v", status, got)
	}
	// What became of a message of the account's.
	o := m.holder("+491701234567").Ordinal
	sendOf := func(item uint64) (send string) {
		ok(t, m.node.Read(t.Context(), m.account, func(v *resolver.View) error {
			key, err := compose.AccountKey(v, m.account)
			send = compose.SendText(m.account, compose.SealSend(key, messages.OutboxSend(item, o)))
			return err
		}))
		return send
	}
	send := sendOf(77)
	status := func(word string) string {
		return fmt.Sprintf(`{"metadata":{"phone_number_id":"1062840"},"statuses":[{"id":"wamid.a","status":%q,"timestamp":"1769850004","recipient_id":"491701234567","biz_opaque_callback_data":%q,"errors":[{"code":131021,"title":"no such number"}]}]}`, word, send)
	}
	for _, word := range []string{"sent", "delivered", "delivered", "read", "failed"} {
		m.whatsApp(status(word))
	}
	// It was delivered, so that a failure is ignored.
	if _, got := m.whatsApp(status("failed")); got != (providers.InboundResult{Events: 1, Ignored: 1}) {
		t.Errorf("a failure after the delivery: %+v", got)
	}
	for typ, want := range map[string]uint64{"whatsapp_delivered": 1, "whatsapp_opened": 1, "whatsapp_failed": 0, "email_delivered": 0} {
		if n := m.count(typ); n != want {
			t.Errorf("%d events %s, expected %d", n, typ, want)
		}
	}
	// A message that WhatsApp did not deliver because the person wants no advertising.
	m.whatsApp(fmt.Sprintf(preference, "resume", began.Add(time.Hour).Unix()))
	for range 2 {
		m.whatsApp(strings.ReplaceAll(strings.ReplaceAll(status("failed"), "131021", "131050"), "wamid.a", "wamid.b"))
	}
	if got := m.holder("+491701234567").SuppressionReason("whatsapp"); got != "" {
		t.Errorf("a failure after the delivery blocks the number: %q", got)
	}
	if c := m.holder("+491701234567").Consent("whatsapp"); c.Status != "unsubscribed" || c.Source != "provider" {
		t.Errorf("%+v", c)
	}
	m.whatsApp(strings.ReplaceAll(strings.ReplaceAll(status("failed"), send, sendOf(78)), "wamid.a", "wamid.c"))
	if got := m.holder("+491701234567").SuppressionReason("whatsapp"); got != "bounced" {
		t.Errorf("a dead number is %q", got)
	}
}

// TestInboundTextProvidersBadInput: what is wrong is named.
func TestInboundTextProvidersBadInput(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	for body, want := range map[string]string{
		`{}`:                                 "auth_token",
		`{"auth_token":"x","generate":true}`: "generate",
		`{"auth_token":"x","help_reply":"` + strings.Repeat("x", 1601) + `"}`: "help_reply",
		`{"auth_token":"x","help_reply":"{{nonsense}}"}`:                      "help_reply",
	} {
		if status, a := m.do("PUT", "/inbound-providers/twilio", body); status != 400 || !strings.Contains(a.Message, want) {
			t.Errorf("%.60s: %d %s", body, status, a.Message)
		}
	}
	for body, want := range map[string]string{
		`{}`:                                    "app_secret",
		`{"app_secret":"x"}`:                    "verify_token",
		`{"app_secret":"x","verify_token":"y"}`: "verify_token",
	} {
		if status, a := m.do("PUT", "/inbound-providers/whatsapp", body); status != 400 || !strings.Contains(a.Message, want) {
			t.Errorf("%.60s: %d %s", body, status, a.Message)
		}
	}
	if status, a := m.do("PUT", "/inbound-providers/mailgun", `{"signing_key":"x","stop_reply":"Bye"}`); status != 400 || !strings.Contains(a.Message, "stop_reply") {
		t.Errorf("%d %s", status, a.Message)
	}
}

// TestWhatsAppWebhooksBadInput sends what docs/behaviour/messages.md lists as bad input of
// WhatsApp's webhooks, row by row.
func TestWhatsAppWebhooksBadInput(t *testing.T) {
	t.Parallel()
	m := newMailing(t)
	const token = "verify-token-verify"
	m.want("PUT", "/inbound-providers/whatsapp", `{"app_secret":"`+whatsAppSecret+`","phone_number_id":"1062840","verify_token":"`+token+`"}`, nil)
	path := providers.ReportPath + m.creds.AccountID + "/whatsapp"
	challenge := func(query string) func() string {
		return func() string {
			res, _ := m.service.send("GET", path+"?"+query, "")
			return fmt.Sprint(res.StatusCode)
		}
	}
	post := func(path, body, secret string, headers ...string) func() string {
		return func() string {
			h := hmac.New(sha256.New, []byte(secret))
			h.Write([]byte(body))
			if secret != "" {
				headers = append(headers, "X-Hub-Signature-256", "sha256="+hex.EncodeToString(h.Sum(nil)))
			}
			res, b := m.service.send("POST", path, body, append(headers, "Content-Type", "application/json")...)
			var a struct{ Data providers.InboundResult }
			ok(t, json.Unmarshal(b, &a))
			switch {
			case res.StatusCode != 200:
				return fmt.Sprint(res.StatusCode)
			case a.Data.Events == 0:
				return "200, `events` 0"
			}
			return fmt.Sprintf("200, `ignored` %d", a.Data.Ignored)
		}
	}
	value := func(v string) string { return `{"entry":[{"changes":[{"field":"messages","value":` + v + `}]}]}` }
	text := func(number, from string) string {
		return value(`{"metadata":{"phone_number_id":"` + number + `"},"messages":[{"from":"` + from + `","id":"wamid.1","timestamp":"1769850004","type":"text","text":{"body":"STOP"}}]}`)
	}
	status := value(`{"metadata":{"phone_number_id":"1062840"},"statuses":[{"id":"wamid.2","status":"failed","timestamp":"1769850004","recipient_id":"491701234567","biz_opaque_callback_data":"0000000000000001-02000000000000000000000000000000"}]}`)
	good := text("1062840", "491701234567")
	hidden := value(`{"metadata":{"phone_number_id":"1062840"},"contacts":[{"user_id":"US.1"}],"messages":[{"from_user_id":"US.1","id":"wamid.1","timestamp":"1769850004","type":"text","text":{"body":"STOP"}}]}`)
	rows := map[string][]func() string{
		"| `GET` | `hub.verify_token` left out, or another |":                          {challenge("hub.mode=subscribe&hub.challenge=1"), challenge("hub.mode=subscribe&hub.challenge=1&hub.verify_token=x")},
		"| `GET` | `hub.mode` that is not `subscribe` |":                               {challenge("hub.challenge=1&hub.verify_token=" + token), challenge("hub.mode=x&hub.challenge=1&hub.verify_token=" + token)},
		"| `GET` | `hub.challenge` of more than 256 bytes |":                           {challenge("hub.mode=subscribe&hub.verify_token=" + token + "&hub.challenge=" + strings.Repeat("1", 257))},
		"| `POST` | `X-Hub-Signature-256` left out, or of another secret |":            {post(path, good, ""), post(path, good, "x"), post(path, good, "", "X-Hub-Signature-256", "sha256=00")},
		"| `POST` | an account that does not exist, or takes no reports of WhatsApp |": {post(providers.ReportPath+"acc_0000000000000001/whatsapp", good, whatsAppSecret), post(providers.ReportPath+"x/whatsapp", good, whatsAppSecret)},
		"| `POST` | signed, and no JSON |":                                             {post(path, `{"entry":`, whatsAppSecret), post(path, "", whatsAppSecret)},
		"| `POST` | a body of more than 1 MiB |":                                       {post(path, strings.Repeat(" ", 1<<20)+good, whatsAppSecret)},
		"| `POST` | `Content-Encoding: gzip` |":                                        {post(path, good, whatsAppSecret, "Content-Encoding", "gzip")},
		"| `POST` | another `phone_number_id` than the account's |":                    {post(path, text("7", "491701234567"), whatsAppSecret)},
		"| `POST` | a status of a message that is not the account's |":                 {post(path, status, whatsAppSecret)},
		"| `POST` | a text whose `from` is no number, or left out |":                   {post(path, text("1062840", ""), whatsAppSecret), post(path, text("1062840", "me"), whatsAppSecret), post(path, hidden, whatsAppSecret)},
	}
	page, err := os.ReadFile("../docs/behaviour/messages.md")
	ok(t, err)
	_, table, _ := strings.Cut(string(page), "**Bad input of WhatsApp's webhooks**")
	_, table, _ = strings.Cut(table, "|---|---|---|\n")
	tried := 0
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		line = strings.TrimSpace(line)
		end := strings.LastIndex(strings.TrimSuffix(line, "|"), "|") + 1
		want := strings.TrimSpace(strings.Trim(line[end:], "|"))
		for _, call := range rows[line[:end]] {
			if got := call(); got != want {
				t.Errorf("%s is answered %s", line, got)
			}
		}
		if len(rows[line[:end]]) > 0 {
			tried++
		} else {
			t.Errorf("not tried: %s", line)
		}
	}
	if tried != len(rows) {
		t.Errorf("the page has %d of %d rows", tried, len(rows))
	}
	if m.holder("+491701234567") != nil {
		t.Error("bad input made a profile")
	}
}

// TestTextsWithoutNumber: a text of a person who hides the number leaves a trace: the answer and a
// metric count it, and the log warns, once a minute, without the person's id.
func TestTextsWithoutNumber(t *testing.T) {
	t.Parallel()
	log := &logbuffer.Buffer{}
	var set *metrics.Set
	s := newService(t, &memHistory{}, func(o *Options) { set, o.Logger = o.Metrics, slog.New(slog.NewTextHandler(log, nil)) })
	s.want("PUT", "/inbound-providers/whatsapp", `{"app_secret":"`+whatsAppSecret+`","phone_number_id":"1062840","generate":true}`, nil)
	body := `{"entry":[{"changes":[{"field":"messages","value":{"metadata":{"phone_number_id":"1062840"},"contacts":[{"user_id":"US.1349"}],"messages":[` +
		`{"from_user_id":"US.1349","id":"wamid.1","type":"text","text":{"body":"STOP"}},{"from_user_id":"US.1349","id":"wamid.2","type":"text","text":{"body":"Hello"}}]}}]}]}`
	h := hmac.New(sha256.New, []byte(whatsAppSecret))
	h.Write([]byte(body))
	for i, warnings := range []int{1, 1, 2} {
		if i == 2 {
			s.clock.Advance(time.Minute)
		}
		res, b := s.send("POST", providers.ReportPath+s.creds.AccountID+"/whatsapp", body, "Content-Type", "application/json", "X-Hub-Signature-256", "sha256="+hex.EncodeToString(h.Sum(nil)))
		if res.StatusCode != 200 || !strings.Contains(string(b), `"events":2,"recorded":0,"ignored":2`) {
			t.Errorf("%d %s", res.StatusCode, b)
		}
		if n := strings.Count(log.String(), "hide their number"); n != warnings {
			t.Errorf("report %d: %d warnings, expected %d", i, n, warnings)
		}
	}
	if n := set.GetOrCreateCounter("muster_inbound_texts_without_number_total").Get(); n != 6 {
		t.Errorf("%d are counted, expected 6", n)
	}
	if strings.Contains(log.String(), "US.1349") {
		t.Error("the log has the person's id")
	}
}
