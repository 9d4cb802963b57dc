package main

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/musterhq/muster/internal/exposition"
)

// TestMetrics: Prometheus' own linter has no complaint about the metrics of a server
// that has done a bit of everything, and each metric is documented.
func TestMetrics(t *testing.T) {
	t.Parallel()
	inModes(t, metricsAreClean)
}

func metricsAreClean(t *testing.T, args []string) {
	t.Parallel()
	s := serve(t, t.TempDir(), args...)
	s.export(map[string][]string{})
	s.refuse(t, "b", "unauthorized", "POST", "/api/v1/events", `{"event_type":"seen","user":{"email":"a@x.io"}}`, "X-App-Id", "x", "X-App-Secret", "y")
	s.refuse(t, "b", "no_event_accepted", "POST", "/api/v1/events/batch", `{"events":[{"event_type":"seen"}]}`, "X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret)
	s.refuse(t, "b", "method_not_allowed", "GET", "/api/v1/events", "")
	s.refuse(t, "a", "unauthorized", "GET", "/api/v1/contacts", "")
	s.refuse(t, "a", "invalid", "POST", "/api/v1/contacts", "{", "Authorization", "Bearer "+s.creds.APIKey)
	s.refuse(t, "c", "not_found", "GET", "/v1/nothing", "", "Authorization", "Bearer "+s.creds.APIKey)
	s.refuse(t, "console", "unauthorized", "GET", "/console/api/v1/segments", "")
	s.refuse(t, "other", "head_too_long", "GET", "/x", "", "X-Long", strings.Repeat("x", 10<<10))

	text := s.metrics()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	ok(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	known := 0
	for _, m := range regexp.MustCompile(`(?m)^(\w+)[{ ]`).FindAllStringSubmatch(text, -1) {
		if _, is := exposition.Of(m[1]); !is {
			t.Errorf("%s is not in the table of metrics", m[1])
		}
		known++
	}
	if known < 500 {
		t.Errorf("%d samples", known)
	}
}

// refuse makes a request that is refused: it is counted, its answer has an id, and the
// log has that.
func (s *server) refuse(t *testing.T, surface, reason, method, path, body string, headers ...string) {
	t.Helper()
	metric := `muster_requests_refused_total{surface="` + surface + `",reason="` + reason + `"}`
	before := s.metric(metric)
	req, err := http.NewRequestWithContext(t.Context(), method, s.origin+path, strings.NewReader(body))
	ok(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", "theirs")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	ok(t, err)
	b, err := io.ReadAll(res.Body)
	ok(t, err)
	res.Body.Close()
	id := res.Header.Get("X-Request-Id")
	if !regexp.MustCompile(`^req_[0-9a-f]{24,}$`).MatchString(id) {
		t.Errorf("%s %s: %d %s has the id %q", method, path, res.StatusCode, b, id)
	}
	if surface == "c" && !strings.Contains(string(b), `"request_id":"`+id+`"`) {
		t.Errorf("%s %s: %s has another id than %s", method, path, b, id)
	}
	if after := s.metric(metric); after != before+1 {
		t.Errorf("%s %s: %d %s: %s was %v and is %v", method, path, res.StatusCode, b, metric, before, after)
	}
	if line := regexp.MustCompile(`msg="request refused" request=` + id + ` surface=` + surface + ` reason=` + reason + ` `); id != "" && !line.MatchString(s.log()) {
		t.Errorf("%s %s: the log has no %s\n%s", method, path, line, s.log())
	}
}
