package keyapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/access"
)

// countingState counts the look-ups of keys.
type countingState struct {
	State
	lookUps atomic.Int64
}

func (c *countingState) KeyAccess(account uint64, hash [32]byte) (resolver.KeyAccess, bool, error) {
	c.lookUps.Add(1)
	return c.State.KeyAccess(account, hash)
}

// refusedKeys are all the ways in which a key does not hold.
func refusedKeys(t *testing.T, s *service) map[string]string {
	t.Helper()
	revoked := s.newKey("segments:read")
	s.console1("DELETE", "/api-keys/"+revoked.ID, "", nil)
	company := func(email string) (id, key string) {
		var c struct {
			ID     string `json:"_id"`
			APIKey string `json:"api_key"`
		}
		s.console1("POST", "/companies", fmt.Sprintf(`{"name":"x","email":%q}`, email), &c)
		return c.ID, c.APIKey
	}
	_, off := company("off@x.io")
	id, deactivated := company("deactivated@x.io")
	s.console1("PATCH", "/companies/"+id, `{"api_access":true}`, nil)
	if res, _ := s.with(deactivated, "GET", "/api/v1/push/segments", ""); res.StatusCode != 200 {
		t.Fatalf("with API access on: %d", res.StatusCode)
	}
	s.console1("PATCH", "/companies/"+id, `{"active":false}`, nil)
	unknown, err := api.NewAPIKey(rand.Reader, s.account)
	ok(t, err)
	nowhere, err := api.NewAPIKey(rand.Reader, 99)
	ok(t, err)
	return map[string]string{
		"unknown": "Bearer " + unknown, "of no account": "Bearer " + nowhere, "revoked": "Bearer " + revoked.Key,
		"deactivated account": "Bearer " + deactivated, "API access off": "Bearer " + off,
		"malformed": "Bearer x", "prefix only": "Bearer svc_live_", "cut": "Bearer " + s.creds.APIKey[:40], "longer": "Bearer " + s.creds.APIKey + "A",
		"no key": "Bearer ", "no scheme": s.creds.APIKey, "another scheme": "Basic " + s.creds.APIKey, "none": "",
		"a session": "Bearer " + s.token, "an app secret": "Bearer " + s.creds.AppSecret, "large": "Bearer " + strings.Repeat("svc_live_", 500),
	}
}

// TestUnauthorizedIdentical: whatever is wrong with a key, the answer is the same
// byte for byte, on every path, and so is the work.
func TestUnauthorizedIdentical(t *testing.T) {
	t.Parallel()
	counting := &countingState{}
	s := newService(t, func(o *Options) { counting.State, o.Node = o.Node, counting })
	keys := refusedKeys(t, s)
	want := ""
	for name, header := range keys {
		for _, x := range []struct{ method, path string }{{"GET", "/api/v1/push/segments"}, {"POST", "/api/v1/no/such/path"}, {"DELETE", "/api/v1/push/segments"}, {"GET", "/api/v1"}, {"GET", "/api/v1/"}} {
			before := counting.lookUps.Load()
			var headers []string
			if header != "" {
				headers = []string{"Authorization", header}
			}
			res, b := s.send(x.method, x.path, "", headers...)
			if n := counting.lookUps.Load() - before; n != 1 {
				t.Errorf("%s: %d look-ups", name, n)
			}
			have := fmt.Sprint(res.StatusCode, " ", b, " ", headersOf(res))
			if want == "" {
				want = have
				t.Log(want)
			}
			if have != want {
				t.Errorf("%s, %s %s: %s\nelse: %s", name, x.method, x.path, have, want)
			}
		}
	}
	if !strings.HasPrefix(want, `401 {"status":"failure","message":"`) || !strings.Contains(want, `Www-Authenticate: Bearer realm="muster"`) {
		t.Errorf("have %s", want)
	}
	for name, header := range keys {
		res, b := s.send("POST", "/v1/events", "", "Authorization", header)
		var e struct {
			Status, Code, Message string
			RequestID             string `json:"request_id"`
		}
		ok(t, json.Unmarshal([]byte(b), &e))
		if res.StatusCode != 401 || e.Status != "error" || e.Code != "unauthorized" || e.Message != errUnauthorized.Message || e.RequestID != res.Header.Get("X-Request-Id") {
			t.Errorf("%s on Surface C: %d %s", name, res.StatusCode, b)
		}
	}
	if res, _ := s.with(s.creds.APIKey, "GET", "/api/v1/push/segments", ""); res.StatusCode != 200 {
		t.Errorf("a key that holds: %d", res.StatusCode)
	}
	if res, _ := s.send("GET", "/api/v1/push/segments", "", "Authorization", "bearer  "+s.creds.APIKey+" "); res.StatusCode != 200 {
		t.Errorf("the scheme in lower case: %d", res.StatusCode)
	}
}

func headersOf(res *http.Response) (out []string) {
	for name, values := range res.Header {
		if name != "Date" {
			out = append(out, name+": "+strings.Join(values, ","))
		}
	}
	slices.Sort(out)
	return out
}

// TestUnauthorizedTime: how long a look-up takes does not tell what is wrong. The
// bound is generous: the machine does other things as well.
func TestUnauthorizedTime(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	best := map[string]time.Duration{}
	keys := refusedKeys(t, s)
	delete(keys, "large") // more bytes take longer to hash, and the sender knows how many
	for range 20 {
		for name, header := range keys {
			c := &keycall.Call{RequestCtx: requestWith(header), Now: s.clock.Now()}
			begun := time.Now()
			for range 200 {
				if err := s.api.authenticate(c); err != errUnauthorized {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if took := time.Since(begun); best[name] == 0 || took < best[name] {
				best[name] = took
			}
		}
	}
	low, high := time.Hour, time.Duration(0)
	for _, d := range best {
		low, high = min(low, d), max(high, d)
	}
	t.Logf("200 look-ups take %s to %s", low, high)
	if high > 20*low {
		t.Errorf("200 look-ups take from %s to %s: %v", low, high, best)
	}
}

// TestNeverList: no key is let in to what only people may do, whatever the
// creator may.
func TestNeverList(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	for _, area := range []string{"users", "billing", "settings", "api_keys"} {
		for _, right := range []string{":read", ":write"} {
			if slices.Contains(operation.KeyPermissions(), area+right) {
				t.Errorf("a key can hold %s", area+right)
			}
			res, b := s.send("POST", api.Prefix+"/api-keys", fmt.Sprintf(`{"name":"k","permissions":[%q]}`, area+right), "Authorization", "Bearer "+s.token)
			if res.StatusCode != 400 || !strings.Contains(b, "cannot be held by an API key") {
				t.Errorf("a key with %s: %d %s", area+right, res.StatusCode, b)
			}
		}
	}
	res, b := s.send("POST", api.Prefix+"/api-keys", `{"name":"k","permissions":["contacts:read","contact:read"]}`, "Authorization", "Bearer "+s.token)
	if res.StatusCode != 400 || !strings.Contains(b, `permissions[1] \"contact:read\" is no permission; did you mean contacts:read?`) {
		t.Errorf("a misspelt permission: %d %s", res.StatusCode, b)
	}
	// A route that asks for such a permission is a fault found at the start.
	x := surface{Surface: operation.SurfaceA, name: "a", routes: []keycall.Route{{Handle: func(*keycall.Call) (any, error) { return nil, nil }, Operation: operation.Operation{Method: "GET", Path: "/x", Permission: "users:read"}}}}
	if err := x.check(operation.KeyPermissions()); err == nil || !strings.Contains(err.Error(), "users:read") {
		t.Errorf("have %v", err)
	}
	// No call of the console takes a key for a session.
	for _, path := range []string{"/users", "/companies", "/settings", "/api-keys", "/session", "/segments"} {
		if res, _ := s.with(s.creds.APIKey, "GET", api.Prefix+path, ""); res.StatusCode != 401 {
			t.Errorf("GET %s with a key: %d", path, res.StatusCode)
		}
	}
	for _, name := range []string{"/app-secret", "/api-keys", "/users", "/companies"} {
		if res, _ := s.with(s.creds.APIKey, "POST", api.Prefix+name, "{}"); res.StatusCode != 401 {
			t.Errorf("POST %s with a key: %d", name, res.StatusCode)
		}
	}
}

func TestAPIKeys(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	k := s.newKey("segments:write", "segments:read")
	if account, _ := api.ParseAPIKey(k.Key); account != s.account || len(k.Key) != len("svc_live_")+43 || k.Name != "k" || k.Revoked || k.LastUsedAt != nil ||
		!slices.Equal(k.Permissions, []string{"segments:read", "segments:write"}) || k.CreatedAt != "2025-03-01T12:00:00.000Z" {
		t.Errorf("have %+v", k)
	}
	list := func() (out []keyRecord) {
		t.Helper()
		s.console1("GET", "/api-keys", "", &out)
		return out
	}
	for _, x := range list() {
		if x.Key != "" {
			t.Error("a key is shown again")
		}
	}
	var all keyRecord
	s.console1("POST", "/api-keys", `{"name":"all"}`, &all)
	want := operation.KeyPermissions()
	slices.Sort(want)
	if !slices.Equal(all.Permissions, want) {
		t.Errorf("have %v", all.Permissions)
	}
	for body, message := range map[string]string{
		`{}`:                            "name is missing",
		`{"name":" "}`:                  "name is missing",
		`{"name":"x","permissions":[]}`: "empty",
		`{"name":"x","permissions":["segments:read","x"]}`:   "permissions[1]",
		`{"name":"x","permissions":"segments:read"}`:         "array",
		`{"name":"x","permissions":["segments:read"],"a":1}`: "a is not a field of this call",
	} {
		if res, b := s.send("POST", api.Prefix+"/api-keys", body, "Authorization", "Bearer "+s.token); res.StatusCode != 400 || !strings.Contains(b, message) {
			t.Errorf("%s: %d %s", body, res.StatusCode, b)
		}
	}
	var revoked keyRecord
	s.clock.Advance(time.Second)
	s.console1("DELETE", "/api-keys/"+k.ID, "", &revoked)
	s.clock.Advance(time.Second)
	s.console1("DELETE", "/api-keys/"+k.ID, "", &revoked)
	if !revoked.Revoked || revoked.RevokedAt == nil || *revoked.RevokedAt != "2025-03-01T12:00:01.000Z" || revoked.Name != "k" {
		t.Errorf("have %+v", revoked)
	}
	if n := len(list()); n != 3 {
		t.Errorf("%d keys are listed", n)
	}
	if res, _ := s.send("DELETE", api.Prefix+"/api-keys/key_none", "", "Authorization", "Bearer "+s.token); res.StatusCode != 404 {
		t.Errorf("an unknown key: %d", res.StatusCode)
	}
}

// failingState does not record uses.
type failingState struct {
	State
	fail    atomic.Bool
	records atomic.Int64
}

func (f *failingState) RecordKeyUses(ctx context.Context, uses []access.KeyUse) error {
	if f.fail.Load() {
		return resolver.ErrUnavailable
	}
	f.records.Add(1)
	return f.State.RecordKeyUses(ctx, uses)
}

// TestLastUsed: a use shows at once, is recorded for all keys at once, and is not
// lost when that fails.
func TestLastUsed(t *testing.T) {
	t.Parallel()
	state := &failingState{}
	s := newService(t, func(o *Options) { state.State, o.Node = o.Node, state })
	keys := []keyRecord{s.newKey("segments:read"), s.newKey("segments:read"), s.newKey("segments:read")}
	last := func(id string) string {
		t.Helper()
		var list []keyRecord
		s.console1("GET", "/api-keys", "", &list)
		for _, k := range list {
			if k.ID == id && k.LastUsedAt != nil {
				return *k.LastUsedAt
			}
		}
		return ""
	}
	use := func(k keyRecord) {
		if res, b := s.with(k.Key, "GET", "/api/v1/push/segments", ""); res.StatusCode != 200 {
			t.Fatalf("%d %s", res.StatusCode, b)
		}
	}
	for range 3 {
		s.clock.Advance(time.Second)
		use(keys[0])
		use(keys[1])
	}
	if at := last(keys[0].ID); at != "2025-03-01T12:00:03.000Z" {
		t.Errorf("not shown at once: %q", at)
	}
	if at := last(keys[2].ID); at != "" {
		t.Errorf("a key that was not used: %q", at)
	}
	state.fail.Store(true)
	s.api.flush()
	if n := s.api.uses.size(); n != 2 {
		t.Errorf("%d uses are left after a failure", n)
	}
	state.fail.Store(false)
	s.api.flush()
	s.api.flush()
	if n := state.records.Load(); n != 1 || s.api.uses.size() != 0 {
		t.Errorf("%d records, %d left", n, s.api.uses.size())
	}
	if at := last(keys[1].ID); at != "2025-03-01T12:00:03.000Z" {
		t.Errorf("not recorded: %q", at)
	}
	// A use while an older one is being recorded stays.
	s.api.uses.note(keyRef{s.account, keys[1].ID}, 10)
	list := s.api.uses.list()
	s.api.uses.note(keyRef{s.account, keys[1].ID}, 11)
	s.api.uses.recorded(list)
	if s.api.uses.size() != 1 {
		t.Error("a use was lost")
	}
	s.clock.Advance(time.Second)
	use(keys[2])
	s.api.Close()
	if s.api.uses.size() != 0 || last(keys[2].ID) != "2025-03-01T12:00:04.000Z" {
		t.Error("uses are not recorded at the end")
	}
}

// TestRateLimit: the body and headers of a 429, and 64 workers on one key.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	k, other := s.newKey("segments:read"), s.newKey("segments:read")
	var passed, limited atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for range 140/64 + i%2 {
				res, b := s.with(k.Key, "GET", "/api/v1/push/segments", "")
				switch {
				case res.StatusCode == 200 && strings.Contains(b, `"status":"success"`):
					passed.Add(1)
				case res.StatusCode == 429 && b == `{"message":"Too many requests. Try again in 60 seconds.","success":false}` && res.Header.Get("Retry-After") == "60":
					limited.Add(1)
				default:
					t.Errorf("%d %s", res.StatusCode, b)
				}
			}
		})
	}
	wg.Wait()
	if passed.Load() != 120 || limited.Load() == 0 {
		t.Errorf("%d passed, %d were turned away", passed.Load(), limited.Load())
	}
	s.clock.Advance(58_500 * time.Millisecond)
	if _, b := s.with(k.Key, "GET", "/api/v1/push/segments", ""); b != `{"message":"Too many requests. Try again in 2 seconds.","success":false}` {
		t.Errorf("have %s", b)
	}
	s.clock.Advance(1499 * time.Millisecond)
	if _, b := s.with(k.Key, "GET", "/api/v1/none", ""); b != `{"message":"Too many requests. Try again in 1 seconds.","success":false}` {
		t.Errorf("have %s", b)
	}
	if res, _ := s.with(other.Key, "GET", "/api/v1/push/segments", ""); res.StatusCode != 200 {
		t.Errorf("another key: %d", res.StatusCode)
	}
	// The surfaces count apart.
	if res, b := s.with(k.Key, "GET", "/v1/none", ""); res.StatusCode != 404 {
		t.Errorf("Surface C: %d %s", res.StatusCode, b)
	}
	s.clock.Advance(time.Millisecond)
	if res, _ := s.with(k.Key, "GET", "/api/v1/push/segments", ""); res.StatusCode != 200 {
		t.Errorf("a minute later: %d", res.StatusCode)
	}
}

// TestRateLimitC: Surface C's is a setting of the account.
func TestRateLimitC(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	count := func() (passed int) {
		t.Helper()
		for range 700 {
			res, b := s.with(s.creds.APIKey, "GET", "/v1/none", "")
			if res.StatusCode == 404 {
				passed++
				continue
			}
			var e struct{ Status, Code, Message string }
			ok(t, json.Unmarshal([]byte(b), &e))
			if res.StatusCode != 429 || e.Status != "error" || e.Code != "rate_limited" || res.Header.Get("Retry-After") != "60" {
				t.Fatalf("%d %s", res.StatusCode, b)
			}
		}
		return passed
	}
	if n := count(); n != 600 {
		t.Errorf("%d of 700 passed", n)
	}
	s.clock.Advance(time.Minute)
	var list []struct {
		ID string `json:"_id"`
	}
	s.console1("GET", "/companies", "", &list)
	s.console1("PATCH", "/companies/"+list[0].ID, `{"surface_c_per_minute":7}`, nil)
	if n := count(); n != 7 {
		t.Errorf("%d of 700 passed", n)
	}
}
