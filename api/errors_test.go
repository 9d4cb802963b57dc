package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

// TestRebuildingIsTold: calls that need history while it is rebuilt answer how far it
// is.
func TestRebuildingIsTold(t *testing.T) {
	t.Parallel()
	p, ours := handler.Classify(fmt.Errorf("%w: %w", resolver.ErrUnavailable, &query.RebuildingError{Done: 12, Total: 50}))
	if p.Status != 503 || ours || p.RetryAfter == 0 || !strings.Contains(p.Message, "12 of 50 records") {
		t.Errorf("%+v", p)
	}
}

// TestErrors is the table of what is refused: by whom, with which status and
// which field.
func TestErrors(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, func(o *Options) { o.BodyBytes = 64 << 10 })
	profile := s.event(`{"event_type":"seen","user":{"email":"a@x.io"}}`)
	for _, x := range []struct {
		method, path, body string
		status             int
		field              string
		says               string
	}{
		{"GET", "/nonsense", "", 404, "", "nothing at this path"},
		{"GET", "/segments/", "", 404, "", ""},
		{"PATCH", "/segments", "", 405, "", "PATCH"},
		{"POST", "/profiles", "{}", 405, "", ""},

		{"POST", "/session", "", 415, "", "Content-Type"},
		{"POST", "/session", " ", 400, "", "empty"},
		{"POST", "/session", "{", 400, "", "ends too early"},
		{"POST", "/session", "null", 400, "", "object"},
		{"POST", "/session", "[]", 400, "", "object"},
		{"POST", "/session", `"x"`, 400, "", "object"},
		{"POST", "/session", "{}{}", 400, "", "behind"},
		{"POST", "/session", "{]", 400, "", "byte 1"},
		{"POST", "/session", `{"email":"a@x.io"}`, 400, "password", "password"},
		{"POST", "/session", `{"password":"x"}`, 400, "email", "email"},
		{"POST", "/session", `{"email":"","password":"x"}`, 400, "email", "email"},
		{"POST", "/session", `{"email":1,"password":"x"}`, 400, "email", "a string, not number"},
		{"POST", "/session", `{"email":"a@x.io","password":"x","remember":true}`, 400, "remember", "remember"},
		{"POST", "/session", `{"email":"` + strings.Repeat("a", 513) + `","password":"x"}`, 400, "email", "512"},
		{"POST", "/session", `{"email":"a","password":"` + strings.Repeat("a", 1025) + `"}`, 400, "password", "1024"},
		{"POST", "/session", `{"email":"` + strings.Repeat("a", 70_000) + `"}`, 413, "", "16384"},

		{"POST", "/segments", `{"definition":{"kind":"list","list_id":"x"}}`, 400, "name", "name"},
		{"POST", "/segments", `{"name":" ","definition":{"kind":"list","list_id":"x"}}`, 400, "name", "name"},
		{"POST", "/segments", `{"name":"a"}`, 400, "definition", "definition"},
		{"POST", "/segments", `{"name":"a","definition":null}`, 400, "definition", "definition"},
		{"POST", "/segments", `{"name":"a","definition":[]}`, 400, "definition", "definition"},
		{"POST", "/segments", `{"name":"a","definition":{"match":"all","conditions":[{"kind":"attribute","field":"email","op":"exists"},{"kind":"activity","event":"seen","window":{"last_days":0}}]}}`,
			400, "definition", "conditions[1].window.last_days must be greater than 0"},
		{"POST", "/segments", `{"name":"a","definition":{"kind":"segment","segment_id":"seg_none"}}`, 400, "definition", "seg_none"},
		{"POST", "/segments", `{"name":"` + strings.Repeat("a", 201) + `","definition":{"kind":"attribute","field":"email","op":"exists"}}`, 400, "name", "200"},
		{"GET", "/segments/seg_none", "", 404, "", "no segment"},
		{"PUT", "/segments/seg_none", `{"name":"a","definition":{"kind":"attribute","field":"email","op":"exists"}}`, 404, "id", "no segment"},
		{"DELETE", "/segments/seg_none", "", 404, "id", "no segment"},
		{"GET", "/segments/seg_none/members", "", 404, "", "no segment"},
		{"GET", "/segments/seg_none/explain", "", 404, "", ""},
		{"GET", "/segments?limit=0", "", 400, "limit", "1 to 1000"},
		{"GET", "/segments?cursor=x", "", 400, "cursor", "cursor"},
		{"POST", "/segments/preview", `{}`, 400, "definition", "definition"},
		{"POST", "/segments/preview", `{"name":"x","definition":{"kind":"attribute","field":"email","op":"exists"}}`, 400, "name", "name"},
		{"POST", "/segments/preview", `{"definition":{"kind":"segment","segment_id":"seg_none"}}`, 400, "definition", "segment_id"},

		{"GET", "/profiles", "", 400, "email", "exactly one"},
		{"GET", "/profiles?email=a@x.io&phone=1", "", 400, "email", "exactly one"},
		{"GET", "/profiles?email=", "", 400, "email", "empty"},
		{"GET", "/profiles?email=" + strings.Repeat("a", 513), "", 400, "email", "512"},
		{"GET", "/profiles?phone=none", "", 404, "", "phone"},
		{"GET", "/profiles?external_id=none", "", 404, "", "external_id"},
		{"GET", "/profiles/search?sort=match", "", 400, "sort", "needs a q"},
		{"GET", "/profiles/search?sort=up", "", 400, "sort", "newest"},
		{"GET", "/profiles/search?status=Happy", "", 400, "status", "Subscribed"},
		{"GET", "/profiles/search?channel=email", "", 400, "channel", "status"},
		{"GET", "/profiles/search?status=Subscribed&channel=post", "", 400, "channel", "email"},
		{"GET", "/profiles/search?segment_id=seg_none", "", 404, "", "no segment"},
		{"GET", "/profiles/search?list_id=lst_none", "", 404, "", "no list"},
		{"GET", "/profiles/search?limit=0", "", 400, "limit", "1 to 1000"},
		{"GET", "/profiles/search?cursor=x", "", 400, "cursor", "cursor"},
		{"GET", "/profiles/search?query=ann", "", 400, "query", "query"},
		{"GET", "/profiles/search?q=" + strings.Repeat("a", 513), "", 400, "q", "512"},
		{"GET", "/profiles/none", "", 404, "", "no profile"},
		{"GET", "/profiles/prf_00000000000000000000000000000000", "", 404, "", "no profile"},
		{"GET", "/profiles/none/events", "", 404, "", "no profile"},
		{"GET", "/profiles/prf_00000000000000000000000000000000/events", "", 404, "", "no profile"},
		{"GET", "/profiles/" + profile + "/events?limit=1001", "", 400, "limit", "1 to 1000"},
		{"GET", "/profiles/" + profile + "/events?limit=-1", "", 400, "limit", ""},
		{"GET", "/profiles/" + profile + "/events?limit=ten", "", 400, "limit", ""},
		{"GET", "/profiles/" + profile + "/events?cursor=AQ", "", 400, "cursor", ""},
		{"GET", "/profiles/" + profile + "/events?cursor=!", "", 400, "cursor", ""},

		{"POST", "/catalog", `{}`, 400, "name", "name"},
		{"POST", "/catalog", `{"name":"!!"}`, 400, "name", "letter"},
		{"PUT", "/settings", `{}`, 400, "double_opt_in", "missing"},
		{"PUT", "/settings", settingsWith(`{"idempotency_hours":1}`), 400, "idempotency_hours", "72"},
		{"PUT", "/settings", settingsWith(`{"placeholders":[""]}`), 400, "placeholders", "placeholders[0]"},
		{"PUT", "/settings", settingsWith(`{"x":1}`), 400, "x", "x"},
		{"PUT", "/settings", settingsWith(`{"placeholders":null}`), 400, "placeholders", "missing"},
		{"PUT", "/settings", settingsWith(`{"revenue_attribution":{"open_hours":2}}`), 400, "revenue_attribution.click_hours", "missing"},
		{"PUT", "/settings", settingsWith(`{"revenue_attribution":{"click_hours":2,"open_hours":null}}`), 400, "revenue_attribution.open_hours", "missing"},
		{"PUT", "/settings", settingsWith(`{"revenue_attribution":{"click_hours":2,"open_hours":721}}`), 400, "revenue_attribution.open_hours", "720"},
		{"PUT", "/settings", settingsWith(`{"revenue_attribution":5}`), 400, "revenue_attribution", "an object"},
		{"PUT", "/settings", settingsWith(`{"identifier_cap":"50"}`), 400, "identifier_cap", "a whole number"},
	} {
		status, a := s.do(x.method, x.path, x.body)
		if status != x.status || a.field() != x.field || !strings.Contains(a.Message, x.says) {
			t.Errorf("%s %s %.80s:\n%d %q %s\nwant %d %q … %s", x.method, x.path, x.body, status, a.field(), a.Message, x.status, x.field, x.says)
		}
	}
	// Every call but signing in needs a session.
	s.token = ""
	for _, x := range []string{"DELETE /session", "GET /segments", "POST /segments", "POST /segments/preview", "GET /segments/x", "PUT /segments/x", "DELETE /segments/x",
		"GET /segments/x/members", "GET /segments/x/explain", "GET /segments/x/transitions", "GET /profiles", "GET /profiles/search", "GET /profiles/x", "GET /profiles/x/events", "GET /catalog", "POST /catalog", "GET /events/live",
		"POST /app-secret", "GET /settings", "PUT /settings"} {
		method, path, _ := strings.Cut(x, " ")
		if status, _ := s.do(method, path, ""); status != 401 {
			t.Errorf("%s without a session: %d", x, status)
		}
	}
}

// TestBodyEncoding: a body in an encoding that is not understood is not taken
// for JSON.
func TestBodyEncoding(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, nil)
	if status, _ := s.do("POST", "/catalog", `{"name":"x"}`, "Content-Encoding", "gzip"); status != 415 {
		t.Errorf("gzip: %d", status)
	}
	if status, _ := s.do("POST", "/catalog", `{"name":"x"}`, "Content-Type", "text/plain"); status != 415 {
		t.Errorf("text/plain: %d", status)
	}
	if status, _ := s.do("POST", "/catalog", `{"name":"Item viewed"}`, "Content-Type", "application/JSON; charset=utf-8", "Content-Encoding", "identity"); status != 200 {
		t.Errorf("with a charset: %d", status)
	}
}
