package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// as is the service with another user's session.
func (s *service) as(email, password string) *service {
	s.t.Helper()
	other := *s
	other.token = ""
	var d struct{ Token string }
	other.want("POST", "/session", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password), &d)
	other.token = d.Token
	return &other
}

type userAnswer struct {
	ID          string `json:"_id"`
	Email, Name string
	Permissions []string
	Admin       bool
	CreatedAt   string `json:"created_at"`
}

func (s *service) newUser(email string, permissions ...string) userAnswer {
	s.t.Helper()
	var u userAnswer
	s.want("POST", "/users", fmt.Sprintf(`{"email":%q,"name":"N","password":"long enough password","permissions":["%s"]}`, email, strings.Join(permissions, `","`)), &u)
	return u
}

func TestUsers(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	u := s.newUser("Ann@x.io", "segments:read", "users:read")
	if u.Email != "Ann@x.io" || u.Name != "N" || u.Admin || !slices.Equal(u.Permissions, []string{"segments:read", "users:read"}) || u.CreatedAt != "2025-03-01T12:00:00.000Z" {
		t.Errorf("have %+v", u)
	}
	ann := s.as("  ann@X.io ", "long enough password")
	var again userAnswer
	ann.want("GET", "/users/"+u.ID, "", &again)
	if again.ID != u.ID {
		t.Errorf("have %+v", again)
	}
	ann.want("GET", "/segments", "", nil)
	for _, x := range []struct{ method, path, body string }{
		{"POST", "/users", `{"email":"b@x.io","password":"long enough password","permissions":[]}`},
		{"PATCH", "/users/" + u.ID, `{"permissions":["users:write"]}`},
		{"DELETE", "/users/" + u.ID, ""},
		{"POST", "/segments", `{}`},
		{"GET", "/companies", ""},
		{"GET", "/api-keys", ""},
	} {
		if status, a := ann.do(x.method, x.path, x.body); status != 403 {
			t.Errorf("%s %s: %d %s", x.method, x.path, status, a.Message)
		}
	}

	// Permissions count from the next call on.
	s.want("PATCH", "/users/"+u.ID, `{"permissions":[],"name":"Ann"}`, &again)
	if again.Name != "Ann" || len(again.Permissions) != 0 || again.Email != "Ann@x.io" {
		t.Errorf("have %+v", again)
	}
	if status, _ := ann.get("/segments"); status != 403 {
		t.Errorf("after the permission was taken: %d", status)
	}
	// A password set by another user ends the person's sessions.
	s.want("PATCH", "/users/"+u.ID, `{"password":"another password"}`, nil)
	if status, _ := ann.get("/session"); status != 401 {
		t.Errorf("after the password was set: %d", status)
	}
	ann = s.as("ann@x.io", "another password")
	s.want("DELETE", "/users/"+u.ID, "", nil)
	if status, _ := ann.get("/session"); status != 401 {
		t.Errorf("after the person was removed: %d", status)
	}
	if status, _ := s.get("/users/" + u.ID); status != 404 {
		t.Errorf("a removed user gets %d", status)
	}

	for _, x := range []struct {
		method, path, body string
		status             int
		field, message     string
	}{
		{"POST", "/users", `{"password":"long enough password","permissions":[]}`, 400, "email", "missing"},
		{"POST", "/users", `{"email":"c@x.io","permissions":[]}`, 400, "password", "missing"},
		{"POST", "/users", `{"email":"c@x.io","password":"long enough password"}`, 400, "permissions", "missing"},
		{"POST", "/users", `{"email":"c@x.io","password":"short","permissions":[]}`, 400, "password", "12"},
		{"POST", "/users", `{"email":" ","password":"long enough password","permissions":[]}`, 400, "email", "email"},
		{"POST", "/users", `{"email":"c@x.io","password":"long enough password","permissions":["x:y"]}`, 400, "permissions", "permissions[0]"},
		{"POST", "/users", `{"email":" ` + strings.ToUpper(s.creds.ConsoleEmail) + `","password":"long enough password","permissions":[]}`, 409, "email", "exists"},
		{"PATCH", "/users/usr_none", `{"name":"x"}`, 404, "id", "no user"},
		{"DELETE", "/users/usr_none", "", 404, "id", "no user"},
		{"GET", "/users?cursor=AAAA", "", 400, "cursor", "cursor"},
		{"GET", "/users?cursor=BAAA", "", 400, "cursor", "cursor"},
		{"GET", "/users?limit=0", "", 400, "limit", "limit"},
	} {
		if status, a := s.do(x.method, x.path, x.body); status != x.status || a.field() != x.field || !strings.Contains(a.Message, x.message) {
			t.Errorf("%s %s %s: %d field %q %s", x.method, x.path, x.body, status, a.field(), a.Message)
		}
	}
}

// TestOwnerStays: the only user who can manage users cannot be deleted or lose the
// permission.
func TestOwnerStays(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	var me struct {
		UserID string `json:"user_id"`
		Admin  bool
	}
	s.want("GET", "/session", "", &me)
	if !me.Admin {
		t.Error("the first user is not administrator of the system")
	}
	for method, body := range map[string]string{"DELETE": "", "PATCH": `{"permissions":["segments:read"]}`} {
		if status, a := s.do(method, "/users/"+me.UserID, body); status != 409 || !strings.Contains(a.Message, "users:write") {
			t.Errorf("%s: %d %s", method, status, a.Message)
		}
	}
	if status, a := s.do("PATCH", "/users/"+me.UserID, `{"password":"taken over with a session"}`); status != 403 {
		t.Errorf("a password without the old one: %d %s", status, a.Message)
	}
}

func TestPagesByAge(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	want := map[string]bool{s.creds.ConsoleEmail: true}
	s.clock.Advance(time.Millisecond) // the owner is the oldest
	for i := range 5 {
		want[s.newUser(fmt.Sprintf("u%d@x.io", i), "segments:read").Email] = true
	}
	for path, pages := 0, "/users?limit=2"; pages != ""; path++ {
		var list []userAnswer
		a := s.want("GET", pages, "", &list)
		for _, u := range list {
			if !want[u.Email] {
				t.Errorf("%s is listed twice", u.Email)
			}
			delete(want, u.Email)
		}
		if pages = ""; a.Next != nil {
			pages = "/users?limit=2&cursor=" + url.QueryEscape(*a.Next)
			// What the cursor points to may go meanwhile.
			if path == 0 {
				s.want("DELETE", "/users/"+list[len(list)-1].ID, "", nil)
			}
		}
	}
	if len(want) != 0 {
		t.Errorf("not listed: %v", want)
	}
}

func TestChangePassword(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	other := s.signIn()
	change := func(current, next string) (int, answer) {
		return s.do("PUT", "/password", fmt.Sprintf(`{"current_password":%q,"password":%q}`, current, next))
	}
	if status, a := change("wrong", "a new long password"); status != 400 || a.field() != "current_password" {
		t.Errorf("a wrong password: %d %s", status, a.Message)
	}
	if status, a := change(s.creds.ConsolePassword, "short"); status != 400 || a.field() != "password" {
		t.Errorf("a short password: %d %s", status, a.Message)
	}
	if status, a := change(s.creds.ConsolePassword, "a new long password"); status != 200 {
		t.Fatalf("%d %s", status, a.Message)
	}
	s.want("GET", "/session", "", nil)
	s.token, other = other, s.token
	if status, _ := s.get("/session"); status != 401 {
		t.Errorf("the other session is answered %d", status)
	}
	s.token = other
	if status, _ := s.do("POST", "/session", fmt.Sprintf(`{"email":%q,"password":%q}`, s.creds.ConsoleEmail, s.creds.ConsolePassword)); status != 401 {
		t.Errorf("the old password is answered %d", status)
	}
	s.as(s.creds.ConsoleEmail, "a new long password")
	// A session is no way to guess the password without a pause.
	status := 0
	for range 10 {
		status, _ = change("wrong", "a new long password")
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("the tenth guess is answered %d", status)
	}
}
