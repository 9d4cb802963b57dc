package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/accounts"
	"github.com/musterhq/muster/resolver"
)

type companyAnswer struct {
	ID                string `json:"_id"`
	AccountID         string `json:"account_id"`
	AppID             string `json:"app_id"`
	Name              string
	APIAccess         bool  `json:"api_access"`
	Active            bool  `json:"active"`
	EmailCredits      int64 `json:"email_credits"`
	SurfaceCPerMinute int   `json:"surface_c_per_minute"`
	Users             int
	AppSecret         string `json:"app_secret"`
	APIKey            string `json:"api_key"`
	ConsoleEmail      string `json:"console_email"`
	ConsolePassword   string `json:"console_password"`
}

func (s *service) newCompany(name, email string) companyAnswer {
	s.t.Helper()
	var c companyAnswer
	s.want("POST", "/companies", fmt.Sprintf(`{"name":%q,"email":%q}`, name, email), &c)
	return c
}

func TestCompanies(t *testing.T) {
	t.Parallel()
	s := newServiceOn(t, &memHistory{}, 3, nil)
	c := s.newCompany("Second", "owner@second.io")
	if c.Name != "Second" || c.APIAccess || !c.Active || c.EmailCredits != 100_000 || c.Users != 1 || c.SurfaceCPerMinute != 600 ||
		!strings.HasPrefix(c.APIKey, "svc_live_") || !strings.HasPrefix(c.AppSecret, "sk_live_") || c.ConsolePassword == "" {
		t.Fatalf("have %+v", c)
	}
	if account, ok := accounts.ParseAPIKey(c.APIKey); !ok || resolver.AccountID(account) != c.AccountID {
		t.Errorf("the key names account %x", account)
	}
	raw := s.want("GET", "/companies/"+c.ID, "", nil)
	if text := string(raw.Data); strings.Contains(text, c.APIKey) || strings.Contains(text, c.AppSecret) || strings.Contains(text, c.ConsolePassword) {
		t.Errorf("credentials are shown twice: %s", text)
	}
	var list []companyAnswer
	s.want("GET", "/companies", "", &list)
	if len(list) != 2 || !slices.IsSortedFunc(list, func(x, y companyAnswer) int { return strings.Compare(x.AccountID, y.AccountID) }) {
		t.Errorf("have %+v", list)
	}
	first := s.want("GET", "/companies?limit=1", "", &list)
	if len(list) != 1 || first.Next == nil {
		t.Fatalf("have %+v", list)
	}
	one := list[0].ID
	if last := s.want("GET", "/companies?limit=1&cursor="+*first.Next, "", &list); len(list) != 1 || list[0].ID == one || last.Next != nil {
		t.Errorf("have %+v", list)
	}

	s.want("PATCH", "/companies/"+c.ID, `{"name":"Renamed","api_access":true,"surface_c_per_minute":1000}`, &c)
	if c.Name != "Renamed" || !c.APIAccess || !c.Active || c.SurfaceCPerMinute != 1000 {
		t.Errorf("have %+v", c)
	}
	s.want("POST", "/companies/"+c.ID+"/credits", `{"amount":50}`, &c)
	if c.EmailCredits != 100_050 {
		t.Errorf("credits %d", c.EmailCredits)
	}
	var poor companyAnswer
	if s.want("POST", "/companies", `{"name":"Third","email":"owner@third.io","email_credits":0}`, &poor); poor.EmailCredits != 0 {
		t.Errorf("credits %d", poor.EmailCredits)
	}
	for _, x := range []struct {
		method, path, body string
		status             int
		field              string
	}{
		{"GET", "/companies/com_none", "", 404, ""},
		{"PATCH", "/companies/com_none", `{}`, 404, ""},
		{"POST", "/companies/com_none/credits", `{"amount":1}`, 404, ""},
		{"POST", "/companies/" + c.ID + "/credits", `{"amount":0}`, 400, "amount"},
		{"POST", "/companies/" + c.ID + "/credits", `{}`, 400, "amount"},
		{"PATCH", "/companies/" + c.ID, `{"surface_c_per_minute":0}`, 400, "surface_c_per_minute"},
		{"PATCH", "/companies/" + c.ID, `{"name":" "}`, 400, "name"},
		{"PATCH", "/companies/" + c.ID, `{"credits":1}`, 400, "credits"},
		{"POST", "/companies", `{"name":"x"}`, 400, "email"},
		{"POST", "/companies", `{"email":"x"}`, 400, "name"},
		{"POST", "/companies", `{"name":"x","email":"x","email_credits":-1}`, 400, "email_credits"},
		{"POST", "/companies", `{"name":"x","email":"x","email_credits":1000000001}`, 400, "email_credits"},
	} {
		if status, a := s.do(x.method, x.path, x.body); status != x.status || a.field() != x.field {
			t.Errorf("%s %s %s: %d field %q %s", x.method, x.path, x.body, status, a.field(), a.Message)
		}
	}
}

// TestR2Companies: the owner of a company sees his own only, and cannot manage
// companies; ids of others are unknown to him.
func TestR2Companies(t *testing.T) {
	t.Parallel()
	s := newServiceOn(t, &memHistory{}, 2, nil)
	c := s.newCompany("Second", "owner@second.io")
	theirs := s.as(c.ConsoleEmail, c.ConsolePassword)
	mine := s.newUser("mine@x.io", "segments:read")
	for _, x := range []struct{ method, path, body string }{
		{"GET", "/companies", ""}, {"POST", "/companies", `{"name":"x","email":"y"}`}, {"GET", "/companies/" + c.ID, ""}, {"GET", "/companies/com_none", ""},
		{"PATCH", "/companies/" + c.ID, `{"api_access":true}`}, {"POST", "/companies/" + c.ID + "/credits", `{"amount":1}`},
	} {
		if status, a := theirs.do(x.method, x.path, x.body); status != 403 || a.Message != "only administrators of the system may do this" {
			t.Errorf("%s %s: %d %s", x.method, x.path, status, a.Message)
		}
	}
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		status, a := theirs.do(method, "/users/"+mine.ID, map[string]string{"PATCH": `{"name":"x"}`}[method])
		_, unknown := theirs.do(method, "/users/usr_none", map[string]string{"PATCH": `{"name":"x"}`}[method])
		if status != 404 || a.Message != unknown.Message || string(a.Data) != string(unknown.Data) {
			t.Errorf("%s: %d %s, unknown: %s", method, status, a.Message, unknown.Message)
		}
	}
	var list []userAnswer
	if theirs.want("GET", "/users", "", &list); len(list) != 1 || list[0].Email != c.ConsoleEmail || list[0].Admin {
		t.Errorf("have %+v", list)
	}
	if status, a := theirs.do("PATCH", "/users/"+list[0].ID, `{"admin":true}`); status != 403 {
		t.Errorf("made himself administrator: %d %s", status, a.Message)
	}
	settings := func(x *service, perMinute int) (int, answer) {
		t.Helper()
		all := map[string]any{}
		x.want("GET", "/settings", "", &all)
		all["surface_c_per_minute"] = perMinute
		b, err := json.Marshal(all)
		ok(t, err)
		return x.do("PUT", "/settings", string(b))
	}
	if status, a := settings(theirs, 601); status != 403 || a.field() != "surface_c_per_minute" {
		t.Errorf("raised his own limit: %d %s", status, a.Message)
	}
	for x, perMinute := range map[*service]int{theirs: 300, s: 601} {
		if status, a := settings(x, perMinute); status != 200 {
			t.Errorf("%d: %d %s", perMinute, status, a.Message)
		}
	}
}

// TestDeactivated: no user of a deactivated company gets in, and a sign-in is
// answered as with a wrong password.
func TestDeactivated(t *testing.T) {
	t.Parallel()
	s := newServiceOn(t, &memHistory{}, 2, nil)
	c := s.newCompany("Second", "owner@second.io")
	theirs := s.as(c.ConsoleEmail, c.ConsolePassword)
	event := func() string {
		res, b := s.send("POST", "/api/v1/events", `{"event_type":"x","user":{"email":"a@x.io"}}`, "X-App-Id", c.AppID, "X-App-Secret", c.AppSecret)
		return fmt.Sprint(res.StatusCode, strings.Contains(string(b), `"success":true`))
	}
	if have := event(); have != "202 true" {
		t.Errorf("an event of an active company: %s", have)
	}
	s.want("PATCH", "/companies/"+c.ID, `{"active":false}`, nil)
	if status, _ := theirs.get("/session"); status != 401 {
		t.Errorf("a session of a deactivated company: %d", status)
	}
	theirs.token = ""
	status, a := theirs.do("POST", "/session", fmt.Sprintf(`{"email":%q,"password":%q}`, c.ConsoleEmail, c.ConsolePassword))
	_, wrong := theirs.do("POST", "/session", fmt.Sprintf(`{"email":%q,"password":"wrong"}`, s.creds.ConsoleEmail))
	if status != 401 || a.Message != wrong.Message {
		t.Errorf("signing in: %d %s", status, a.Message)
	}
	if have := event(); have != "202 false" {
		t.Errorf("an event of a deactivated company: %s", have)
	}
	s.want("PATCH", "/companies/"+c.ID, `{"active":true}`, nil)
	s.as(c.ConsoleEmail, c.ConsolePassword)
	if have := event(); have != "202 true" {
		t.Errorf("an event of a company that is active again: %s", have)
	}
	var list []companyAnswer
	s.want("GET", "/companies", "", &list)
	for _, x := range list {
		if x.ID != c.ID {
			if status, a := s.do("PATCH", "/companies/"+x.ID, `{"active":false}`); status != 409 {
				t.Errorf("the administrators' own company: %d %s", status, a.Message)
			}
		}
	}
}

// TestSameEmail: an e-mail may be known in several companies; the password
// tells them apart, or the account's id.
func TestSameEmail(t *testing.T) {
	t.Parallel()
	s := newServiceOn(t, &memHistory{}, 2, nil)
	second, third := s.newCompany("Second", "both@x.io"), s.newCompany("Third", "both@x.io")
	for _, c := range []companyAnswer{second, third} {
		var d struct {
			AccountID string `json:"account_id"`
		}
		s.want("POST", "/session", fmt.Sprintf(`{"email":"both@x.io","password":%q}`, c.ConsolePassword), &d)
		if d.AccountID != c.AccountID {
			t.Errorf("signed in to %s, not %s", d.AccountID, c.AccountID)
		}
	}
	body := `{"email":"both@x.io","password":%q,"account_id":%q}`
	s.want("POST", "/session", fmt.Sprintf(body, second.ConsolePassword, second.AccountID), nil)
	if status, _ := s.do("POST", "/session", fmt.Sprintf(body, second.ConsolePassword, third.AccountID)); status != 401 {
		t.Errorf("another account's id: %d", status)
	}
}
