package keyapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/operation"
)

// TestEffectivePermissions: a key shows what it was given and what of that it may do
// now, and exactly that lets it in.
func TestEffectivePermissions(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	maker, id := newMaker(t, s, []string{"lists:read", "contacts:read", "segments:read", "api_keys:write"})
	var key struct {
		ID        string `json:"_id"`
		Key       string
		Effective []string `json:"effective_permissions"`
	}
	maker("POST", "/api-keys", `{"name":"k","permissions":["lists:read","segments:read"]}`, &key)
	if !slices.Equal(key.Effective, []string{"lists:read", "segments:read"}) {
		t.Errorf("made: %v", key.Effective)
	}
	expect := func(when string, effective ...string) {
		t.Helper()
		var list []struct {
			ID          string `json:"_id"`
			Permissions []string
			Effective   []string `json:"effective_permissions"`
		}
		s.console1("GET", "/api-keys?limit=1000", "", &list)
		for _, x := range list {
			if x.ID == key.ID && (fmt.Sprint(x.Permissions) != "[lists:read segments:read]" || x.Effective == nil || !slices.Equal(x.Effective, effective)) {
				t.Errorf("%s: %+v, want %v", when, x, effective)
			}
		}
		// The key says the same of itself.
		var own struct {
			Status string
			Data   struct {
				ID        string   `json:"_id"`
				Effective []string `json:"effective_permissions"`
				Key       *string
			}
		}
		_, b := s.with(key.Key, "GET", "/api/v1/key", "")
		if ok(t, json.Unmarshal([]byte(b), &own)); own.Status != "success" || own.Data.ID != key.ID || own.Data.Key != nil || !slices.Equal(own.Data.Effective, effective) {
			t.Errorf("%s: the key has %s, want %v", when, b, effective)
		}
		for path, needs := range map[string]string{"/lists": "lists:read", "/segments": "segments:read"} {
			res, b := s.with(key.Key, "GET", "/api/v1"+path, "")
			if in := strings.HasPrefix(b, `{"status":"success"`); in != slices.Contains(effective, needs) {
				t.Errorf("%s: %s: %d %s", when, path, res.StatusCode, b)
			}
		}
	}
	expect("at first", "lists:read", "segments:read")
	s.console1("PATCH", "/users/"+id, `{"permissions":["segments:read","contacts:read"]}`, nil)
	expect("narrowed", "segments:read")
	s.console1("PATCH", "/users/"+id, `{"permissions":["segments:read","lists:read"]}`, nil)
	expect("widened", "lists:read", "segments:read")
	s.console1("DELETE", "/users/"+id, "", nil)
	expect("creator removed")
	s.console1("DELETE", "/api-keys/"+key.ID, "", &key)
	if key.Effective == nil || len(key.Effective) > 0 {
		t.Errorf("revoked: %v", key.Effective)
	}
	var all struct {
		Effective []string `json:"effective_permissions"`
	}
	if s.console1("POST", "/api-keys", `{"name":"all"}`, &all); len(all.Effective) != len(operation.KeyPermissions()) {
		t.Errorf("a key of all: %v", all.Effective)
	}
}
