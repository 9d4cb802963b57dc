package keyapi

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/messaging/capture"
	"github.com/musterhq/muster/messaging/compose"
	"github.com/musterhq/muster/messaging/tracking"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/domains"
	"github.com/musterhq/muster/resolver/messages"
	"github.com/musterhq/muster/resolver/outbox"
)

// setting is what the placeholders of one example stand for: things of one
// company, each made when it is first asked for.
type setting struct {
	*company
	made map[string]string
	// rival is the company that makes the requests.
	rival *company
}

func newSetting(c, rival *company) *setting {
	return &setting{company: c, made: map[string]string{}, rival: rival}
}

// get is the id, or another text, that a kind of placeholder stands for.
func (s *setting) get(kind string) string {
	s.t.Helper()
	if v, ok := s.made[kind]; ok {
		return v
	}
	v := ""
	name, arg, _ := strings.Cut(kind, ":")
	if m := makers[name]; m != nil {
		v = s.make(m, arg)
	}
	if v == "" && s.haste {
		v = "none"
	}
	if v == "" {
		s.t.Fatalf("placeholder %q: nothing makes it", kind)
	}
	s.made[kind] = v
	return v
}

// errNotMade is the panic of a request that should have succeeded, while hostile
// ones are being made: what they have changed may be in its way.
var errNotMade = errors.New("not made")

func (s *setting) make(m func(*setting, string) string, arg string) (v string) {
	defer func() {
		if r := recover(); r != nil && r != errNotMade {
			panic(r)
		}
	}()
	return m(s, arg)
}

func (s *setting) id(method, path, body string) string {
	s.t.Helper()
	var x struct {
		ID      string `json:"_id"`
		Profile string `json:"profile_id"`
	}
	s.must(method, path, body, &x)
	s.clock.Advance(1e6) // so that nothing is as old as another
	if x.ID == "" {
		return x.Profile
	}
	return x.ID
}

// newest is what was captured last for an address.
func (s *setting) newest(to string) (out struct {
	ID, HTML string
	SendID   string `json:"send_id"`
}) {
	s.t.Helper()
	list, _, err := s.capture.List(captureFilter(to), 1, 0)
	ok(s.t, err)
	if len(list) == 0 && s.haste {
		panic(errNotMade)
	} else if len(list) == 0 {
		s.t.Fatalf("nothing was sent to %s", to)
	}
	out.ID, out.HTML, out.SendID = list[0].ID, list[0].HTML, list[0].SendID
	return out
}

func keyOf(c *company) (key tracking.Key) {
	ok(c.t, c.node.Read(c.t.Context(), c.account, func(v *resolver.View) (err error) { key, err = compose.AccountKey(v, c.account); return err }))
	return key
}

const mailBody = `"subject":"Hi","body":"<p>Hi {{first_name | default: \"you\"}}</p><a href=\"https://shop.example/a\">A</a><a href=\"{{unsubscribe_url}}\">no more</a>"`

// makers make what placeholders stand for, by the word before the colon.
var makers map[string]func(s *setting, arg string) string

func init() {
	post := func(path, body string) func(*setting, string) string {
		return func(s *setting, _ string) string {
			return s.id("POST", path, strings.ReplaceAll(body, "NAME", s.name("")))
		}
	}
	fresh := func(format string) func(*setting, string) string {
		return func(s *setting, _ string) string { return fmt.Sprintf(format, s.name("")) }
	}
	console := func(path, body string) func(*setting, string) string { return post(api.Prefix+path, body) }
	makers = map[string]func(s *setting, arg string) string{
		"import": console("/imports", `{"name":"NAME","kind":"people","text":"email\na@b.example\n"}`),
		// What a request gives a name to.
		"newname": fresh("name %s"), "newemail": fresh("n%s@mail.example"), "newphone": func(s *setting, _ string) string { s.fresh++; return fmt.Sprintf("+4930%07d", s.fresh) },
		"newext": fresh("x-%s"), "newdevice": fresh("d-%s"), "newtoken": fresh("token-%s-123456789012"), "newdomain": fresh("%s.mail.example"), "newkey": fresh("k-%s"), "newevent": fresh("Event %s"),

		"email": func(s *setting, _ string) string {
			email := s.name("u") + "@mail.example"
			s.made["profile"] = s.id("POST", "/api/v1/contacts", fmt.Sprintf(`{"email":%q,"first_name":%q}`, email, s.name("Ada ")))
			return email
		},
		"profile": func(s *setting, _ string) string { s.get("email"); return s.made["profile"] },
		"phone": func(s *setting, _ string) string {
			s.fresh++
			phone := fmt.Sprintf("4940%07d", s.fresh)
			s.id("POST", "/api/v1/contacts", fmt.Sprintf(`{"phone":"+%s"}`, phone))
			return phone
		},
		"external": func(s *setting, _ string) string {
			id := s.name("ext-")
			s.id("POST", "/api/v1/contacts", fmt.Sprintf(`{"external_id":%q}`, id))
			return id
		},
		"device": func(s *setting, _ string) string {
			return s.id("POST", "/api/v1/contacts/"+s.get("profile")+"/devices", fmt.Sprintf(`{"kind":"fcm","address":%q}`, s.get("address")))
		},
		"address": func(s *setting, _ string) string { return "token-" + s.name("") + "-0123456789" },
		"form":    console("/forms", `{"name":"NAME","published":true,"fields":[{"name":"email","label":"E-mail","required":true}]}`),
		"list":    post("/api/v1/lists", `{"name":"NAME","description":"NAME"}`),
		"member": func(s *setting, _ string) string {
			return s.id("POST", "/api/v1/lists/"+s.get("list")+"/contacts", fmt.Sprintf(`{"email":%q}`, s.name("m")+"@mail.example"))
		},
		"segment": func(s *setting, _ string) string {
			id := s.id("POST", api.Prefix+"/segments", fmt.Sprintf(`{"name":%q,"definition":{"kind":"attribute","field":"email","op":"exists"}}`, s.name("seg ")))
			s.live(id)
			return id
		},
		"bylist": func(s *setting, _ string) string {
			return s.id("POST", api.Prefix+"/segments", fmt.Sprintf(`{"name":%q,"definition":{"kind":"list","list_id":%q}}`, s.name("seg "), s.get("list")))
		},
		"other":        func(s *setting, _ string) string { return makers["segment"](s, "") },
		"template":     console("/templates", `{"name":"NAME","source":"LIST","subject":"Hi","html":"<p>Hello {{first_name | default: \"you\"}}</p>"}`),
		"draft":        console("/templates", `{"name":"NAME","source":"DRAFT","subject":"Hi","html":"<p>Hello {{first_name | default: \"you\"}}</p>"}`),
		"campaign":     post("/api/v1/campaign", `{"name":"NAME","channel":2,"type":1,"date":"2026-01-01",`+mailBody+`}`),
		"textcampaign": post("/api/v1/campaign", `{"name":"NAME","channel":2,"type":2,"date":"2026-01-01","body":"Hi"}`),
		"sent": func(s *setting, _ string) string {
			s.get("member")
			id := s.get("campaign")
			s.must("POST", "/api/v1/campaign/"+id+"/send", fmt.Sprintf(`{"list_id":[%q]}`, s.get("list")), nil)
			return id
		},
		"flow": console("/flows", `{"name":"NAME","trigger":{"type":"api"},"steps":[{"id":"w","type":"wait","seconds":3600,"next":"x"},{"id":"x","type":"exit"}]}`),
		"live": func(s *setting, _ string) string { // a flow
			id := makers["flow"](s, "")
			s.console("POST", "/flows/"+id+"/publish", "", nil)
			return id
		},
		"enrolled": func(s *setting, _ string) string {
			s.console("POST", "/flows/"+s.get("live")+"/trigger", fmt.Sprintf(`{"email":%q}`, s.get("email")), nil)
			return s.get("profile")
		},
		"user":        console("/users", `{"email":"NAME@mail.example","name":"NAME","password":"long enough password","permissions":["lists:read"]}`),
		"useremail":   func(s *setting, _ string) string { return s.ConsoleEmail },
		"apikey":      console("/api-keys", `{"name":"NAME","permissions":["lists:read"]}`),
		"webhook":     console("/webhooks", `{"url":"https://hooks.example/x","events":["contact.updated"],"description":"NAME"}`),
		"source":      console("/sources", `{"name":"NAME","kind":"browser","allowed_origins":["https://shop.example"]}`),
		"othersource": func(s *setting, _ string) string { return makers["source"](s, "") },
		"writekey": func(s *setting, _ string) string {
			var source struct {
				Keys []struct {
					ID string `json:"_id"`
				}
			}
			s.console("GET", "/sources/"+s.get("source"), "", &source)
			if len(source.Keys) == 0 {
				panic(errNotMade)
			}
			return source.Keys[0].ID
		},
		"otherhook": func(s *setting, _ string) string { return makers["webhook"](s, "") },
		"seq": func(s *setting, _ string) string { // of a webhook that was given up
			hook := s.get("webhook")
			s.console("POST", "/webhooks/"+hook+"/test", "", nil)
			ok(s.t, s.node.Read(s.t.Context(), s.account, func(v *resolver.View) error {
				due, err := v.OutboxDue(outbox.KindWebhook, 1<<60, 1000, func(uint64) bool { return false })
				for _, x := range due {
					if x.Endpoint == hook {
						s.made["item"] = strconv.FormatUint(x.Seq, 10)
					}
				}
				return err
			}))
			seq, err := strconv.ParseUint(s.made["item"], 10, 64)
			if err != nil {
				panic(errNotMade)
			}
			s.command(messages.CommandOutboxDone, outbox.Done{Seq: seq, Result: outbox.ResultFailed, Reason: s.name("no "), Log: &outbox.DeliveryAnswer{Status: 500}}, nil)
			var dead []struct{ Seq uint64 }
			s.console("GET", "/webhooks/"+hook+"/dead-letters", "", &dead)
			if len(dead) == 0 {
				panic(errNotMade)
			}
			return strconv.FormatUint(dead[0].Seq, 10)
		},
		"delivery": func(s *setting, _ string) string { // of a webhook's log
			_ = s.get("seq")
			var list []struct {
				ID string `json:"_id"`
			}
			s.console("GET", "/webhooks/"+s.get("webhook")+"/deliveries", "", &list)
			if len(list) == 0 {
				panic(errNotMade)
			}
			return list[0].ID
		},
		"domain": func(s *setting, _ string) string { // verified
			name := s.name("d") + ".example"
			s.command(domains.CommandAdd, domains.Domain{Name: name, Selector: "s", Token: s.name("t")}, nil) // keys take time to make
			s.command(domains.CommandVerify, domains.Name{Name: name, By: "administrator"}, nil)
			return name
		},
		"company": func(s *setting, _ string) (id string) {
			ok(s.t, s.node.Read(s.t.Context(), s.account, func(v *resolver.View) error { id = v.CompanyState().ID; return nil }))
			return id
		},
		"accountid": func(s *setting, _ string) string { return s.AccountID },
		"appid":     func(s *setting, _ string) string { return s.AppID },
		"erased": func(s *setting, _ string) string { // an e-mail that is kept out
			email := s.get("email")
			s.must("DELETE", "/api/v1/contacts/"+s.get("profile"), "", nil)
			return email
		},
		"erasure": func(s *setting, _ string) string {
			list := func() map[string]bool {
				var all []struct{ Hash string }
				s.console("GET", "/erasures?limit=1000", "", &all)
				out := map[string]bool{}
				for _, x := range all {
					out[x.Hash] = true
				}
				return out
			}
			before := list()
			s.get("erased")
			after := list()
			maps.DeleteFunc(after, func(h string, _ bool) bool { return before[h] })
			for h := range after {
				return h
			}
			return ""
		},
		"eventtype": func(s *setting, _ string) string { return s.event(s.name("bought_")) },
		"usedkey": func(s *setting, _ string) string {
			key := s.name("idem-")
			s.must("POST", "/v1/events", fmt.Sprintf(`{"email":"%s@mail.example","event":"bought","idempotency_key":%q}`, s.name("i"), key), nil)
			return key
		},
		"mailkey": func(s *setting, _ string) string {
			key := s.name("mail-")
			s.must("POST", "/v1/email/send", fmt.Sprintf(`{"to":"%s@mail.example","template_id":%q,"idempotency_key":%q}`, s.name("i"), s.get("template"), key), nil)
			return key
		},
		// A page's end. Only cursors that name something are worth a try: those that
		// are numbers of a place say nothing.
		"cursor": func(s *setting, path string) string {
			for range 2 {
				kind := map[string]string{
					"/api/v1/lists": "list", "/api/v1/campaign": "campaign", "/api/v1/push/segments": "segment", "/api/v1/analytics/campaigns": "campaign", "/api/v1/analytics/segments": "segment",
					"/users": "user", "/api-keys": "apikey", "/segments": "segment", "/lists": "list", "/forms": "form", "/templates": "template", "/campaigns": "campaign", "/flows": "flow", "/api/v1/custom-flows": "flow", "/erasures": "erasure",
				}[path]
				makers[kind](newSetting(s.company, s.rival), "")
			}
			if !strings.HasPrefix(path, "/api/") {
				path = api.Prefix + path
			}
			return s.must("GET", path+"?limit=1", "", nil)
		},
		"membercursor": func(s *setting, _ string) string {
			return s.inner("/segments/" + s.get("segment") + "/members?limit=1")
		},
		"timelinecursor": func(s *setting, _ string) string {
			for range 2 {
				s.must("POST", "/v1/events", fmt.Sprintf(`{"email":%q,"event":"bought"}`, s.get("email")), nil)
				s.clock.Advance(1e6)
			}
			return s.inner("/profiles/" + s.get("profile") + "/events?limit=1")
		},

		"inboundsecret": func(s *setting, _ string) string { return s.provider("generic", "secrets") },
		"mailtoken":     func(s *setting, _ string) string { return s.provider("mail", "token") },
		"verifytoken": func(s *setting, _ string) string {
			return s.providerWith("whatsapp", "verify_token", `{"app_secret":"5ebe2294ecd0e0f0","generate":true}`)
		},
		"sendid":    func(s *setting, _ string) string { return s.message().SendID },
		"messageid": func(s *setting, _ string) string { return s.message().ID },
		// A token of a message, signed with the rival's key.
		"forged":     func(s *setting, _ string) string { return s.forged(tracking.Unsubscribe) },
		"forgedpage": func(s *setting, _ string) string { return s.forged(tracking.Preferences) },
	}
}

func (s *setting) forged(kind tracking.Kind) string {
	_, send, _ := compose.ParseSend(s.message().SendID)
	return keyOf(s.rival).Token(tracking.Claims{Kind: kind, Account: s.account, Send: tracking.ID(send)})
}

func (s *setting) live(segment string) {
	s.t.Helper()
	eventually.Holds(s.t, "the segment is built", func() bool {
		var x struct{ Status string }
		s.console("GET", "/segments/"+segment, "", &x)
		return x.Status == "live"
	})
}

func (s *setting) event(typ string) string {
	s.must("POST", "/v1/events", fmt.Sprintf(`{"email":"%s@mail.example","event":%q}`, s.name("e"), typ), nil)
	return typ
}

// inner is a cursor that stands within data.
func (s *setting) inner(path string) string {
	s.t.Helper()
	var x struct{ Next string }
	s.console("GET", path, "", &x)
	return x.Next
}

// provider has a secret made for a provider's reports.
func (s *setting) provider(name, field string) string {
	s.t.Helper()
	return s.providerWith(name, field, `{"generate":true}`)
}

func (s *setting) providerWith(name, field, body string) string {
	s.t.Helper()
	var x struct{ Once map[string]any }
	s.console("PUT", "/inbound-providers/"+name, body, &x)
	if list, is := x.Once[field].([]any); is {
		return list[0].(string)
	}
	return x.Once[field].(string)
}

// message is one of a campaign that was sent.
func (s *setting) message() struct {
	ID, HTML string
	SendID   string `json:"send_id"`
} {
	s.t.Helper()
	s.get("sent")
	var p struct{ Identities struct{ Email []string } }
	s.console("GET", "/profiles/"+s.get("member"), "", &p)
	if len(p.Identities.Email) == 0 {
		panic(errNotMade)
	}
	return s.newest(p.Identities.Email[0])
}

// unknown is an id of the same shape as id that nothing has.
func unknown(kind, id string) string {
	name, _, _ := strings.Cut(kind, ":")
	switch name {
	case "email", "erased", "useremail", "domain", "usedkey", "mailkey", "external", "eventtype", "address":
		return "zz" + id[2:]
	case "seq":
		return "9" + id + "7"
	case "phone":
		return id[:len(id)-2] + "99"
	case "membercursor", "timelinecursor", "cursor":
		if b, err := base64.RawURLEncoding.DecodeString(id); err == nil && !isHex(id) {
			// Of a place that is as far, of another thing.
			for i := max(1, len(b)-6); i < len(b); i++ {
				b[i] = turned(b[i])
			}
			return base64.RawURLEncoding.EncodeToString(b)
		}
	}
	b := []byte(id)
	for i := max(0, len(b)-8); i < len(b); i++ {
		b[i] = turned(b[i])
	}
	return string(b)
}

func isHex(s string) bool { _, err := hex.DecodeString(s); return err == nil }

// turned is another byte of the same class.
func turned(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return '0' + (c-'0'+7)%10
	case c >= 'a' && c <= 'f':
		return 'a' + (c-'a'+3)%6
	case c >= 'g' && c <= 'z', c >= 'A' && c <= 'Z':
		return c ^ 1 | 0x40
	case c == '-' || c == '_' || c == '.' || c == '@':
		return c
	}
	return c ^ 1
}

// unknownToken is a link signed by a company, of a message that is not there.
func unknownToken(c *company, account uint64) string {
	send := compose.SealSend(keyOf(c), messages.CampaignSend(4711, 12, 0))
	return keyOf(c).Token(tracking.Claims{Kind: tracking.Unsubscribe, Account: account, Send: tracking.ID(send)})
}

func captureFilter(to string) capture.Filter { return capture.Filter{To: to} }
