package keyapi

import (
	"crypto/ecdh"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/push"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/node"
)

// sending is a service with a dispatcher, a capture, and an endpoint that plays
// push services and a provider of texts.
type sending struct {
	*service
	capture *capture.Store
	remote  *httptest.Server
	sender  *messaging.Dispatcher
	arrived chan struct{} // unless nil, signalled at each request; it is answered once held is closed
	held    chan struct{}

	mu   sync.Mutex
	got  []string // what the endpoint was sent, by path
	dead []string // what it calls dead: parts of paths and bodies
	// refused is what FCM says of every message, "" when it takes them.
	refused string
	// texts says how a text to a provider at /texts is answered; nil: it is taken.
	texts func(body string) (status int)
}

func newSending(t *testing.T) *sending {
	t.Helper()
	x := &sending{}
	x.remote = httptest.NewTLSServer(http.HandlerFunc(x.answer))
	t.Cleanup(x.remote.Close)
	var err error
	x.capture, err = capture.Open(capture.Options{Dir: t.TempDir()})
	ok(t, err)
	t.Cleanup(func() { ok(t, x.capture.Close()) })
	x.service = newService(t, func(o *Options) {
		o.PerMinute, o.AllowPrivate = 10_000, true
		node := o.Node.(*node.Node)
		client := x.remote.Client()
		d, err := messaging.New(t.Context(), messaging.Options{
			Node: node, Mailer: messaging.CaptureMailer{Store: x.capture}, Capture: x.capture, PublicURL: "http://127.0.0.1:8080", Now: o.Now, Metrics: metrics.NewSet(),
			Push: push.Options{Client: client, AllowPrivate: true, Now: o.Now},
			Text: text.Options{Client: client, AllowPrivate: true, Now: o.Now},
		})
		ok(t, err)
		t.Cleanup(d.Close)
		t.Cleanup(client.CloseIdleConnections)
		o.Campaigns, x.sender = d, d
	})
	return x
}

func (x *sending) answer(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/token" {
		fmt.Fprint(w, `{"access_token":"t","expires_in":3600,"token_type":"Bearer"}`)
		return
	}
	if r.URL.Path == "/texts" && x.texts != nil {
		w.WriteHeader(x.texts(string(b)))
		return
	}
	if x.arrived != nil {
		x.arrived <- struct{}{}
		<-x.held
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.got = append(x.got, r.URL.Path+" "+string(b))
	fcm := strings.HasPrefix(r.URL.Path, "/v1/")
	switch {
	case slices.ContainsFunc(x.dead, func(d string) bool { return strings.Contains(r.URL.Path+string(b), d) }):
		if fcm {
			w.WriteHeader(404)
			fmt.Fprint(w, `{"error":{"status":"NOT_FOUND","message":"gone","details":[{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"UNREGISTERED"}]}}`)
			return
		}
		w.WriteHeader(410)
	case fcm && x.refused != "":
		w.WriteHeader(400)
		fmt.Fprintf(w, `{"error":{"status":"INVALID_ARGUMENT","message":%q}}`, x.refused)
	case fcm:
		fmt.Fprint(w, `{"name":"projects/p/messages/1"}`)
	default:
		w.WriteHeader(201)
	}
}

// put stores credentials as the console does.
func (x *sending) put(group, name string, config any) {
	x.t.Helper()
	b, err := json.Marshal(config)
	ok(x.t, err)
	_, err = x.node.Command(x.t.Context(), x.account, credentials.CommandSet, credentials.Credential{Group: group, Name: name, Config: b})
	ok(x.t, err)
}

// textProvider sets a provider of texts up, which x.texts plays.
func (x *sending) textProvider(channel string) {
	x.t.Helper()
	x.put("message", channel, map[string]any{"url": x.remote.URL + "/texts", "format": "json", "body": `{"to":"{{to}}"}`, "from": "Shop"})
}

func (x *sending) firebase() map[string]string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	ok(x.t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	ok(x.t, err)
	return map[string]string{
		"type": "service_account", "project_id": "demo-1", "private_key_id": "k", "client_email": "a@demo-1.iam.example.com", "token_uri": "https://oauth2.googleapis.com/token", "base_url": x.remote.URL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	}
}

func (x *sending) subscription(path string) string {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	ok(x.t, err)
	enc := base64.RawURLEncoding
	b, err := json.Marshal(map[string]any{"endpoint": x.remote.URL + path, "keys": map[string]string{
		"p256dh": enc.EncodeToString(key.PublicKey().Bytes()), "auth": enc.EncodeToString(make([]byte, 16))}})
	ok(x.t, err)
	return string(b)
}

// call makes a call with the account's key that must end as told, and reads its
// data.
func (x *sending) call(status, method, path string, body, data any) (message string) {
	x.t.Helper()
	b := []byte{}
	if s, isText := body.(string); isText {
		b = []byte(s)
	} else if body != nil {
		var err error
		b, err = json.Marshal(body)
		ok(x.t, err)
	}
	res, answer := x.with(x.creds.APIKey, method, "/api/v1"+path, string(b))
	var a struct {
		Status, Message string
		Data            json.RawMessage
	}
	ok(x.t, json.Unmarshal([]byte(answer), &a))
	if res.StatusCode != 200 || a.Status != status {
		x.t.Fatalf("%s %s %s: %d %s", method, path, b, res.StatusCode, answer)
	}
	if data != nil {
		ok(x.t, json.Unmarshal(a.Data, data))
	}
	return a.Message
}

func (x *sending) contact(body string) string {
	x.t.Helper()
	var c contact
	x.call("success", "POST", "/contacts", body, &c)
	return c.ID
}

func (x *sending) addDevice(contact, id, kind, address string) {
	x.t.Helper()
	x.call("success", "POST", "/contacts/"+contact+"/devices", map[string]string{"device_id": id, "kind": kind, "address": address}, nil)
}

func (x *sending) deviceIDs(contact string) (out []string) {
	x.t.Helper()
	var list []record.Device
	x.call("success", "GET", "/contacts/"+contact+"/devices", nil, &list)
	for _, d := range list {
		out = append(out, d.ID)
	}
	return out
}

// verifiedDomain makes a domain that e-mails can be sent from.
func (x *sending) verifiedDomain(name string) {
	x.t.Helper()
	ok(x.t, second(x.node.Command(x.t.Context(), x.account, domains.CommandAdd, domains.Domain{Name: name, Selector: "s", Token: "t"})))
	ok(x.t, second(x.node.Command(x.t.Context(), x.account, domains.CommandVerify, domains.Name{Name: name, By: "administrator"})))
}

func (x *sending) captured(channel string) []capture.Message {
	x.t.Helper()
	list, _, err := x.capture.List(capture.Filter{Channel: channel}, 0, 0)
	ok(x.t, err)
	return list
}

const (
	fcmOne = "token-one-1234567890"
	fcmTwo = "token-two-1234567890"
)

// TestPushSendReachesDevicesAndRetiresDeadOnes is the whole way: registered over
// the API, sent over FCM and Web Push, counted, dead tokens removed.
func TestPushSendReachesDevicesAndRetiresDeadOnes(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	keys, err := push.GenerateWebCredentials("mailto:a@b.example")
	ok(t, err)
	x.put("push", "webpush", keys)
	x.put("push", "fcm", x.firebase())
	ada, bob := x.contact(`{"email":"ada@x.io","first_name":"Ada"}`), x.contact(`{"email":"bob@x.io"}`)
	none := x.contact(`{"email":"none@x.io"}`)
	x.addDevice(ada, "phone", "fcm", fcmOne)
	x.addDevice(ada, "browser", "webpush", x.subscription("/live"))
	x.addDevice(ada, "old", "webpush", x.subscription("/dead"))
	x.addDevice(bob, "phone", "fcm", fcmTwo)
	x.dead = []string{"/dead", fcmTwo}

	var seg struct {
		ID string `json:"_id"`
	}
	x.console1("POST", "/segments", `{"name":"All of them","definition":{"match":"all","conditions":[{"kind":"attribute","field":"email","op":"exists"}]}}`, &seg)
	waitLive(t, x.service, seg.ID)
	send := map[string]any{"title": `Hello {{first_name | default: "you"}}`, "body": "Now", "segmentId": seg.ID, "link": "https://shop.example/x"}
	var got pushResult
	if m := x.call("success", "POST", "/push/send", send, &got); m != "sent" {
		t.Errorf("message %q", m)
	}
	want := pushResult{CampaignID: got.CampaignID, SegmentName: "All of them", ContactsInSegment: 3, ReachableContacts: 2, Total: 4, Accepted: 2, Retired: 2}
	if got != want || got.CampaignID == "" {
		t.Errorf("%+v, expected %+v", got, want)
	}
	if a, b := x.deviceIDs(ada), x.deviceIDs(bob); !slices.Equal(a, []string{"phone", "browser"}) || b != nil {
		t.Errorf("left are %v and %v", a, b)
	}
	if !slices.ContainsFunc(x.got, func(s string) bool { return strings.Contains(s, "Hello Ada") && strings.Contains(s, fcmOne) }) {
		t.Errorf("FCM was sent %q", x.got)
	}
	var history record.Campaign
	x.call("success", "GET", "/campaign/"+got.CampaignID, nil, &history)
	if history.Channel != 2 || *history.Type != 4 || history.Status != "sent" || history.Subject != send["title"] {
		t.Errorf("%+v", history)
	}
	// Without a segment: every live device.
	x.call("success", "POST", "/push/send", `{"title":"Again"}`, &got)
	if got.Total != 2 || got.Accepted != 2 || got.ReachableContacts != 1 || got.ContactsInSegment != 1 || got.SegmentName != "" {
		t.Errorf("%+v", got)
	}
	// A contact who refused is not reached, and a device that moves is the other's.
	ok(t, second(x.node.Command(t.Context(), x.account, contacts.CommandConsentSet, contacts.ConsentSet{ID: ada, Channel: "push", Status: "unsubscribed"})))
	x.addDevice(none, "phone", "fcm", fcmOne)
	x.call("success", "POST", "/push/send", `{"title":"Third"}`, &got)
	if got.Total != 1 || got.Accepted != 1 || got.ReachableContacts != 1 || got.ContactsInSegment != 2 {
		t.Errorf("%+v", got)
	}
	x.call("success", "DELETE", "/contacts/"+none+"/devices/phone", nil, nil)
	x.call("failure", "DELETE", "/contacts/"+none+"/devices/phone", nil, nil)
}

func second[T any](_ T, err error) error { return err }

func waitLive(t *testing.T, s *service, segment string) {
	t.Helper()
	eventually.Holds(t, "the segment is built", func() bool {
		var x struct{ Status string }
		s.console1("GET", "/segments/"+segment, "", &x)
		return x.Status == "live"
	})
}

func TestPushDryRunValidatesEverythingAndDeliversNothing(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	var got pushResult
	if m := x.call("success", "POST", "/push/send", `{"title":"T","dryRun":true}`, &got); m != "dry run" || got != (pushResult{DryRun: true}) {
		t.Errorf("with nothing set up: %q %+v", m, got)
	}
	long := strings.Repeat("x", 5000)
	for body, want := range map[string]string{
		`{"dryRun":true}`:                                 "title Field required",
		`{"title":" ","dryRun":true}`:                     "title Field required",
		`{"title":5,"dryRun":true}`:                       "title Input should be a valid string",
		`{"title":"T","segmentId":"seg_x","dryRun":true}`: "segmentId",
		`{"title":"T","segmentId":"","dryRun":true}`:      "segmentId",
		`{"title":"T","segmentId":null}`:                  "segmentId",
		`{"title":"T","segmentId":["seg_x"]}`:             "segmentId",
		`{"title":"T","link":"javascript:x"}`:             "link",
		`{"title":"T","link":"/page"}`:                    "link",
		`{"title":"T","link":"https://"}`:                 "link",
		`{"title":"T","body":"` + long + `"}`:             "at most",
		`{"title":"T {{x"}`:                               "title",
	} {
		if m := x.call("failure", "POST", "/push/send", body, nil); !strings.Contains(strings.Replace(m, "subject", "title", 1), want) {
			t.Errorf("%.80s: %s", body, m)
		}
	}
	ada := x.contact(`{"email":"ada@x.io"}`)
	x.addDevice(ada, "phone", "fcm", fcmOne)
	x.addDevice(ada, "tablet", "apns", strings.Repeat("ab", 32))
	// Nothing is set up: captured. Once something is, what is missing is named.
	x.call("success", "POST", "/push/send", `{"title":"T","dryRun":true}`, &got)
	if got.Total != 2 || got.ReachableContacts != 1 || len(x.captured("push")) != 0 {
		t.Errorf("%+v", got)
	}
	x.call("success", "POST", "/push/send", `{"title":"T","body":"B"}`, &got)
	if list := x.captured("push"); got.Accepted != 2 || len(list) != 2 || list[0].Subject != "T" || list[0].Body != "B" {
		t.Errorf("%+v, captured %+v", got, list)
	}
	x.put("push", "fcm", x.firebase())
	for _, body := range []string{`{"title":"T","dryRun":true}`, `{"title":"T"}`} {
		if m := x.call("failure", "POST", "/push/send", body, nil); !strings.Contains(m, "apns") || strings.Contains(m, "fcm,") {
			t.Errorf("%s", m)
		}
	}
	var list []record.Campaign
	x.call("success", "GET", "/campaign", nil, &list)
	if len(list) != 1 || len(x.got) != 0 {
		t.Errorf("%d rows of history, %d requests", len(list), len(x.got))
	}
	for body, want := range map[string]string{
		`{"kind":"fcm"}`:                  "address Field required",
		`{"address":"x"}`:                 "kind Field required",
		`{"kind":"sms","address":"x"}`:    "kind Input should be",
		`{"kind":"apns","address":"xyz"}`: "address",
		`{"kind":"webpush","address":"{\"endpoint\":\"http://x\"}"}`: "address",
	} {
		if m := x.call("failure", "POST", "/contacts/"+ada+"/devices", body, nil); !strings.Contains(m, want) {
			t.Errorf("%s: %s", body, m)
		}
	}
}

// TestPushDryRunAsksFCM: FCM checks the message and delivers nothing; what it refuses is
// the answer.
func TestPushDryRunAsksFCM(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	x.put("push", "fcm", x.firebase())
	ada := x.contact(`{"email":"ada@x.io","first_name":"Ada"}`)
	x.addDevice(ada, "phone", "fcm", fcmOne)
	x.addDevice(ada, "old", "fcm", fcmTwo)
	x.dead = []string{fcmTwo}
	var got pushResult
	if m := x.call("success", "POST", "/push/send", `{"title":"Hi {{first_name}}","dryRun":true}`, &got); m != "dry run" || got.Total != 2 || got.Accepted != 0 || got.Retired != 0 || got.CampaignID != "" {
		t.Errorf("%q %+v", m, got)
	}
	if len(x.got) != 2 {
		t.Fatalf("FCM was asked %q", x.got)
	}
	for _, asked := range x.got {
		if !strings.Contains(asked, `"validate_only":true`) || !strings.Contains(asked, "Hi Ada") {
			t.Errorf("FCM was asked %s", asked)
		}
	}
	if left := x.deviceIDs(ada); len(left) != 2 {
		t.Errorf("a dry run removed devices: %v are left", left)
	}
	x.refused = "The message is not valid"
	if m := x.call("failure", "POST", "/push/send", `{"title":"Hi","dryRun":true}`, nil); !strings.HasPrefix(m, "fcm does not take the message: ") || !strings.Contains(m, x.refused) {
		t.Error(m)
	}
	x.refused, x.got = "", nil
	x.call("success", "POST", "/push/send", `{"title":"Hi"}`, &got)
	if got.Accepted != 1 || len(x.got) != 2 || strings.Contains(strings.Join(x.got, ""), "validate_only") {
		t.Errorf("%+v, FCM was sent %q", got, x.got)
	}
}

func TestCampaignsOfEveryTypeAreSent(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	ada := x.contact(`{"email":"ada@x.io","first_name":"Ada","phone":"+49 (30) 1234567"}`)
	x.contact(`{"email":"bob@x.io"}`)
	x.addDevice(ada, "phone", "fcm", fcmOne)
	send := func(fields string) (out sendResult) {
		t.Helper()
		var c record.Campaign
		x.call("success", "POST", "/campaign", `{"name":"n","subject":"Hi {{first_name | default: \"you\"}}","body":"Dear {{first_name | default: \"you\"}}","date":"2026-01-01",`+fields+`}`, &c)
		x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, &out)
		return out
	}
	ok(t, second(x.node.Command(t.Context(), x.account, contacts.CommandConsentSet, contacts.ConsentSet{ID: ada, Channel: "im", Status: "subscribed"})))
	for fields, want := range map[string]struct {
		channel, body string
		sent          uint64
	}{
		`"channel":2,"type":2`: {"sms", "Dear Ada", 1}, `"channel":2,"type":3`: {"im", "Dear Ada", 1},
		`"channel":2,"type":4`: {"push", "Dear Ada", 1}, `"channel":1`: {"email", "", 2},
	} {
		got := send(fields)
		list := x.captured(want.channel)
		if !got.Success || got.EmailsSent != want.sent || len(list) != int(want.sent) || list[len(list)-1].Body != want.body {
			t.Errorf("%s: %+v, captured %+v", fields, got, list)
		}
	}
	if to := x.captured("sms")[0].To; to != "+49301234567" {
		t.Errorf("an SMS to %q", to)
	}
	// With a provider, it is sent there.
	x.put("message", "sms", map[string]any{"url": x.remote.URL + "/sms", "format": "json", "body": `{"to":"{{to}}","text":"{{body}}"}`})
	if got := send(`"channel":2,"type":2`); got.EmailsSent != 1 || len(x.got) != 1 || x.got[0] != `/sms {"to":"+49301234567","text":"Dear Ada"}` {
		t.Errorf("%+v, the provider got %q", got, x.got)
	}
}

func TestPaceOfASendIsRefusedByItsField(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	var c struct {
		ID string `json:"_id"`
	}
	x.call("success", "POST", "/campaign", `{"name":"n","channel":1,"subject":"s","body":"b"}`, &c)
	for field, values := range map[string][]string{
		"batch_size":            {`0`, `1001`, `1.5`, `"10"`, `"x"`, `true`, `{}`, `[1]`, `1e2`, `99999999999999999999`},
		"delay_between_batches": {`0`, `0.09`, `60.1`, `"1"`, `"x"`, `false`, `{}`, `[1]`, `1e99999`},
	} {
		for _, v := range values {
			if m := x.call("failure", "POST", "/campaign/"+c.ID+"/send", `{"`+field+`":`+v+`}`, nil); !strings.HasPrefix(m, field+" Input should be a") {
				t.Errorf("%s %s: %s", field, v, m)
			}
		}
	}
	x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"batch_size":null,"delay_between_batches":null,"all_contacts":true}`, nil)
}

// TestSendWithoutAudienceIsRefused: what a forgotten or mistyped field leaves out must not
// reach everybody.
func TestSendWithoutAudienceIsRefused(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	x.contact(`{"email":"ada@x.io"}`)
	var list, c struct {
		ID string `json:"_id"`
	}
	x.call("success", "POST", "/lists", `{"name":"News"}`, &list)
	x.call("success", "POST", "/campaign", `{"name":"n","channel":1,"subject":"s","body":"b"}`, &c)
	for body, want := range map[string]string{
		``:                                 "list_id Field required: the campaign has no audience",
		`{}`:                               "list_id Field required: the campaign has no audience",
		`{"list_id":null}`:                 "list_id Input should be something else than null: the variable that should hold it is empty",
		`{"all_contacts":false}`:           "list_id Field required: the campaign has no audience",
		`{"list_id":[]}`:                   "list_id or segment_ids should name at least one",
		`{"list_ids":["` + list.ID + `"]}`: "list_ids is not a field of this call. Did you mean list_id?",
		`{"segment_id":["seg_1"]}`:         "segment_id is not a field of this call. Did you mean segment_ids?",
		`{"list_id":["` + list.ID + `"],"all_contacts":true}`: "all_contacts Input should be left out",
	} {
		for _, call := range []string{"/send", "/ab-test/start"} {
			if body == "" && call != "/send" {
				continue // a test needs a body
			}
			if m := x.call("failure", "POST", "/campaign/"+c.ID+call, body, nil); !strings.HasPrefix(m, want) {
				t.Errorf("%s with %s: %s", call, body, m)
			}
		}
	}
	for body, want := range map[string]string{
		`{"name":"n","channel":1,"list_ids":["` + list.ID + `"]}`: "list_ids is not a field of this call. Did you mean list_id?",
		`{"name":"n","channel":1,"segment_id":["seg_1"]}`:         "segment_id is not a field of this call. Did you mean segment_ids?",
	} {
		if m := x.call("failure", "POST", "/campaign", body, nil); m != want {
			t.Errorf("%s: %s", body, m)
		}
	}
	if m := x.call("failure", "POST", "/push/send", `{"title":"t","segmentID":"seg_1"}`, nil); m != "segmentID is not a field of this call. Did you mean segmentId?" {
		t.Error(m)
	}
	if got := x.captured("email"); len(got) != 0 {
		t.Errorf("captured %+v", got)
	}
	// The campaign's own audience will do, and all contacts when that is said.
	var out sendResult
	x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, &out)
	if out.EmailsSent != 1 {
		t.Errorf("%+v", out)
	}
	x.call("success", "POST", "/lists/"+list.ID+"/contacts", `{"email":"bob@x.io"}`, nil)
	x.call("success", "PATCH", "/campaign/"+c.ID, `{"list_id":["`+list.ID+`"]}`, nil)
	if x.call("success", "POST", "/campaign/"+c.ID+"/send", ``, &out); out.EmailsSent != 1 || out.TotalMembers != 1 {
		t.Errorf("%+v", out)
	}
	// Each send keeps its record.
	var stats campaignStats
	x.call("success", "GET", "/campaign/"+c.ID+"/stats", nil, &stats)
	if r := stats.Runs; len(r) != 2 || stats.EmailsSent != 2 || r[0].Run != 1 || r[0].EmailsSent != 1 || len(r[0].ListID) != 0 || r[1].Run != 2 || r[1].EmailsSent != 1 || len(r[1].ListID) != 1 || r[0].StartedAt == nil || r[0].Status != "sent" {
		t.Errorf("%+v", stats)
	}
}

// TestOnlySubscribersGetCampaigns: people whom events made have said nothing, so in a new
// company no campaign reaches them, whatever list or segment they are in.
func TestOnlySubscribersGetCampaigns(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	x.contact(`{"email":"subscribed@x.io"}`)
	for i := range 6 {
		res, b := x.with(x.creds.APIKey, "POST", "/v1/events", fmt.Sprintf(`{"email":"visitor%d@x.io","event":"page_viewed"}`, i))
		if res.StatusCode != 200 {
			t.Fatal(b)
		}
	}
	var seg, c struct {
		ID string `json:"_id"`
	}
	x.console1("POST", "/segments", `{"name":"All of them","definition":{"match":"all","conditions":[{"kind":"attribute","field":"email","op":"exists"}]}}`, &seg)
	waitLive(t, x.service, seg.ID)
	x.call("success", "POST", "/campaign", `{"name":"n","channel":1,"subject":"s","body":"b"}`, &c)
	var out sendResult
	x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"segment_ids":["`+seg.ID+`"]}`, &out)
	var stats campaignStats
	x.call("success", "GET", "/campaign/"+c.ID+"/stats", nil, &stats)
	if out.TotalMembers != 7 || out.EmailsSent != 1 || stats.Skipped["not subscribed"] != 6 || len(x.captured("email")) != 1 {
		t.Errorf("%+v, skipped %v", out, stats.Skipped)
	}
}

// TestStopDoesNotInviteToSendTwice: a call that waits for the end of a run while
// the service stops answers that the run continues, and not to try again.
func TestStopDoesNotInviteToSendTwice(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	x.put("push", "fcm", x.firebase())
	x.addDevice(x.contact(`{"email":"ada@x.io"}`), "phone", "fcm", fcmOne)
	x.arrived, x.held = make(chan struct{}, 8), make(chan struct{})
	send := func() {
		res, answer := x.with(x.creds.APIKey, "POST", "/api/v1/push/send", `{"title":"T"}`)
		var a struct {
			Status, Message string
			Data            pushResult
		}
		ok(t, json.Unmarshal([]byte(answer), &a))
		if res.StatusCode != 503 || res.Header.Get("Retry-After") != "" || a.Status != "failure" || !strings.Contains(a.Message, "continues") || a.Data.CampaignID == "" {
			t.Errorf("%d %v %s", res.StatusCode, res.Header, answer)
		}
	}
	var work sync.WaitGroup
	work.Go(send)
	<-x.arrived
	work.Go(x.sender.Close)
	send()
	close(x.held)
	work.Wait()
}
