package keyapi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/operation/operationtest"
	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver/node"
)

// person makes calls of the console with a session.
type person struct {
	*service
	token string
}

// answer is one of the console.
type consoleAnswer struct {
	Status, Message string
	Data            json.RawMessage
	Next            string
}

func (p person) do(method, path, body string) (int, consoleAnswer) {
	p.t.Helper()
	res, b := p.send(method, api.Prefix+path, body, "Authorization", "Bearer "+p.token)
	var a consoleAnswer
	ok(p.t, json.Unmarshal([]byte(b), &a))
	return res.StatusCode, a
}

// must makes a call that succeeds, and reads its data.
func (p person) must(method, path, body string, data any) {
	p.t.Helper()
	status, a := p.do(method, path, body)
	if status != 200 || a.Status != "success" {
		p.t.Fatalf("%s %s %s: %d %s", method, path, body, status, a.Message)
	}
	if data != nil {
		ok(p.t, json.Unmarshal(a.Data, data))
	}
}

// refused makes a call that is refused with a status, a field and a message.
func (p person) refused(method, path, body string, want int, field, says string) {
	p.t.Helper()
	status, a := p.do(method, path, body)
	var d struct{ Field string }
	ok(p.t, json.Unmarshal(a.Data, &d))
	if status != want || a.Status != "failure" || d.Field != field || !strings.Contains(a.Message, says) {
		p.t.Errorf("%s %s %s: %d, field %q, %s; want %d, %q, %s", method, path, body, status, d.Field, a.Message, want, field, says)
	}
}

// newPerson makes a user with the permissions, and signs in.
func (s *service) newPerson(name string, permissions ...string) person {
	s.t.Helper()
	s.console1("POST", "/users", fmt.Sprintf(`{"email":"%s@team.example","password":"a good password","permissions":["%s"]}`, name, strings.Join(permissions, `","`)), nil)
	return s.signIn(name+"@team.example", "a good password")
}

func (s *service) signIn(email, password string) person {
	s.t.Helper()
	var d struct{ Token string }
	s.console1("POST", "/session", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password), &d)
	return person{s, d.Token}
}

// withMailer is a service whose messages a function takes.
func withMailer(t *testing.T, take func(*email.Message) outcome.Result) *service {
	return newService(t, sendingWith(t, take))
}

// sendingWith has e-mails handed to take.
func sendingWith(t *testing.T, take func(*email.Message) outcome.Result) func(*Options) {
	return func(o *Options) {
		o.PerMinute = 10_000
		d, err := messaging.New(t.Context(), messaging.Options{
			Node: o.Node.(*node.Node), PublicURL: "http://127.0.0.1:8080", Now: o.Now, Metrics: metrics.NewSet(), Mailer: messaging.MailerFunc(take),
			Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		})
		ok(t, err)
		t.Cleanup(d.Close)
		o.Campaigns = d
	}
}

// TestPeopleCanWhatKeysCan: every call of keys is one of the console, too, with the same
// permission, or is listed with a reason.
func TestPeopleCanWhatKeysCan(t *testing.T) {
	t.Parallel()
	people := map[string]*operation.Operation{}
	derived := new(API).SessionOperations()
	for _, g := range slices.Concat(new(api.API).Operations(), derived) {
		for i := range g.Operations {
			if op := &g.Operations[i]; g.Surface == operation.SurfaceConsole {
				people[handler.CallOfKeys(op.Method, op.Path)] = op
			}
		}
	}
	tried := 0
	for _, g := range new(API).Operations() {
		for i := range g.Operations {
			op := &g.Operations[i]
			name := op.Method + " " + op.Path
			if onlyOfKeys[name] != "" {
				continue
			}
			tried++
			if own := people[name]; own == nil || own.Permission != op.Permission {
				t.Errorf("keys with %s have %s %s; people have %+v", op.Permission, g.Surface.Prefix, name, own)
			}
		}
	}
	if tried < 75 || len(onlyOfKeys) > 3 {
		t.Errorf("only %d calls of keys, %d of keys alone", tried, len(onlyOfKeys))
	}
	ok(t, new(API).checkSession())
	n := 0
	for _, g := range derived {
		n += len(g.Operations)
	}
	if n < 20 {
		t.Errorf("only %d calls are derived", n)
	}
}

// TestSessionCallsAreGuarded: calls that people have because keys have them ask for the
// session, for the person's own permission, and refuse unknown fields and parameters.
func TestSessionCallsAreGuarded(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	all, none := person{s, s.token}, s.newPerson("none", "contacts:read")
	tries := 0
	for _, g := range s.api.SessionOperations() {
		for i := range g.Operations {
			op := &g.Operations[i]
			path := strings.NewReplacer("{id}", "none", "{contact}", "none").Replace(op.Path)
			if res, b := s.send(op.Method, api.Prefix+path, "{}"); res.StatusCode != 401 {
				t.Errorf("%s %s without a session: %d %s", op.Method, path, res.StatusCode, b)
			}
			if res, b := s.with(s.creds.APIKey, op.Method, api.Prefix+path, "{}"); res.StatusCode != 401 {
				t.Errorf("%s %s with a key: %d %s", op.Method, path, res.StatusCode, b)
			}
			if op.Permission != "contacts:read" {
				none.refused(op.Method, path, "{}", 403, "", "you need the permission "+op.Permission)
			}
			for _, q := range operationtest.Refused(t, "", op) {
				if op.ID == "consoleRecordEvent" && !strings.Contains(q.Path, "?") {
					continue // the account's settings decide, which the handler looks up
				}
				if status, a := all.do(q.Method, q.Path, q.Body); status != 400 || !strings.Contains(a.Message, q.Names) {
					t.Errorf("%s %s %s: %d %s", q.Method, q.Path, q.Body, status, a.Message)
				}
				tries++
			}
		}
	}
	if tries < 40 {
		t.Errorf("only %d requests were made", tries)
	}
}

// TestCampaignsBySession makes, changes, sends and deletes a campaign with a session.
func TestCampaignsBySession(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // several are sent at once
	var took []string // the campaign is sent before the call answers
	fail := false
	s := withMailer(t, func(m *email.Message) outcome.Result {
		if fail {
			return outcome.New(outcome.Permanent, "550", "not this message")
		}
		mu.Lock()
		defer mu.Unlock()
		took = append(took, m.To.Addr+" "+m.Subject)
		return outcome.New(outcome.Accepted, "", "")
	})
	p := s.newPerson("marketing", "contacts:write", "contacts:read", "lists:write", "lists:read", "campaigns:write", "campaigns:read")
	var list, x struct {
		ID      string `json:"_id"`
		Subject string
		Status  string
	}
	p.must("POST", "/lists", `{"name":"Readers"}`, &list)
	p.must("POST", "/lists/"+list.ID+"/contacts", `{"email":"ann@people.example"}`, nil)
	p.refused("POST", "/lists/lst_none/contacts", `{"email":"ann@people.example"}`, 404, "list_id", "there is no such list")
	p.must("POST", "/contacts", `{"email":"bob@people.example","list_id":"`+list.ID+`"}`, nil)
	p.refused("POST", "/contacts", `{"email":"bob@people.example"}`, 409, "email", "Contact with this email already exists")
	var all []struct{ Email string }
	if p.must("GET", "/contacts?limit=1", "", &all); len(all) != 1 {
		t.Errorf("contacts: %+v", all)
	}
	if _, a := p.do("GET", "/contacts?limit=1", ""); a.Next == "" {
		t.Error("a first page has no next")
	}

	p.refused("POST", "/campaigns", `{"name":"x","channel":"email"}`, 400, "channel", "channel Input should be 1 or 2")
	p.refused("POST", "/campaigns", `{"name":"x","channel":2,"type":1}`, 400, "date", "date Field required")
	p.refused("PATCH", "/campaigns/cmp_none", `{"name":"x"}`, 404, "", "There is no campaign with this id")
	p.must("POST", "/campaigns", `{"name":"News","channel":1,"subject":"A","body":"<p>Hi</p>"}`, &x)
	p.must("PATCH", "/campaigns/"+x.ID, `{"subject":"B"}`, &x)
	if x.Subject != "B" || x.Status != "draft" {
		t.Errorf("changed: %+v", x)
	}
	p.refused("POST", "/campaigns/"+x.ID+"/send", `{}`, 400, "list_id", "the campaign has no audience")
	p.refused("POST", "/campaigns/"+x.ID+"/send", `{"list_id":["`+list.ID+`"],"batch_size":0}`, 400, "batch_size", "from 1 to 1000")
	var sent struct {
		Success bool
		Sent    int `json:"emails_sent"`
	}
	p.must("POST", "/campaigns/"+x.ID+"/send", `{"list_id":["`+list.ID+`"]}`, &sent)
	if slices.Sort(took); !sent.Success || sent.Sent != 2 || !slices.Equal(took, []string{"ann@people.example B", "bob@people.example B"}) {
		t.Errorf("sent: %+v, %v", sent, took)
	}
	var did []struct{ Sent bool }
	if p.must("GET", "/campaigns/"+x.ID+"/recipients/activity", "", &did); len(did) != 2 || !did[0].Sent {
		t.Errorf("activity: %+v", did)
	}
	// When no message of a send goes out, the status of HTTP is an error, and the answer
	// has the counts.
	fail = true
	p.must("POST", "/campaigns", `{"name":"News 2","channel":1,"subject":"A","body":"<p>Hi</p>"}`, &x)
	status, a := p.do("POST", "/campaigns/"+x.ID+"/send", `{"list_id":["`+list.ID+`"]}`)
	var failed struct {
		Success *bool
		Total   int `json:"total_members"`
	}
	ok(t, json.Unmarshal(a.Data, &failed))
	if status != 409 || a.Status != "failure" || failed.Success == nil || *failed.Success || failed.Total != 2 {
		t.Errorf("a send that fails: %d %+v %s", status, a, a.Data)
	}
	p.must("POST", "/campaigns", `{"name":"Draft","channel":1}`, &x)
	p.must("DELETE", "/campaigns/"+x.ID, "", nil)
	p.refused("GET", "/campaigns/"+x.ID, "", 404, "", "there is no campaign with this id")
}

// TestSessionCallsStayInTheCompany: a person of another company finds nothing.
func TestSessionCallsStayInTheCompany(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	one := person{s, s.token}
	var x, y struct {
		ID string `json:"_id"`
	}
	one.must("POST", "/campaigns", `{"name":"News","channel":1}`, &x)
	one.must("POST", "/contacts", `{"email":"ann@people.example"}`, &y)
	var made api.Credentials
	s.console1("POST", "/companies", `{"name":"Other","email":"boss@other.example"}`, &made)
	other := s.signIn(made.ConsoleEmail, made.ConsolePassword)
	other.refused("PATCH", "/campaigns/"+x.ID, `{"name":"mine"}`, 404, "", "no campaign")
	other.refused("POST", "/campaigns/"+x.ID+"/send", `{"all_contacts":true}`, 404, "", "no campaign")
	other.refused("GET", "/contacts/"+y.ID, "", 404, "", "no contact")
	var all []struct{}
	if other.must("GET", "/contacts", "", &all); len(all) != 0 {
		t.Errorf("%d contacts of another company", len(all))
	}
}
