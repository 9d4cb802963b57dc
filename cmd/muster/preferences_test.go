package main

import (
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/musterhq/muster/internal/testlevel"
)

// TestPreferencesAreKept: a person follows the link of a captured message, leaves a topic and
// turns e-mail off; after a kill the page and the log of consents still say so, and campaigns
// skip the person.
func TestPreferencesAreKept(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	s.sendToAll()
	var list, other, ann, bob struct {
		ID string `json:"_id"`
	}
	ok(t, s.surfaceA("POST", "/lists", map[string]any{"name": "news", "public": true, "public_name": "News"}, &list))
	ok(t, s.surfaceA("POST", "/lists", map[string]any{"name": "tips", "public": true, "public_name": "Tips"}, &other))
	ok(t, s.surfaceA("POST", "/contacts", map[string]any{"email": "ann@example.com", "list_id": list.ID}, &ann))
	ok(t, s.surfaceA("POST", "/contacts", map[string]any{"email": "bob@example.com", "list_id": list.ID}, &bob))
	sendTo := func(audience map[string]any) (sent int, skipped map[string]int) {
		t.Helper()
		var campaign struct {
			ID string `json:"_id"`
		}
		ok(t, s.surfaceA("POST", "/campaign", map[string]any{"name": "news", "channel": 2, "type": 1, "date": "2026-01-01T00:00:00Z", "subject": "Hello",
			"body": `<p>Hi, <a href="{{preferences_url}}">choose</a></p>`, "sender": "news@muster.local"}, &campaign))
		var stats struct {
			Sent    int            `json:"emails_sent"`
			Skipped map[string]int `json:"skipped"`
		}
		ok(t, s.surfaceA("POST", "/campaign/"+campaign.ID+"/send", audience, nil))
		ok(t, s.surfaceA("GET", "/campaign/"+campaign.ID+"/stats", nil, &stats))
		return stats.Sent, stats.Skipped
	}
	toList := map[string]any{"list_id": []string{list.ID}}
	if sent, _ := sendTo(toList); sent != 2 {
		t.Fatalf("%d messages", sent)
	}
	var captured []struct{ HTML string }
	s.console("GET", "/outbox?channel=email&to=ann@example.com&limit=1", "", &captured)
	link := regexp.MustCompile(`https?://[^/"]+(/preferences/[A-Za-z0-9_-]+)`).FindStringSubmatch(captured[0].HTML)
	if link == nil {
		t.Fatalf("no link in %s", captured[0].HTML)
	}
	visit := func(form url.Values) string {
		t.Helper()
		var res *http.Response
		var err error
		if form == nil {
			res, err = http.Get(s.origin + link[1])
		} else {
			res, err = http.PostForm(s.origin+link[1], form)
		}
		ok(t, err)
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		ok(t, err)
		if res.StatusCode != 200 {
			t.Fatalf("%d %s", res.StatusCode, b)
		}
		return string(b)
	}
	first := visit(nil)
	if page := first; !strings.Contains(page, `value="topic:`+list.ID+`" checked`) || strings.Contains(page, `value="topic:`+other.ID+`" checked`) {
		t.Fatal(page)
	}
	shown := []string{"topic:" + list.ID, "topic:" + other.ID, "channel:email"}
	if page := visit(url.Values{"action": {"save"}, "page": regexp.MustCompile(`name="page" value="([^"]*)"`).FindStringSubmatch(first)[1:], "shown": shown, "was": {"topic:" + list.ID, "channel:email"}, "chosen": {"topic:" + other.ID, "channel:email"}}); !strings.Contains(page, "<li>News: off</li><li>Tips: on</li>") {
		t.Fatal(page)
	}
	s.kill()
	s = serve(t, dir)
	if err := s.surfaceA("POST", "/lists/"+list.ID+"/contacts", map[string]any{"email": "ann@example.com"}, nil); err == nil || !strings.Contains(err.Error(), "left this list on the preference page") {
		t.Errorf("put on the list again: %v", err)
	}
	if sent, _ := sendTo(toList); sent != 1 {
		t.Errorf("%d messages to the list that ann left", sent)
	}
	if page := visit(url.Values{"action": {"everything"}}); !strings.Contains(page, "E-mail: off") {
		t.Fatal(page)
	}
	if sent, skipped := sendTo(map[string]any{"all_contacts": true}); sent != 1 || skipped["unsubscribed"] != 1 {
		t.Errorf("%d messages, skipped %v", sent, skipped)
	}
	code, out, stderr := muster(t, "", "export", "--to", s.origin, "--credentials", filepath.Join(dir, "credentials.json"), "consents")
	if code != 0 || strings.Count(out, ann.ID) < 5 || !strings.Contains(out, `"client":"127.0.0.0/24"`) || !strings.Contains(out, `Unsubscribe from everything`) {
		t.Errorf("%d %s %s", code, out, stderr)
	}
	s.stop()
	if code, stopped, stderr := muster(t, "", "export", "--data", filepath.Join(dir, "data"), "consents"); code != 0 || stopped != out {
		t.Errorf("%d %s %s", code, stopped, stderr)
	}
}
