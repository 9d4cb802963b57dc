package messaging_test

import (
	"regexp"
	"sync"
	"testing"

	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/view"
)

var pageLink = regexp.MustCompile(`http://127\.0\.0\.1:8080/preferences/([A-Za-z0-9_-]+)`)

// keptTexts is a capture of texts.
type keptTexts struct {
	sync.Mutex
	bodies []string
}

func (k *keptTexts) Add(m capture.Message) (int, error) {
	k.Lock()
	defer k.Unlock()
	k.bodies = append(k.bodies, m.Body)
	return 1, nil
}

// TestPreferencesURL: e-mails and texts of flows, and single e-mails, have the recipient's
// link to the preference page, which data of a caller do not replace; what is rendered
// without being sent has none.
func TestPreferencesURL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mu sync.Mutex
	var mails []string
	mailer := messaging.MailerFunc(func(m *email.Message) outcome.Result {
		mu.Lock()
		defer mu.Unlock()
		mails = append(mails, m.HTML+m.Text)
		return outcome.New(outcome.Accepted, "250", "ok")
	})
	texts := &keptTexts{}
	const ada = "+491700000001"
	id := w.contact("ada@x.io", ada)
	w.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: id, Channel: "whatsapp", Status: "subscribed", Source: "form"})
	w.wrote(ada)
	flow := w.flow(`{"id":"e","type":"email","subject":"Hi","body":"<p><a href=\"{{preferences_url}}\">x</a></p>","next":"s"},{"id":"s","type":"sms","text":"Choose: {{preferences_url}}","next":"w"},{"id":"w","type":"whatsapp","text":"Choose: {{preferences_url}}"}`)
	w.effects(mailer, func(o *messaging.OutboxOptions) { o.Capture = texts })
	w.trigger(flow, "ada@x.io", `{"preferences_url":"https://evil.example"}`)
	w.until("the flow has sent", func(v *resolver.View) bool {
		return empty(v) && count(v, "email_sent")+count(v, "sms_sent")+count(v, "whatsapp_sent") == 3
	})
	template := w.template("<p>{{preferences_url}}")
	w.must(messages.CommandEmailSend, messages.EmailSend{Mail: messages.Mail{To: "ada@x.io", TemplateID: template, Data: []byte(`{"preferences_url":"https://evil.example"}`)}})
	w.until("the single e-mail is sent", func(v *resolver.View) bool { return empty(v) && count(v, "email_sent") == 2 })

	mu.Lock()
	defer mu.Unlock()
	all := append(mails, texts.bodies...)
	if len(all) != 4 {
		t.Fatalf("%q", all)
	}
	seen := map[tracking.ID]bool{}
	for _, body := range all {
		found := pageLink.FindStringSubmatch(body)
		if found == nil {
			t.Errorf("no link to the preference page in %q", body)
			continue
		}
		ok(t, w.node.Read(t.Context(), w.account, func(v *resolver.View) error {
			c, err := tracking.Parse(found[1], func(account uint64) (tracking.Key, bool) {
				key, err := compose.AccountKey(v, account)
				return key, err == nil
			})
			o, _ := v.Profiles().ResolveText(id)
			sent, known := v.Sent(messages.ID(c.Send))
			if err != nil || c.Kind != tracking.Preferences || !known || sent.Profile != o || seen[c.Send] || c.Flow != "" && c.Flow != flow {
				t.Errorf("%q: %+v, %v", body, c, err)
			}
			seen[c.Send] = true
			return nil
		}))
	}
	r, err := compose.Render(campaigns.Content{Text: "{{preferences_url}}"}, &view.Profile{}, "", nil)
	if err != nil || r.Text != "#preferences" {
		t.Errorf("%q, %v", r.Text, err)
	}
}
