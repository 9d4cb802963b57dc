package keyapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/webhook"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
)

// mailbox takes e-mails.
type mailbox chan *email.Message

type mailer struct{ mailbox }

func (b mailer) send(m *email.Message) outcome.Result {
	b.mailbox <- m
	return outcome.New(outcome.Accepted, "250", "ok")
}

func (s *service) template(html string) string {
	s.t.Helper()
	b, err := s.node.Command(s.t.Context(), s.account, campaigns.CommandTemplateSave, campaigns.Template{Name: "t", Source: campaigns.TemplateList, Subject: "Hi {{first_name}}", HTML: html})
	ok(s.t, err)
	var t campaigns.Template
	ok(s.t, json.Unmarshal(b, &t))
	return t.ID
}

func TestEmailSendC(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	_, err := s.node.Command(t.Context(), s.account, resolver.CommandCreditsAdd, resolver.CreditsAdd{Amount: 10})
	ok(t, err)
	_, err = s.node.Command(t.Context(), s.account, contacts.CommandCreate, contacts.Create{Email: "ada@x.io", FirstName: "Ada", LastName: "L"})
	ok(t, err)
	tpl := s.template(`<p>{{code}} {{order.id}} {{last_name}}<a href="https://a.io/x">x</a></p>`)
	key := s.newKey("campaigns:write", "events:write").Key
	box := make(mailbox, 10)
	client, err := webhook.NewClient(webhook.Options{Now: s.clock.Now})
	ok(t, err)
	o, err := messaging.NewOutbox(messaging.OutboxOptions{Node: s.node, Mailer: messaging.MailerFunc(mailer{box}.send), Webhooks: client, PublicURL: "http://muster.test",
		Now: s.clock.Now, Rand: func() uint64 { return 0 }, Metrics: metrics.NewSet()})
	ok(t, err)
	defer func() { o.Close(); client.Close() }()

	body := fmt.Sprintf(`{"to":" Ada@X.io ","template_id":%q,"data":{"first_name":"<Countess>","code":42,"order":{"id":"o&1"}},"idempotency_key":"k1"}`, tpl)
	var first, again struct {
		Data map[string]string
		ID   string `json:"request_id"`
	}
	res, b := s.with(key, "POST", "/v1/email/send", body)
	ok(t, json.Unmarshal([]byte(b), &first))
	if d := first.Data; res.StatusCode != 200 || d["status"] != "queued" || d["to"] != "Ada@X.io" || d["template_id"] != tpl || !strings.HasPrefix(d["profile_id"], "prf_") || d["message_id"] == "" || first.ID == "" {
		t.Fatalf("%d %s", res.StatusCode, b)
	}
	_, b = s.with(key, "POST", "/v1/email/send", body)
	ok(t, json.Unmarshal([]byte(b), &again))
	if fmt.Sprint(again.Data) != fmt.Sprint(first.Data) {
		t.Errorf("a retry is answered %s", b)
	}
	m := <-box
	// Data comes before the profile, and is escaped for where it stands.
	if m.Subject != "Hi <Countess>" || !strings.Contains(m.HTML, `<p>42 o&amp;1 L<a href="https://a.io/x">x</a></p><img src="http://muster.test/t/`) || m.To.Addr != "Ada@X.io" || m.Unsubscribe.URL != "" {
		t.Errorf("%+v", m)
	}
	events := func(want uint64) {
		t.Helper()
		eventually.Holds(t, "the profile's history has email_sent", func() bool {
			var have uint64
			ok(t, s.node.Read(t.Context(), s.account, func(v *resolver.View) error {
				for _, e := range v.EventTypes().List() {
					if e.Key == "email_sent" {
						have = e.Count
					}
				}
				return nil
			}))
			return have == want
		})
	}
	events(1)
	select {
	case m := <-box:
		t.Errorf("sent twice: %+v", m)
	default:
	}
	const data = `"data":{"first_name":"A","last_name":"B","code":1,"order":{"id":2}}`
	for body, want := range map[string]string{
		fmt.Sprintf(`{"to":"a@x.io","template_id":%q,"data":{"code":1}}`, tpl):                     "400 invalid_request template_id: the template cannot be sent: body: {{order.id}} has no value; give data.order.id, or a default in the template",
		fmt.Sprintf(`{"to":"a@x.io","template_id":%q,"data":{"code":1,"order":{"id":null}}}`, tpl): "400 invalid_request template_id: the template cannot be sent: body: {{order.id}} has no value; give data.order.id, or a default in the template",
		fmt.Sprintf(`{"template_id":%q}`, tpl):                                                     "400 invalid_request to Field required",
		fmt.Sprintf(`{"to":"no address","template_id":%q}`, tpl):                                   "400 invalid_request to Input should be",
		fmt.Sprintf(`{"to":"a@x.io,b@x.io","template_id":%q}`, tpl):                                "400 invalid_request to Input should be",
		`{"to":"a@x.io"}`:                                                                          "400 invalid_request template_id Field required",
		`{"to":"a@x.io","template_id":"tpl_0"}`:                                                    "404 not_found template_id",
		fmt.Sprintf(`{"to":"a@x.io","template_id":%q,"data":[1]}`, tpl):                            "400 invalid_request data Input should be a valid object",
		fmt.Sprintf(`{"to":"a@x.io","template_id":%q,"sender":"a@other.com",`+data+`}`, tpl):       "409 conflict sender: the domain",
		fmt.Sprintf(`{"to":"b@x.io","template_id":%q,"idempotency_key":"k1",`+data+`}`, tpl):       "409 conflict idempotency_key",
		fmt.Sprintf(`{"to":"a@x.io","template_id":%q}`, s.template(`<p onclick="{{code}}">x</p>`)): "400 invalid_request template_id: the template cannot be sent",
	} {
		res, b := s.with(key, "POST", "/v1/email/send", body)
		var a struct{ Code string }
		ok(t, json.Unmarshal([]byte(b), &a))
		if got := fmt.Sprintf("%d %s %s", res.StatusCode, a.Code, failureOf(t, res.StatusCode, b)); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, expected %s", body, got, want)
		}
	}
	// People who have unsubscribed get transactional messages alone.
	_, err = s.node.Command(t.Context(), s.account, contacts.CommandConsentSet, contacts.ConsentSet{ID: first.Data["profile_id"], Channel: "email", Status: "unsubscribed"})
	ok(t, err)
	toAda := fmt.Sprintf(`{"to":"ada@x.io","template_id":%q,"data":{"code":1,"order":{"id":2}}}`, tpl)
	res, b = s.with(key, "POST", "/v1/email/send", toAda)
	if m := failureOf(t, res.StatusCode, b); res.StatusCode != 409 || m != `to: the person has unsubscribed from e-mail; only templates that are marked transactional ("transactional": true) are sent to people who have unsubscribed` {
		t.Errorf("%d %s", res.StatusCode, b)
	}
	s.console1("PUT", "/templates/"+tpl, `{"name":"t","subject":"Your receipt","html":"<p>{{code}}</p>","transactional":true}`, nil)
	if res, b = s.with(key, "POST", "/v1/email/send", toAda); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, b)
	}
	if m := <-box; m.Subject != "Your receipt" {
		t.Errorf("%+v", m)
	}
	if res, _ := s.with(s.newKey("events:write").Key, "POST", "/v1/email/send", body); res.StatusCode != 403 {
		t.Errorf("without campaigns:write: %d", res.StatusCode)
	}
}
