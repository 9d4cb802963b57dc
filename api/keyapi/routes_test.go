package keyapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/eventtypes"
)

func requestWith(authorization string) *fasthttp.RequestCtx {
	rc := &fasthttp.RequestCtx{}
	rc.Request.Header.Set("Authorization", authorization)
	return rc
}

// pathOf is a path that a route takes.
func pathOf(s *surface, r keycall.Route) string {
	parts := strings.Split(r.Path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, "{") {
			parts[i] = "none"
		}
	}
	return s.Prefix + strings.Join(parts, "/")
}

// TestPermissionMatrix walks every route with a key of every single permission,
// and with keys whose creator lost that permission after making them: exactly
// the route's own lets in, as long as the creator has it.
func TestPermissionMatrix(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	entered := replaceHandlers(s)
	all := operation.KeyPermissions()
	maker, _ := newMaker(t, s, append(all, "api_keys:write"))
	for _, p := range all {
		var key keyRecord
		maker("POST", "/api-keys", fmt.Sprintf(`{"name":"k","permissions":[%q]}`, p), &key)
		walk(t, s, key.Key, p, entered)
	}
}

// TestPermissionMatrixNarrowed: as before, after the creator was narrowed.
func TestPermissionMatrixNarrowed(t *testing.T) {
	t.Parallel()
	s := newService(t, nil)
	entered := replaceHandlers(s)
	all := operation.KeyPermissions()
	maker, id := newMaker(t, s, append(all, "api_keys:write"))
	var whole keyRecord
	maker("POST", "/api-keys", `{"name":"all"}`, &whole)
	for _, p := range all {
		// The key holds everything; its creator only this.
		s.console1("PATCH", "/users/"+id, fmt.Sprintf(`{"permissions":[%q]}`, p), nil)
		walk(t, s, whole.Key, p, entered)
		s.clock.Advance(window)
	}
	s.console1("PATCH", "/users/"+id, `{"permissions":[]}`, nil)
	walk(t, s, whole.Key, "", entered)
	s.clock.Advance(window)
	s.console1("DELETE", "/users/"+id, "", nil)
	walk(t, s, whole.Key, "", entered)
}

// replaceHandlers lets the routes do nothing but set entered to their names, so that a test
// sees which one let a request in.
func replaceHandlers(s *service) (entered *string) {
	entered = new(string)
	for _, x := range []*surface{s.api.surfaceA, s.api.surfaceC} {
		for i := range x.routes {
			name := x.routes[i].Method + " " + x.routes[i].Path
			x.routes[i].Handle = func(*keycall.Call) (any, error) { *entered = name; return nil, nil }
		}
	}
	return entered
}

// newMaker adds a person and returns their calls of the console.
func newMaker(t *testing.T, s *service, permissions []string) (call func(method, path, body string, data any), id string) {
	t.Helper()
	var u struct {
		ID string `json:"_id"`
	}
	list, err := json.Marshal(permissions)
	ok(t, err)
	s.console1("POST", "/users", fmt.Sprintf(`{"email":"maker@x.io","password":"long enough password","permissions":%s}`, list), &u)
	theirs := *s
	var d struct{ Token string }
	theirs.console1("POST", "/session", `{"email":"maker@x.io","password":"long enough password"}`, &d)
	theirs.token = d.Token
	return theirs.console1, u.ID
}

// sample is a body that an operation takes.
func sample(t *testing.T, s *shape.Schema) string {
	t.Helper()
	if s == nil {
		return ""
	}
	b, err := json.Marshal(s.Sample())
	ok(t, err)
	return string(b)
}

// walk makes a request of every route with a key that may do p only.
func walk(t *testing.T, s *service, key, p string, entered *string) {
	t.Helper()
	asked := 0
	for _, x := range []*surface{s.api.surfaceA, s.api.surfaceC} {
		for _, r := range x.routes {
			if asked++; asked%100 == 0 { // a key may not ask more often in a minute
				s.clock.Advance(window)
			}
			*entered = ""
			res, b := s.with(key, r.Method, pathOf(x, r), sample(t, r.Body))
			name := r.Method + " " + r.Path
			if r.Permission == p || r.Permission == operation.AnyKey {
				if *entered != name || res.StatusCode != 200 || !strings.Contains(b, `"status":"success"`) {
					t.Errorf("%s %s with %s: %d %s", x.name, name, p, res.StatusCode, b)
				}
				continue
			}
			want := 200
			if x.name == "c" {
				want = 403
			}
			if m := failureOf(t, res.StatusCode, b); *entered != "" || res.StatusCode != want || m != "You don't have permission to perform this action" {
				t.Errorf("%s %s with %q: entered %q, %d %s", x.name, name, p, *entered, res.StatusCode, b)
			}
		}
	}
}

// TestFailuresOfA: all but a few failures of Surface A are HTTP 200, with nothing
// in data.
func TestFailuresOfA(t *testing.T) {
	t.Parallel()
	var fail error
	name := shape.Opt("name", shape.Text("x", ""))
	body := shape.Object(name, shape.Opt("count", shape.Integer(1, "")), shape.Opt("tags", shape.List(shape.Text("x", ""), "")), shape.Opt("on", shape.Boolean(true, "")),
		shape.Opt("rate", shape.Number(1, "")), shape.Opt("user", shape.Object(shape.Opt("email", shape.Text("x", "")))))
	s := newService(t, func(o *Options) { o.BodyBytes = 2000; o.PerMinute = 1000 },
		keycall.Route{Operation: operation.Operation{Method: "POST", Path: "/test/{id}", Permission: "lists:write", Body: body}, Handle: func(c *keycall.Call) (any, error) {
			var in struct {
				Name  string   `json:"name"`
				Count int      `json:"count"`
				Tags  []string `json:"tags"`
				On    *bool    `json:"on"`
				Rate  float64  `json:"rate"`
				User  struct {
					Email string `json:"email"`
				} `json:"user"`
			}
			if err := c.Decode(&in); err != nil {
				return nil, err
			}
			return keycall.Reply{Data: c.Param("id"), Message: "done"}, fail
		}},
		keycall.Route{Operation: operation.Operation{Method: "POST", Path: "/panic", Permission: "lists:write"}, Handle: func(*keycall.Call) (any, error) { panic("on purpose") }},
		keycall.Route{Operation: operation.Operation{Method: "PATCH", Path: "/test/{id}", Permission: "lists:write", Body: shape.Object(name), BodyRules: operation.BodyRules{Optional: true}}, Handle: func(c *keycall.Call) (any, error) {
			var in struct {
				Name string `json:"name"`
			}
			if err := c.Decode(&in); err != nil || in.Name == "" {
				return nil, err
			}
			var out eventtypes.Type
			err := c.Command(eventtypes.CommandDefine, eventtypes.Define{Name: in.Name}, &out)
			return map[string]string{"key": out.Key, "at": record.Time(1)}, err
		}},
	)
	post := func(path, body string, headers ...string) (int, string) {
		t.Helper()
		res, b := s.with(s.creds.APIKey, "POST", "/api/v1"+path, body, headers...)
		if ct := res.Header.Get("Content-Type"); ct != "application/json" {
			t.Errorf("Content-Type %q", ct)
		}
		if fail != nil && (res.StatusCode == 503) != (res.Header.Get("Retry-After") != "") {
			t.Errorf("%d with Retry-After %q", res.StatusCode, res.Header.Get("Retry-After"))
		}
		return res.StatusCode, b
	}
	if status, b := post("/test/abc", `{"name":"x","tags":["a"],"count":2,"user":{"email":"e"}}`); status != 200 || b != `{"status":"success","message":"done","data":"abc"}` {
		t.Errorf("%d %s", status, b)
	}
	if res, b := s.with(s.creds.APIKey, "PATCH", "/api/v1/test/abc", ""); res.StatusCode != 200 || b != `{"status":"success","message":"","data":{}}` {
		t.Errorf("%d %s", res.StatusCode, b)
	}
	for range 2 {
		res, b := s.with(s.creds.APIKey, "PATCH", "/api/v1/test/abc", `{"name":"Item viewed"}`)
		if b != `{"status":"success","message":"","data":{"at":"1970-01-01T00:00:00.001Z","key":"item_viewed"}}` &&
			b != `{"status":"failure","message":"name: the event type item_viewed is defined already","data":{}}` || res.StatusCode != 200 {
			t.Errorf("%d %s", res.StatusCode, b)
		}
	}
	for _, x := range []struct {
		path, body, want string
		headers          []string
	}{
		{"/test/abc", `{"name":5}`, "name Input should be a valid string", nil},
		{"/test/abc", `{"count":"5"}`, "count Input should be a valid integer", nil},
		{"/test/abc", `{"count":5.5}`, "count Input should be a valid integer", nil},
		{"/test/abc", `{"rate":"5"}`, "rate Input should be a valid number", nil},
		{"/test/abc", `{"tags":"x"}`, "tags Input should be a valid list", nil},
		{"/test/abc", `{"on":"yes"}`, "on Input should be a valid boolean", nil},
		{"/test/abc", `{"user":"x"}`, "user Input should be a valid object", nil},
		{"/test/abc", `{"user":{"email":7}}`, "user.email Input should be a valid string", nil},
		{"/test/abc", `[]`, "body Input should be a valid object", nil},
		{"/test/abc", `null`, "body Input should be a valid object", nil},
		{"/test/abc", `"x"`, "body Input should be a valid object", nil},
		{"/test/abc", `{"name":"x"`, "body Input should be valid JSON, see byte 11: the text ends too early", nil},
		{"/test/abc", `{"name":"x"} {}`, "body Input should be valid JSON, see byte 13: unexpected text behind the value", nil},
		{"/test/abc", "{\"name\":\"\xff\"}", "body Input should be valid JSON, see byte 9: ", nil},
		{"/test/abc", "", "body Field required", nil},
		{"/test/abc", "  ", "body Field required", nil},
		{"/test/abc", `{"name":"` + strings.Repeat("x", 5000) + `"}`, "body Input should have at most 2000 bytes", nil},
		{"/test/abc", `{}`, "Content-Type should be application/json", []string{"Content-Type", "text/plain"}},
		{"/test/abc", `{}`, "Content-Encoding is not understood here. Send the body as it is.", []string{"Content-Encoding", "gzip"}},
		{"/no/such/path", `{}`, "There is nothing at this path.", nil},
		{"/test", `{}`, "There is nothing at this path.", nil},
		{"/test/", `{}`, "There is nothing at this path.", nil},
		{"/test/abc/", `{}`, "There is nothing at this path.", nil},
		{"/events/other", `{}`, "There is nothing at this path.", nil},
		{"", `{}`, "There is nothing at this path.", nil},
		{"/push/segments", `{}`, "This path does not take POST. It takes GET.", nil},
	} {
		status, b := post(x.path, x.body, x.headers...)
		var want struct{ Status, Message, Data any }
		ok(t, json.Unmarshal([]byte(b), &want))
		if m := failureOf(t, status, b); status != 200 || !strings.HasPrefix(m, x.want) || !strings.HasSuffix(b, `,"data":{}}`) {
			t.Errorf("POST %s %.60s: %d %s\nwant %s", x.path, x.body, status, b, x.want)
		}
	}
	for err, want := range map[error]int{
		keycall.Fail("channel Input should be 1 or 2"):                             200,
		&resolver.Refusal{Code: "not_found", Message: "there is none"}:             200,
		&resolver.Refusal{Code: "conflict", Message: "it is there"}:                200,
		&resolver.Refusal{Code: "limit", Message: "it is full"}:                    200,
		fmt.Errorf("submit: %w", &resolver.Refusal{Code: "invalid", Message: "x"}): 200,
		fmt.Errorf("submit: %w", resolver.ErrOverloaded):                           503,
		fmt.Errorf("submit: %w", resolver.ErrUnavailable):                          503,
		errors.New("a secret of ours"):                                             500,
	} {
		fail = err
		status, b := post("/test/abc", `{}`)
		m := failureOf(t, status, b)
		var refusal *resolver.Refusal
		if errors.As(err, &refusal) && m != refusal.Message || status != want || strings.Contains(b, "secret") {
			t.Errorf("%v: %d %s", err, status, b)
		}
	}
	if !strings.Contains(s.log.String(), "a secret of ours") {
		t.Error("a fault of ours is not in the log")
	}
	// Paths may have personal data in them.
	if log := s.log.String(); !strings.Contains(log, "route=/test/{id}") || strings.Contains(log, "/abc") {
		t.Errorf("a failed request is not logged by the pattern of its route:\n%s", log)
	}
	if status, b := post("/panic", `{}`); status != 500 || !strings.HasPrefix(b, `{"status":"failure",`) || !strings.Contains(s.log.String(), "on purpose") {
		t.Errorf("a panic: %d %s", status, b)
	}
	// After all that the connection and the service are well.
	fail = nil
	if status, b := post("/test/abc", `{}`); status != 200 || !strings.Contains(b, `"success"`) {
		t.Errorf("%d %s", status, b)
	}
}

// TestFailuresOfC: Surface C has real statuses, a code and a request's id.
func TestFailuresOfC(t *testing.T) {
	t.Parallel()
	var fail error
	s := newService(t, func(o *Options) { o.BodyBytes = 2000 },
		keycall.Route{Operation: operation.Operation{Method: "POST", Path: "/test", Permission: "lists:write", Body: shape.Object(shape.Opt("name", shape.Text("x", "")))}, Handle: func(c *keycall.Call) (any, error) {
			var in struct {
				Name string `json:"name"`
			}
			if err := c.Decode(&in); err != nil {
				return nil, err
			}
			return map[string]int{"n": 1}, fail
		}})
	ids := map[string]bool{}
	post := func(path, body string, headers ...string) (int, string) {
		t.Helper()
		res, b := s.with(s.creds.APIKey, "POST", "/v1"+path, body, headers...)
		var e struct {
			Status, Code string
			RequestID    string `json:"request_id"`
		}
		ok(t, json.Unmarshal([]byte(b), &e))
		if len(e.RequestID) != 4+32 || !strings.HasPrefix(e.RequestID, "req_") || ids[e.RequestID] || res.Header.Get("X-Request-Id") != e.RequestID {
			t.Errorf("request id %q, header %q", e.RequestID, res.Header.Get("X-Request-Id"))
		}
		ids[e.RequestID] = true
		if (e.Status == "success") != (res.StatusCode == 200) {
			t.Errorf("%d %s", res.StatusCode, b)
		}
		return res.StatusCode, e.Code
	}
	for _, x := range []struct {
		path, body string
		headers    []string
		fail       error
		status     int
		code       string
	}{
		{"/test", `{}`, nil, nil, 200, ""},
		{"/test", `{"name":1}`, nil, nil, 400, "invalid_request"},
		{"/none", `{}`, nil, nil, 404, "not_found"},
		{"/test", `{"name":"` + strings.Repeat("x", 5000) + `"}`, nil, nil, 413, "too_large"},
		{"/test", `{}`, []string{"Content-Type", "text/plain"}, nil, 415, "unsupported_media_type"},
		{"/test", `{}`, nil, &resolver.Refusal{Code: "not_found", Message: "x"}, 404, "not_found"},
		{"/test", `{}`, nil, &resolver.Refusal{Code: "conflict", Message: "x"}, 409, "conflict"},
		{"/test", `{}`, nil, &resolver.Refusal{Code: "forbidden", Message: "x"}, 403, "forbidden"},
		{"/test", `{}`, nil, resolver.ErrOverloaded, 503, "unavailable"},
		{"/test", `{}`, nil, errors.New("x"), 500, "internal_error"},
	} {
		fail = x.fail
		if status, code := post(x.path, x.body, x.headers...); status != x.status || code != x.code {
			t.Errorf("%s %.40s: %d %s", x.path, x.body, status, code)
		}
	}
	if res, _ := s.with(s.creds.APIKey, "GET", "/v1/test", ""); res.StatusCode != 405 || res.Header.Get("Allow") != "POST" {
		t.Errorf("a wrong method: %d, Allow %q", res.StatusCode, res.Header.Get("Allow"))
	}
}

func TestChoices(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"1": "", "2": "", `"1"`: "x", "3": "x", `"email"`: "x", "1.0": "x", "true": "x", "[1]": "x", "-1": "x",
	} {
		n, given, err := keycall.Number("channel", json.RawMessage(raw), 1, 2)
		if !given || (err != nil) != (want != "") || err == nil && fmt.Sprint(n) != raw {
			t.Errorf("%s: %d %v %v", raw, n, given, err)
		}
		if err != nil && err.Error() != "channel Input should be 1 or 2" {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if _, _, err := keycall.Number("type", json.RawMessage("9"), 1, 2, 3, 4); err.Error() != "type Input should be 1, 2, 3 or 4" {
		t.Errorf("%v", err)
	}
	if text, given, err := keycall.Word("status", json.RawMessage(`"live"`), "paused", "live"); text != "live" || !given || err != nil {
		t.Errorf("%q %v %v", text, given, err)
	}
	for _, raw := range []string{`"x"`, "1", `""`} {
		if _, given, err := keycall.Word("status", json.RawMessage(raw), "paused", "live"); !given || err == nil || err.Error() != "status Input should be 'paused' or 'live'" {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, raw := range []string{"", "null"} {
		_, numberGiven, err1 := keycall.Number("channel", json.RawMessage(raw), 1, 2)
		_, wordGiven, err2 := keycall.Word("status", json.RawMessage(raw), "live")
		if numberGiven || wordGiven || err1 != nil || err2 != nil {
			t.Errorf("%q is taken for given", raw)
		}
	}
}

func TestMatchPath(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		pattern, path string
		params        map[string]string
		ok            bool
	}{
		{"/a", "/a", nil, true},
		{"/a", "/a/", nil, false},
		{"/a", "", nil, false},
		{"/a", "/ab", nil, false},
		{"/a/{id}", "/a/x", map[string]string{"id": "x"}, true},
		{"/a/{id}", "/a/", nil, false},
		{"/a/{id}", "/a", nil, false},
		{"/a/{id}/b/{c}", "/a/1/b/2", map[string]string{"id": "1", "c": "2"}, true},
		{"/a/{id}/b", "/a/1/c", nil, false},
	} {
		params, ok := matchPath(x.pattern, x.path)
		if ok != x.ok || ok && !maps.Equal(params, x.params) {
			t.Errorf("%s %s: %v %v", x.pattern, x.path, params, ok)
		}
	}
}

func TestCheckRoutes(t *testing.T) {
	t.Parallel()
	h := func(*keycall.Call) (any, error) { return nil, nil }
	for _, list := range [][]keycall.Route{
		{{Handle: h, Operation: operation.Operation{Method: "GET", Path: "/a", Permission: ""}}},
		{{Handle: nil, Operation: operation.Operation{Method: "GET", Path: "/a", Permission: "lists:read"}}},
		{{Handle: h, Operation: operation.Operation{Method: "GET", Path: "a", Permission: "lists:read"}}},
		{{Handle: h, Operation: operation.Operation{Method: "GET", Path: "/a", Permission: "lists:read"}}, {Handle: h, Operation: operation.Operation{Method: "GET", Path: "/a", Permission: "lists:write"}}},
	} {
		if err := (&surface{Surface: operation.SurfaceA, routes: list}).check(operation.KeyPermissions()); err == nil {
			t.Errorf("%v is taken", list)
		}
	}
}

func TestPushSegments(t *testing.T) {
	t.Parallel()
	s := newService(t, func(o *Options) { o.PerMinute = 1000 })
	type item struct {
		ID     string `json:"_id"`
		Name   string
		Count  *int
		Status string
	}
	var made []string
	for i := range 5 {
		var d struct {
			ID string `json:"_id"`
		}
		s.console1("POST", "/segments", fmt.Sprintf(`{"name":"s%d","definition":{"kind":"attribute","field":"attributes.plan","op":"=","value":"p%d"}}`, i, i), &d)
		made = append(made, d.ID)
		s.clock.Advance(time.Millisecond)
	}
	send := func(plan string) {
		if res, b := s.with(s.creds.APIKey, "POST", "/v1/events", `{"email":"`+plan+`@x.io","event":"x"}`); res.StatusCode != 200 {
			t.Fatalf("%d %s", res.StatusCode, b)
		}
		s.send("POST", "/api/v1/events", fmt.Sprintf(`{"event_type":"x","user":{"email":"%s@x.io","attributes":{"plan":%q}}}`, plan, plan), "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret)
	}
	send("p1")
	get := func(query string) (list []item, next string) {
		t.Helper()
		res, b := s.with(s.creds.APIKey, "GET", "/api/v1/push/segments"+query, "")
		var a struct {
			Status string
			Data   []item
			Next   string
		}
		ok(t, json.Unmarshal([]byte(b), &a))
		if res.StatusCode != 200 || a.Status != "success" {
			t.Fatalf("%d %s", res.StatusCode, b)
		}
		return a.Data, a.Next
	}
	var list []item
	eventually.Holds(t, "every segment is live", func() bool {
		if list, _ = get(""); !slices.ContainsFunc(list, func(x item) bool { return x.Status != "live" }) {
			return true
		}
		s.clock.Advance(time.Second)
		return false
	})
	if len(list) != 5 || list[1].Count == nil || *list[1].Count != 1 || *list[0].Count != 0 || list[1].Name != "s1" || list[1].ID != made[1] {
		t.Errorf("have %+v", list)
	}
	var ids []string
	for next := "?limit=2"; next != ""; {
		var cursor string
		list, cursor = get(next)
		for _, x := range list {
			ids = append(ids, x.ID)
		}
		// What the cursor points to may go meanwhile.
		if len(ids) == 2 {
			s.console1("DELETE", "/segments/"+ids[1], "", nil)
		}
		if next = ""; cursor != "" {
			next = "?limit=2&cursor=" + cursor
		}
	}
	if !slices.Equal(ids, made) {
		t.Errorf("pages have %v, made were %v", ids, made)
	}
	for _, q := range []string{"?limit=0", "?limit=x", "?limit=1001", "?cursor=x", "?cursor=AAAA"} {
		res, b := s.with(s.creds.APIKey, "GET", "/api/v1/push/segments"+q, "")
		if m := failureOf(t, res.StatusCode, b); res.StatusCode != 200 || !strings.Contains(m, " Input should be ") {
			t.Errorf("%s: %d %s", q, res.StatusCode, b)
		}
	}
}

func TestPushSegmentsBuilding(t *testing.T) {
	t.Parallel()
	s := newServiceWith(t, &emptyHistory{building: true}, nil)
	if res, b := s.with(s.creds.APIKey, "POST", "/v1/events", `{"email":"a@x.io","event":"x"}`); res.StatusCode != 200 {
		t.Fatalf("%d %s", res.StatusCode, b)
	}
	s.console1("POST", "/segments", `{"name":"s","definition":{"kind":"activity","event":"x"}}`, nil)
	_, b := s.with(s.creds.APIKey, "GET", "/api/v1/push/segments", "")
	if !strings.Contains(b, `"name":"s","count":null,"status":"building"`) {
		t.Errorf("have %s", b)
	}
}

// TestEventC: an event of Surface C is one of Surface B.
func TestEventC(t *testing.T) {
	t.Parallel()
	s := newService(t, func(o *Options) { o.PerMinute = 1000 })
	post := func(body string) (int, string) {
		t.Helper()
		res, b := s.with(s.creds.APIKey, "POST", "/v1/events", body)
		return res.StatusCode, b
	}
	profile := func(b string) string {
		t.Helper()
		var a struct {
			Status string
			Data   struct {
				ProfileID string `json:"profile_id"`
			}
		}
		ok(t, json.Unmarshal([]byte(b), &a))
		if a.Status != "success" || !strings.HasPrefix(a.Data.ProfileID, "prf_") {
			t.Fatalf("have %s", b)
		}
		return a.Data.ProfileID
	}
	_, b := post(`{"email":"Ann@x.io","event":"item_viewed","properties":{"value":1.50,"<x>":"&"},"timestamp":null}`)
	first := profile(b)
	_, b = post(`{"email":" ann@X.io ","event":"item_viewed","properties":null}`)
	if profile(b) != first {
		t.Error("the same e-mail makes two profiles")
	}
	res, b := s.send("POST", "/api/v1/events", `{"event_type":"item_viewed","user":{"email":"ann@x.io"}}`, "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret)
	if res.StatusCode != 202 || !strings.Contains(b, first) {
		t.Errorf("Surface B: %d %s", res.StatusCode, b)
	}
	var catalog []struct {
		Key   string
		Count int
	}
	s.console1("GET", "/catalog", "", &catalog)
	if len(catalog) != 1 || catalog[0].Key != "item_viewed" || catalog[0].Count != 3 {
		t.Errorf("have %+v", catalog)
	}
	for range 2 {
		_, b = post(`{"email":"bob@x.io","event":"bought","idempotency_key":"k1"}`)
		profile(b)
	}
	s.console1("GET", "/catalog", "", &catalog)
	if len(catalog) != 2 || catalog[0].Count != 1 {
		t.Errorf("L2: a retry counts twice: %+v", catalog)
	}
	for body, message := range map[string]string{
		`{"event":"x"}`:                                             "email Field required",
		`{"email":null,"event":"x"}`:                                "email Field required",
		`{"email":"","event":"x"}`:                                  "email Field required",
		`{"email":"a@x.io"}`:                                        "event Field required",
		`{"email":5,"event":"x"}`:                                   "email must be a string",
		`{"email":"a@x.io","event":5}`:                              "event must be a string",
		`{"email":"a@x.io","event":"x","propertys":{}}`:             "did you mean properties?",
		`{"email":"a@x.io","event_type":"x"}`:                       "event_type is not a field of an event; did you mean event?",
		`{"user":{"email":"a@x.io"},"event":"x"}`:                   "user is not a field of this call: of a user it takes the email alone; send what else is known to POST /api/v1/events",
		`{"email":"a@x.io","event":"x","first_name":"A"}`:           "first_name is not a field of this call: of a user it takes the email alone",
		`{"email":"a@x.io","event":"x","timestamp":99999999999999}`: "timestamp is in the future",
		`{"email":"a@x.io","event":"Item Viewed"}`:                  "event must be a key in snake case",
		`{"email":"a@x.io","event":"x","properties":[1]}`:           "properties must be a JSON object",
		`{"email":"a@x.io","event":"x","properties":{"a":1,"a":2}}`: "properties.a Input should be given only once",
		`{"email":"a@x.io","event":"x","properties":{"a":1e999}}`:   "properties.a Input should be a number that fits",
		`{"email":"guest","event":"x"}`:                             "guest",
		`{"email":"` + strings.Repeat("x", 600) + `","event":"x"}`:  "email is longer than 512 bytes",
		`{"email":"a@x.io","event":"x","idempotency_key":7}`:        "idempotency_key must be a string",
		`{"email":"a\u0000@x.io","event":"x"}`:                      "email Input should not contain the NUL character",
	} {
		status, b := post(body)
		if m := failureOf(t, status, b); status != 400 || !strings.Contains(m, message) || strings.Contains(m, "user.email") {
			t.Errorf("%.80s: %d %s", body, status, b)
		}
	}
	s.console1("GET", "/catalog", "", &catalog)
	if len(catalog) != 2 {
		t.Errorf("what was refused is stored: %+v", catalog)
	}
}

// FuzzEventC: whatever the body, the answer is one of Surface C's and no fault of
// ours.
func FuzzEventC(f *testing.F) {
	s := newService(f, nil)
	for _, x := range []string{`{"email":"a@x.io","event":"x","properties":{}}`, `{"email":"\ud800","event":"x"}`, `{`, `{"email":[],"event":{}}`, `[]`, ``} {
		f.Add(x)
	}
	f.Fuzz(func(t *testing.T, body string) {
		theirs := *s
		theirs.t = t
		s.clock.Advance(time.Second)
		res, b := theirs.with(s.creds.APIKey, "POST", "/v1/events", body)
		var a struct{ Status string }
		if err := json.Unmarshal([]byte(b), &a); err != nil || res.StatusCode >= 500 || (a.Status == "success") != (res.StatusCode == 200) {
			t.Fatalf("%q: %d %s", body, res.StatusCode, b)
		}
	})
}
