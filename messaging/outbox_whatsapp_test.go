package messaging_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/text"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/resolver/conversations"
	"github.com/musterhq/muster/resolver/credentials"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// cloud is a server that speaks the HTTP contract of Meta's WhatsApp Cloud API: POST
// /v21.0/{phone number id}/messages with a bearer token.
type cloud struct {
	*target
	t    *testing.T
	mu   sync.Mutex
	open map[string]bool // numbers that may get free texts
	sent []cloudMessage
}

type cloudMessage struct {
	Product  string `json:"messaging_product"`
	To       string `json:"to"`
	Type     string `json:"type"`
	Callback string `json:"biz_opaque_callback_data"`
	Text     struct {
		Body string `json:"body"`
	} `json:"text"`
	Template struct {
		Name     string `json:"name"`
		Language struct {
			Code string `json:"code"`
		} `json:"language"`
		Components []struct {
			Type       string `json:"type"`
			Parameters []struct {
				Type  string `json:"type"`
				Text  string `json:"text"`
				Image struct {
					Link string `json:"link"`
				} `json:"image"`
			} `json:"parameters"`
		} `json:"components"`
	} `json:"template"`
}

func newCloud(t *testing.T) *cloud {
	c := &cloud{t: t, open: map[string]bool{}}
	c.target = newTarget(t, c.answerTo)
	return c
}

// refuse answers with an error as Meta's Graph API writes it.
func (c *cloud) refuse(w http.ResponseWriter, status, code int, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"message":%q,"type":"OAuthException","code":%d,"error_data":{"messaging_product":"whatsapp","details":%[1]q},"fbtrace_id":"x"}}`, message, code)
}

func (c *cloud) answerTo(_ int, s seen, w http.ResponseWriter) {
	var m cloudMessage
	d := json.NewDecoder(strings.NewReader(s.body))
	switch err := d.Decode(&m); {
	case s.method != "POST" || s.path != "/v21.0/1062840/messages":
		c.refuse(w, 400, 100, "Unsupported request")
	case s.header.Get("Authorization") != "Bearer cloud-token":
		c.refuse(w, 401, 190, "Invalid OAuth access token")
	case err != nil || m.Product != "whatsapp" || !strings.HasPrefix(m.To, "+"):
		c.refuse(w, 400, 100, "Invalid parameter")
	case m.Type == "text" && m.Text.Body == "", m.Type == "template" && (m.Template.Name == "" || m.Template.Language.Code == ""), m.Type != "text" && m.Type != "template":
		c.refuse(w, 400, 100, "Invalid parameter")
	case m.Type == "template" && m.Template.Name != "order_shipped":
		c.refuse(w, 404, 132001, "Template name does not exist in the translation")
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		if m.Type == "text" && !c.open[m.To] {
			c.refuse(w, 400, 131047, "Re-engagement message")
			return
		}
		c.sent = append(c.sent, m)
		io.WriteString(w, `{"messaging_product":"whatsapp","contacts":[{"input":"x","wa_id":"x"}],"messages":[{"id":"wamid.1"}]}`)
	}
}

func (c *cloud) messages() []cloudMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]cloudMessage(nil), c.sent...)
}

// wrote opens the conversation with a number, as a text from there does.
func (w *world) wrote(phone string) {
	w.t.Helper()
	var open conversations.Open
	ok(w.t, w.node.Read(w.t.Context(), w.account, func(v *resolver.View) error {
		open.Number = v.Reach().ConversationNumber(phone)
		return nil
	}))
	w.must(conversations.CommandOpen, open)
}

// TestWhatsAppOfFlows: templates go out at any time, texts only to people who have written
// within a day, and neither to people who have not subscribed; a provider that cannot take templates
// and a template that does not exist are told.
func TestWhatsAppOfFlows(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t), newCloud(t)
	config, err := text.WhatsAppCloud("v21.0", "1062840", "cloud-token", c.URL)
	ok(t, err)
	set := func(c text.Config) {
		b, err := json.Marshal(c)
		ok(t, err)
		w.must(credentials.CommandSet, credentials.Credential{Group: credentials.Message, Name: "whatsapp", Config: b})
	}
	set(config)
	const ada, bob = "+491700000001", "+491700000002"
	w.must(contacts.CommandConsentSet, contacts.ConsentSet{ID: w.contact("ada@x.io", ada), Channel: "whatsapp", Status: "subscribed", Source: "form"})
	w.contact("bob@x.io", bob)
	template := w.flowOf("after_exit", `{"id":"t","type":"whatsapp","template":"order_shipped","language":"en_US","parameters":["{{first_name}}","{{event.order}}"],"header":"https://x.example/a.png"}`)
	free := w.flowOf("after_exit", `{"id":"f","type":"whatsapp","text":"Hi {{first_name}} {{unsubscribe_url}}"}`)
	w.effects(accepts, nil)

	w.trigger(template, "ada@x.io", `{"order":"A \"1\""}`)
	w.until("the template is sent", func(v *resolver.View) bool { return empty(v) && count(v, "whatsapp_sent") == 1 })
	list := c.messages()
	if len(list) != 1 || list[0].To != ada || list[0].Template.Name != "order_shipped" || list[0].Callback == "" || len(list[0].Template.Components) != 2 ||
		list[0].Template.Components[0].Parameters[0].Image.Link != "https://x.example/a.png" || list[0].Template.Components[1].Parameters[0].Text != "Ada" || list[0].Template.Components[1].Parameters[1].Text != `A "1"` {
		t.Fatalf("%+v", list)
	}
	// Named parameters, a document and buttons; values stay within the links that they end.
	named := w.flowOf("after_exit", `{"id":"n","type":"whatsapp","template":"order_shipped","language":"en_US","named_parameters":{"name":"{{first_name}}"},"header_type":"document","header":"https://x.example/{{event.order}}",`+
		`"header_filename":"{{event.order}}.pdf","buttons":[{"type":"url","index":1,"value":"o/{{event.order}}"},{"type":"quick_reply","value":"late {{event.order}}"}]}`)
	w.trigger(named, "ada@x.io", `{"order":"A 1"}`)
	w.until("the template with names is sent", func(v *resolver.View) bool { return empty(v) && count(v, "whatsapp_sent") == 2 })
	got := c.got()
	for _, part := range []string{`{"parameter_name":"name","text":"Ada","type":"text"}`, `{"filename":"A 1.pdf","link":"https://x.example/A%201"}`, `{"text":"o/A%201","type":"text"}`, `{"payload":"late A 1","type":"payload"}`} {
		if !strings.Contains(got[1].body, part) {
			t.Errorf("no %s in %s", part, got[1].body)
		}
	}
	place := w.flowOf("after_exit", `{"id":"p","type":"whatsapp","template":"order_shipped","language":"en_US","header_type":"location","header_location":{"latitude":"52.5","longitude":"{{event.lon}}","name":"Shop","address":"{{event.order}}"},`+
		`"buttons":[{"type":"copy_code","index":0,"value":"{{event.order}}"}]}`)
	w.trigger(place, "ada@x.io", `{"order":"A1","lon":"13.4"}`)
	w.until("the place is sent", func(v *resolver.View) bool { return empty(v) && count(v, "whatsapp_sent") == 3 })
	for _, part := range []string{`{"address":"A1","latitude":"52.5","longitude":"13.4","name":"Shop"}`, `{"coupon_code":"A1","type":"coupon_code"}`} {
		if got := c.got(); !strings.Contains(got[2].body, part) {
			t.Errorf("no %s in %s", part, got[2].body)
		}
	}
	w.trigger(named, "ada@x.io", `{}`)
	w.until("a hole in a value is found", func(v *resolver.View) bool { return empty(v) && count(v, "whatsapp_failed") == 1 })
	w.recorded("whatsapp_failed", "{{event.order}} has no value")
	if account, _, is := compose.ParseAddressID(list[0].Callback, w.account); !is || account != w.account {
		t.Errorf("the callback's data %q name no message", list[0].Callback)
	}
	// A text needs an open conversation: our own rule, so nothing is handed over.
	w.trigger(free, "ada@x.io", `{}`)
	w.until("the text is refused", func(v *resolver.View) bool { return empty(v) && count(v, "whatsapp_failed") == 2 })
	w.recorded("whatsapp_failed", "has not written in the last 24 hours")
	if n := len(c.got()); n != 3 {
		t.Errorf("%d requests, expected 3", n)
	}
	w.wrote(ada)
	c.mu.Lock()
	c.open[ada] = true
	c.mu.Unlock()
	w.trigger(free, "ada@x.io", `{}`)
	w.until("the text is sent", func(v *resolver.View) bool { return empty(v) && count(v, "whatsapp_sent") == 4 })
	if list := c.messages(); !strings.HasPrefix(list[3].Text.Body, "Hi Ada http://127.0.0.1:8080/t/") {
		t.Errorf("%+v", list[3])
	}
	w.Advance(24 * time.Hour)
	w.trigger(free, "ada@x.io", `{}`)
	w.until("a day later it is refused", func(v *resolver.View) bool { return empty(v) && count(v, "whatsapp_failed") == 3 })

	// A contact without a subscription gets nothing, at the step already.
	w.trigger(template, "bob@x.io", `{"order":"1"}`)
	w.until("it is skipped", func(v *resolver.View) bool {
		f, _ := v.Flows().Find(template)
		return empty(v) && f.Counts.Completed == 2
	})
	// Answers go to the sender, subscribed or not.
	w.wrote(bob)
	c.mu.Lock()
	c.open[bob] = true
	c.mu.Unlock()
	w.must(messages.CommandTextAnswer, messages.TextAnswer{Profile: w.holder(bob), Channel: "whatsapp", Text: "Shop Ltd", Key: "1"})
	w.until("the answer is sent", func(v *resolver.View) bool { return empty(v) && count(v, "whatsapp_sent") == 5 })

	// A template that does not exist, and a provider that takes none.
	unknown := w.flowOf("after_exit", `{"id":"u","type":"whatsapp","template":"nonsense","language":"en_US"}`)
	w.trigger(unknown, "ada@x.io", `{}`)
	w.until("it fails", func(v *resolver.View) bool { return empty(v) && count(v, "whatsapp_failed") == 4 })
	w.recorded("whatsapp_failed", "Template name does not exist")
	config.Templates = ""
	set(config)
	w.trigger(template, "ada@x.io", `{"order":"1"}`)
	w.until("that fails too", func(v *resolver.View) bool { return empty(v) && count(v, "whatsapp_failed") == 5 })
	w.recorded("whatsapp_failed", "takes no templates")
	if n := len(c.messages()); n != 5 {
		t.Errorf("%d messages, expected 5", n)
	}
	// A refused token waits for the account to be put right.
	config.Templates, config.Token = text.CloudTemplates, "other"
	set(config)
	w.trigger(template, "ada@x.io", `{"order":"1"}`)
	w.until("it waits", func(v *resolver.View) bool {
		l := w.waitingIn(v, outbox.KindWhatsApp)
		return len(l) == 1 && l[0].Attempt == 1
	})
	// What a person wrote from one number opens no conversation with another.
	w.wrote(ada)
	w.must(contacts.CommandUpdate, contacts.Update{ID: w.holder(ada), Phone: new("+491700000003")})
	w.trigger(free, "ada@x.io", `{}`)
	w.until("it is refused", func(v *resolver.View) bool { return count(v, "whatsapp_failed") == 6 })
}

// holder is the id of the profile with a phone.
func (w *world) holder(phone string) (id string) {
	w.t.Helper()
	ok(w.t, w.node.Read(w.t.Context(), w.account, func(v *resolver.View) error {
		o, _ := v.Profiles().Find(resolver.IdentityPhone, phone)
		id = v.Profiles().ID(o).String()
		return nil
	}))
	return id
}
