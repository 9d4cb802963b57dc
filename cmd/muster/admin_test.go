package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

// TestAdmin walks through the subcommands against a real server, and uses what
// they made on Surfaces A, B and C.
func TestAdmin(t *testing.T) {
	testlevel.SkipQuick(t, "starts servers")
	dir := t.TempDir()
	s := serve(t, dir)
	admin := func(v any, args ...string) string {
		t.Helper()
		code, out, errs := muster(t, "", append([]string{"admin", "--credentials", filepath.Join(dir, "credentials.json"), "--to", s.origin}, args...)...)
		if code != exitOK {
			t.Fatalf("admin %v: status %d\n%s", args, code, errs)
		}
		if v != nil {
			ok(t, json.Unmarshal([]byte(out), v))
		}
		return out
	}
	type company struct {
		ID              string `json:"_id"`
		Name            string
		AppID           string `json:"app_id"`
		AppSecret       string `json:"app_secret"`
		APIKey          string `json:"api_key"`
		ConsoleEmail    string `json:"console_email"`
		ConsolePassword string `json:"console_password"`
		APIAccess       bool   `json:"api_access"`
		Active          bool
		EmailCredits    int64 `json:"email_credits"`
	}
	var c, now company
	admin(&c, "company", "create", "Second", "second@x.io")
	status := func(key string) int {
		t.Helper()
		return s.call("GET", "/api/v1/push/segments", "", nil, "Authorization", "Bearer "+key)
	}
	if c.APIAccess || status(c.APIKey) != 401 || status(s.creds.APIKey) != 200 {
		t.Errorf("have %+v", c)
	}
	admin(&now, "company", "enable-api", c.ID)
	if !now.APIAccess || status(c.APIKey) != 200 {
		t.Errorf("have %+v", now)
	}
	event := func() (success bool) {
		t.Helper()
		var a struct{ Success bool }
		s.call("POST", "/api/v1/events", `{"event_type":"x","user":{"email":"a@x.io"}}`, &a, "X-App-Id", c.AppID, "X-App-Secret", c.AppSecret)
		return a.Success
	}
	if !event() {
		t.Error("an event of the second company is refused")
	}
	if st := s.call("POST", "/v1/events", `{"event":"x","email":"a@x.io"}`, nil, "Authorization", "Bearer "+c.APIKey); st != 200 {
		t.Errorf("Surface C: %d", st)
	}
	admin(&now, "company", "deactivate", c.ID)
	if now.Active || status(c.APIKey) != 401 || event() {
		t.Errorf("have %+v", now)
	}
	admin(&now, "company", "activate", c.ID)
	if admin(&now, "company", "disable-api", c.ID); !now.Active || now.APIAccess || status(c.APIKey) != 401 || !event() {
		t.Errorf("have %+v", now)
	}
	if admin(&now, "credits", "add", c.ID, "23"); now.EmailCredits != 100_023 {
		t.Errorf("have %+v", now)
	}
	if out := admin(nil, "company", "list"); strings.Count(out, `"_id"`) != 2 || !strings.Contains(out, `"Second"`) {
		t.Errorf("have %s", out)
	}

	var key struct {
		ID         string `json:"_id"`
		Key        string
		LastUsedAt *string `json:"last_used_at"`
		Revoked    bool
	}
	admin(&key, "key", "create", "mine", "segments:read")
	if status(key.Key) != 200 {
		t.Error("the new key does not work")
	}
	used := key.Key
	if out := admin(nil, "key", "list"); !strings.Contains(out, key.ID) || strings.Contains(out, used) {
		t.Errorf("have %s", out)
	}
	if admin(&key, "key", "revoke", key.ID); !key.Revoked || status(used) != 401 {
		t.Errorf("have %+v", key)
	}
	if key.LastUsedAt == nil {
		t.Error("the use of the key is not shown")
	}
	var user struct{ Email, Password string }
	admin(&user, "user", "create", "ann@x.io", "segments:read", "users:read")
	if out := admin(nil, "user", "list"); !strings.Contains(out, "ann@x.io") || strings.Contains(out, user.Password) {
		t.Errorf("have %s", out)
	}
	// A person of another name, with the password of the environment.
	t.Setenv(adminPassword, user.Password)
	if out := admin(nil, "--email", "ann@x.io", "user", "list"); strings.Count(out, `"_id"`) != 2 {
		t.Errorf("have %s", out)
	}
	code, _, errs := muster(t, "", "admin", "--to", s.origin, "--email", "ann@x.io", "company", "list")
	if code != exitFailed || !strings.Contains(errs, "only administrators of the system may do this") {
		t.Errorf("status %d %s", code, errs)
	}
	t.Setenv(adminPassword, "wrong")
	if code, _, errs = muster(t, "", "admin", "--to", s.origin, "--email", "ann@x.io", "user", "list"); code != exitFailed || !strings.Contains(errs, "email or password is wrong") {
		t.Errorf("status %d %s", code, errs)
	}

	// When the key was used last is not lost with the process.
	t.Setenv(adminPassword, "")
	s.stop()
	s = serve(t, dir)
	var keys struct {
		LastUsedAt *string `json:"last_used_at"`
	}
	var list []json.RawMessage
	s.console("GET", "/api-keys", "", &list)
	for _, x := range list {
		ok(t, json.Unmarshal(x, &keys))
		if keys.LastUsedAt == nil {
			t.Errorf("not recorded at the stop: %s", x)
		}
	}
	if len(list) != 2 {
		t.Errorf("%d keys", len(list))
	}
	s.stop()
}

func TestAdminUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{}, {"company"}, {"company", "list", "x"}, {"company", "create", "x"}, {"company", "explode", "x"}, {"credits", "add", "x", "many"}, {"key", "create"}, {"user", "create"},
	} {
		if c, err := newAdminCommand(args); err == nil {
			t.Errorf("%v makes %+v", args, c)
		}
	}
	for _, x := range []struct {
		args         []string
		method, path string
		body         string
	}{
		{[]string{"company", "enable-api", "com/1"}, "PATCH", "/companies/com%2F1", `{"api_access":true}`},
		{[]string{"credits", "add", "com_1", "5"}, "POST", "/companies/com_1/credits", `{"amount":5}`},
		{[]string{"key", "create", "k"}, "POST", "/api-keys", `{"name":"k"}`},
		{[]string{"key", "create", "k", "a:b", "c:d"}, "POST", "/api-keys", `{"name":"k","permissions":["a:b","c:d"]}`},
		{[]string{"key", "revoke", "key_1"}, "DELETE", "/api-keys/key_1", `null`},
	} {
		c, err := newAdminCommand(x.args)
		ok(t, err)
		body, err := json.Marshal(c.body)
		ok(t, err)
		if c.method != x.method || c.path != x.path || string(body) != x.body {
			t.Errorf("%v: %s %s %s", x.args, c.method, c.path, body)
		}
	}
	code, _, errs := muster(t, "", "admin", "company", "list")
	if code != exitUsage || !strings.Contains(errs, "--to") {
		t.Errorf("status %d %s", code, errs)
	}
	code, _, errs = muster(t, "", "admin", "--to", "http://127.0.0.1:1", "company", "list")
	if code != exitUsage || !strings.Contains(errs, adminPassword) {
		t.Errorf("status %d %s", code, errs)
	}
}
