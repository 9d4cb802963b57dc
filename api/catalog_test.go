package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/resolver"
)

func TestCatalog(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	type line struct {
		Name, Key string
		FirstSeen *string `json:"first_seen"`
		Count     int
	}
	var list []line
	s.want("GET", "/catalog", "", &list)
	if list == nil || len(list) != 0 {
		t.Errorf("an empty catalog is %v", list)
	}
	var x line
	s.want("POST", "/catalog", `{"name":" Item Purchased! "}`, &x)
	if x.Key != "item_purchased" || x.Name != "Item Purchased!" || x.FirstSeen != nil || x.Count != 0 {
		t.Errorf("have %+v", x)
	}
	if status, a := s.do("POST", "/catalog", `{"name":"item purchased"}`); status != 409 || a.field() != "name" {
		t.Errorf("the same key again: %d %s", status, a.Message)
	}
	s.event(`{"event_type":"item_purchased","user":{"email":"a@x.io"}}`)
	s.clock.Advance(time.Minute)
	s.event(`{"event_type":"item_purchased","user":{"email":"a@x.io"}}`)
	s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	s.want("GET", "/catalog", "", &list)
	if len(list) != 2 || list[0].Count != 2 || *list[0].FirstSeen != "2025-03-01T12:00:00.000Z" || list[1].Name != "seen" || list[1].Key != "seen" || list[1].Count != 1 {
		t.Errorf("have %+v", list)
	}
}

// TestAppSecret: only the newest secret holds, and only its hash is in the log.
func TestAppSecret(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	var d struct {
		AppID  string `json:"app_id"`
		Secret string `json:"app_secret"`
	}
	s.want("POST", "/app-secret", "", &d)
	if d.AppID != s.creds.AppID || !strings.HasPrefix(d.Secret, "sk_live_") || len(d.Secret) != len("sk_live_")+32 || d.Secret == s.creds.AppSecret {
		t.Fatalf("have %+v", d)
	}
	for secret, want := range map[string]string{s.creds.AppSecret: `"success":false`, d.Secret: `"success":true`} {
		_, b := s.send("POST", "/api/v1/events", `{"event_type":"seen","user":{"email":"a@x.io"}}`, "X-App-Id", d.AppID, "X-App-Secret", secret)
		if !strings.Contains(string(b), want) {
			t.Errorf("with %.12s… the answer is %s, want %s", secret, b, want)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	var have resolver.Settings
	s.want("GET", "/settings", "", &have)
	if have.IdentifierCap != 50 || have.IdempotencyHours != 72 || len(have.Placeholders) == 0 {
		t.Errorf("have %+v", have)
	}
	s.want("PUT", "/settings", settingsWith(`{"placeholders":["nobody@x.io"],"identifier_cap":5,"idempotency_hours":100}`), nil)
	s.want("GET", "/settings", "", &have)
	if have.IdentifierCap != 5 || have.IdempotencyHours != 100 || len(have.Placeholders) != 1 {
		t.Errorf("have %+v", have)
	}
	_, b := s.send("POST", "/api/v1/events", `{"event_type":"seen","user":{"email":"nobody@x.io"}}`, "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret)
	if !strings.Contains(string(b), "placeholder") {
		t.Errorf("a new placeholder is answered %s", b)
	}
}

// settingsWith are all settings, the defaults but for the changes.
func settingsWith(changes string) string {
	all := map[string]any{}
	for _, text := range []string{string(must(json.Marshal(resolver.DefaultSettings()))), changes} {
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			panic(err)
		}
	}
	return string(must(json.Marshal(all)))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
