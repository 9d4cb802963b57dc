package main

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// personToken is a token as a customer's server makes it.
func personToken(secret, issuer, subject string, life time.Duration) string {
	part := func(v any) string {
		b, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := part(map[string]string{"alg": "HS256", "typ": "JWT"}) + "." + part(map[string]any{"iss": issuer, "sub": subject, "exp": time.Now().Add(life).Unix()})
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

type inbox struct {
	Messages []struct {
		ID, Title, Body, Display string
		SeenAt                   *string `json:"seen_at"`
	}
	Unseen int
	Next   *string
}

// page calls as a page of a customer does.
func (s *server) page(method, path, token, origin string, data any) (int, http.Header) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.origin+path, nil)
	ok(s.t, err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	res, err := http.DefaultClient.Do(req)
	ok(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(s.t, err)
	if data != nil && res.StatusCode == http.StatusOK {
		ok(s.t, json.Unmarshal(b, data))
	}
	return res.StatusCode, res.Header
}

// readInbox reads the inbox of a person as a page does, from any goroutine.
func readInbox(ctx context.Context, origin, token string, into *inbox) error {
	req, err := http.NewRequestWithContext(ctx, "GET", origin+"/in-app/inbox?limit=100", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	text, err := answerOf(req)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

// answerOf makes a request, which must be answered 200, and returns the answer.
func answerOf(req *http.Request) (string, error) {
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %d %s", req.Method, req.URL.Path, res.StatusCode, b)
	}
	return string(b), err
}

type inAppKeys struct {
	Secret, Issuer string
	Secrets        []struct{ ExpiresAt *string }
}

// TestL1InAppSurvivesKills: a campaign goes to 1,000 people while the process is killed, pages hold
// streams open, in a cluster through the node that does not have the account, and the secret of
// tokens is changed twice. Everybody has the message once, with their own name in it, and each
// page shows it once.
func TestL1InAppSurvivesKills(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	inFilesAndCluster(t, inAppSurvivesKills)
}

func inAppSurvivesKills(t *testing.T, start start) {
	t.Parallel()
	const seed, people, watched = 11, 1000, 20
	t.Logf("seed %d", seed)
	c := start(t, plainly, "--checkpoint-interval", "300ms")
	keys := &sharedKeys{}
	rotate := func(overlap string) {
		var made inAppKeys
		c.console("POST", "/in-app/secret", overlap, &made)
		keys.set(made)
	}
	rotate("")
	first := keys.get()
	events := []map[string]any{}
	for n := range people {
		events = append(events, map[string]any{"event_type": "seen", "user": map[string]any{"external_id": fmt.Sprintf("u%d", n), "first_name": fmt.Sprintf("P%d", n)}})
		if len(events) == 100 {
			b, _ := json.Marshal(map[string]any{"events": events})
			c.call("POST", "/api/v1/events/batch", string(b), nil, "X-App-Id", c.creds.AppID, "X-App-Secret", c.creds.AppSecret)
			events = events[:0]
		}
	}
	var segment, campaign struct {
		ID string `json:"_id"`
	}
	ok(t, c.surfaceA("POST", "/segments", map[string]any{"name": "Seen", "definition": map[string]any{"kind": "activity", "event": "seen", "did": true}}, &segment))
	c.untilLive(segment.ID)
	ok(t, c.surfaceA("POST", "/campaign", map[string]any{"name": "Sale", "channel": 2, "type": 4, "service": "in_app", "date": "2026-01-01", "subject": "Hello {{first_name}}", "body": "Sale", "in_app": map[string]any{"display": "banner"}}, &campaign))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	pages := make([]*watchingPage, watched)
	for i := range pages {
		pages[i] = &watchingPage{person: fmt.Sprintf("u%d", i*people/watched), shown: map[string]string{}}
		reading.Go(func() { pages[i].watch(ctx, c, keys) })
	}
	go sendCampaign(ctx, t, c.origin+"/api/v1/campaign/"+campaign.ID+"/send", c.creds.APIKey, fmt.Sprintf(`{"segment_ids":[%q],"batch_size":50,"delay_between_batches":0.1}`, segment.ID))
	var stats struct {
		Data struct {
			Status                        string
			EmailsSent                    int `json:"emails_sent"`
			Delivered, Dismissed, Expired int
			Failed, Resumed               int
			UniqueOpens                   int `json:"unique_opens"`
			UniqueClicks                  int `json:"unique_clicks"`
		}
	}
	read := func() {
		c.call("GET", "/api/v1/campaign/"+campaign.ID+"/stats", "", &stats, "Authorization", "Bearer "+c.creds.APIKey)
	}
	rotations := 0
	c.killWhile(t, seed, rounds(3, 20), people, func() int {
		read()
		switch sent := stats.Data.EmailsSent; {
		case sent >= people/3 && rotations == 0:
			rotate("") // both secrets hold
			rotations++
		case sent >= people*2/3 && rotations == 1:
			rotate(`{"overlap_hours":0}`) // those before end at once
			rotations++
		}
		return stats.Data.EmailsSent
	})
	if rotations != 2 {
		t.Errorf("the secret was changed %d times", rotations)
	}
	eventually.Holds(t, "the campaign is sent", func() bool { read(); return stats.Data.Status == "sent" })
	if d := stats.Data; d.EmailsSent != people || d.Delivered != people || d.Failed != 0 || d.Resumed == 0 {
		t.Errorf("%+v", d)
	}
	for n := range people {
		var x inbox
		status, _ := c.page("GET", "/in-app/inbox", personToken(keys.get().Secret, first.Issuer, fmt.Sprintf("u%d", n), time.Hour), "", &x)
		if status != 200 || len(x.Messages) != 1 || x.Messages[0].Title != fmt.Sprintf("Hello P%d", n) || x.Unseen != 1 || x.Messages[0].Display != "banner" {
			t.Fatalf("person %d: %d %+v", n, status, x)
		}
	}
	if status, _ := c.page("GET", "/in-app/inbox", personToken(first.Secret, first.Issuer, "u0", time.Hour), "", nil); status != 401 {
		t.Errorf("a token of the secret that has ended is answered %d", status)
	}
	// Streams of secrets that have ended end, and what happens next comes by new ones.
	rotate(`{"overlap_hours":0}`)
	eventually.Succeeds(t, func() error {
		for _, p := range pages {
			if err := p.showsOnce(keys.get().Secret, "Hello"); err != nil {
				return err
			}
		}
		return nil
	})
	var flow struct {
		ID string `json:"_id"`
	}
	ok(t, c.surfaceA("POST", "/custom-flows", map[string]any{"name": "Thanks", "trigger": map[string]any{"type": "event", "event": "ordered"},
		"steps": []map[string]any{{"id": "thanks", "type": "in_app", "title": "Thanks {{first_name}}"}}}, &flow))
	ok(t, c.surfaceA("POST", "/custom-flows/"+flow.ID+"/publish", nil, nil))
	for _, p := range pages {
		c.event(fmt.Sprintf(`{"event_type":"ordered","user":{"external_id":%q}}`, p.person))
	}
	streams := 0
	eventually.Succeeds(t, func() error {
		streams = 0
		for _, p := range pages {
			if err := p.showsOnce(keys.get().Secret, "Thanks"); err != nil {
				return err
			}
			streams += p.streams
		}
		return nil
	})
	t.Logf("%d pages had %d streams", len(pages), streams)
	cancel()
	reading.Wait()
	c.stopAll()
}

// sharedKeys are the newest keys of in-app messages, for any goroutine.
type sharedKeys struct {
	mu   sync.Mutex
	keys inAppKeys
}

func (s *sharedKeys) set(keys inAppKeys) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys = keys
}

func (s *sharedKeys) get() inAppKeys {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys
}

// watchingPage is the page of a person that holds a stream open. As the script does, it opens
// another after an interruption, with a new token, and reads the inbox then.
type watchingPage struct {
	person string

	mu      sync.Mutex
	shown   map[string]string // titles by id
	secret  string            // of the open stream's token, "" while there is none
	streams int
	fault   error
}

func (p *watchingPage) watch(ctx context.Context, c *crashed, keys *sharedKeys) {
	for ctx.Err() == nil {
		k := keys.get()
		token := personToken(k.Secret, k.Issuer, p.person, time.Hour)
		_ = p.stream(ctx, c.reached(), token, k.Secret) // it ends at a kill, or with its secret
		time.Sleep(50 * time.Millisecond)               // a page does not hurry while there is no server
	}
}

func (p *watchingPage) stream(ctx context.Context, origin, token, secret string) error {
	req, err := http.NewRequestWithContext(ctx, "GET", origin+"/in-app/stream", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("a stream is answered %d", res.StatusCode)
	}
	var x inbox
	if err := readInbox(ctx, origin, token, &x); err != nil {
		return err
	}
	p.begin(secret)
	defer p.begin("")
	for _, m := range x.Messages {
		p.show(m.ID, m.Title)
	}
	came := map[string]bool{}
	kind := ""
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if text, is := strings.CutPrefix(lines.Text(), "event: "); is {
			kind = text
		}
		text, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is || kind != "message" {
			continue
		}
		var m struct{ ID, Title string }
		if err := json.Unmarshal([]byte(text), &m); err != nil || came[m.ID] {
			p.fails(fmt.Errorf("a stream shows %s, after %v: %v", text, came, err))
		}
		came[m.ID] = true
		p.show(m.ID, m.Title)
	}
	return nil
}

func (p *watchingPage) begin(secret string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.secret = secret; secret != "" {
		p.streams++
	}
}

func (p *watchingPage) show(id, title string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown[id] = title
}

func (p *watchingPage) fails(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = err
}

// showsOnce reports what is wrong, if not one message begins so and the open stream is that of a
// secret.
func (p *watchingPage) showsOnce(secret, begin string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, title := range p.shown {
		if title == begin+" P"+strings.TrimPrefix(p.person, "u") {
			n++
		}
	}
	if n != 1 || p.secret != secret || p.fault != nil {
		return fmt.Errorf("the page of %s shows %v, its stream is of the newest secret: %t, fault %v", p.person, p.shown, p.secret == secret, p.fault)
	}
	return nil
}

// TestInAppOnAPage: what a page may do with the token of a person, and what it may not.
func TestInAppOnAPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, dir)
	const site = "https://shop.example"
	var first, keys inAppKeys
	ok(t, s.surfaceA("POST", "/in-app/secret", nil, &first))
	ok(t, s.surfaceA("PUT", "/in-app/settings", map[string]any{"allowed_origins": []string{site}}, nil))
	for _, without := range []map[string]any{{}, {"allowed_origins": nil}} {
		if err := s.surfaceA("PUT", "/in-app/settings", without, nil); err == nil || !strings.Contains(err.Error(), "allowed_origins Field required") {
			t.Errorf("%v: %v", without, err)
		}
	}
	for _, id := range []string{"ann", "bob"} {
		s.event(fmt.Sprintf(`{"event_type":"seen","user":{"external_id":%q}}`, id))
	}
	var flow struct {
		ID string `json:"_id"`
	}
	ok(t, s.surfaceA("POST", "/custom-flows", map[string]any{"name": "Hello", "trigger": map[string]any{"type": "event", "event": "ordered"},
		"steps": []map[string]any{{"id": "hello", "type": "in_app", "title": "Order {{event.n}}", "body": "Thanks", "link": "https://shop.example/orders", "display": "modal", "priority": 3}}}, &flow))
	ok(t, s.surfaceA("POST", "/custom-flows/"+flow.ID+"/publish", nil, nil))
	ann, bob := personToken(first.Secret, first.Issuer, "ann", time.Hour), personToken(first.Secret, first.Issuer, "bob", time.Hour)

	// A stream gets the message at once.
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.origin+"/in-app/stream", nil)
	ok(t, err)
	req.Header.Set("Authorization", "Bearer "+ann)
	req.Header.Set("Origin", site)
	res, err := http.DefaultClient.Do(req)
	ok(t, err)
	defer res.Body.Close()
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("Access-Control-Allow-Origin") != site {
		t.Fatal(res.Status, res.Header)
	}
	lines := bufio.NewScanner(res.Body)
	next := func(want string) string {
		t.Helper()
		for lines.Scan() {
			if rest, is := strings.CutPrefix(lines.Text(), want); is {
				return rest
			}
		}
		t.Fatalf("the stream ended before %q: %v", want, lines.Err())
		return ""
	}
	next("event: unseen")
	if next("data: ") != `{"unseen":0}` {
		t.Error("the inbox is not empty")
	}
	s.event(`{"event_type":"ordered","user":{"external_id":"ann"},"properties":{"n":7}}`)
	next("event: message")
	if got := next("data: "); !strings.Contains(got, `"title":"Order 7"`) {
		t.Error(got)
	}

	var x inbox
	status, header := s.page("GET", "/in-app/inbox", ann, site, &x)
	if status != 200 || len(x.Messages) != 1 || x.Unseen != 1 || header.Get("Access-Control-Allow-Origin") != site || header.Get("Cache-Control") == "" {
		t.Fatal(status, x, header)
	}
	path := "/in-app/inbox/" + x.Messages[0].ID + "/"
	if status, _ := s.page("GET", "/in-app/inbox", bob, site, &x); status != 200 || len(x.Messages) != 0 {
		t.Error("another person's messages", status, x)
	}
	for name, c := range map[string]struct {
		method, path, token, origin string
		want                        int
	}{
		"no token":            {"GET", "/in-app/inbox", "", site, 401},
		"not a token":         {"GET", "/in-app/inbox", "x.y.z", site, 401},
		"expired":             {"GET", "/in-app/inbox", personToken(first.Secret, first.Issuer, "ann", -time.Hour), site, 401},
		"too long":            {"GET", "/in-app/inbox", personToken(first.Secret, first.Issuer, "ann", 48*time.Hour), site, 401},
		"another secret":      {"GET", "/in-app/inbox", personToken(first.Secret+"x", first.Issuer, "ann", time.Hour), site, 401},
		"another account":     {"GET", "/in-app/inbox", personToken(first.Secret, "acc_00000000000000a7", "ann", time.Hour), site, 401},
		"another origin":      {"GET", "/in-app/inbox", ann, "https://evil.example", 403},
		"limit":               {"GET", "/in-app/inbox?limit=0", ann, site, 400},
		"cursor":              {"GET", "/in-app/inbox?cursor=x", ann, site, 400},
		"another's message":   {"POST", path + "seen", bob, site, 404},
		"no profile":          {"POST", path + "seen", personToken(first.Secret, first.Issuer, "carl", time.Hour), site, 404},
		"no such message":     {"POST", "/in-app/inbox/x/seen", ann, site, 404},
		"no such deed":        {"POST", path + "read", ann, site, 404},
		"method":              {"GET", path + "seen", ann, site, 405},
		"preflight":           {"OPTIONS", "/in-app/inbox", "", site, 204},
		"a new inbox":         {"GET", "/in-app/inbox", personToken(first.Secret, first.Issuer, "carl", time.Hour), site, 200},
		"script":              {"GET", "/in-app/muster-inapp.js", "", site, 200},
		"stream without":      {"GET", "/in-app/stream", "", site, 401},
		"stream from another": {"GET", "/in-app/stream", ann, "https://evil.example", 403},
	} {
		if status, header := s.page(c.method, c.path, c.token, c.origin, nil); status != c.want {
			t.Errorf("%s: %d, want %d", name, status, c.want)
		} else if c.origin != site && header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: another origin may read it", name)
		}
	}
	for _, deed := range []string{"clicked", "dismissed", "dismissed", "seen", "clicked"} {
		want := 200
		if status, _ := s.page("POST", path+deed, ann, site, nil); status != want {
			t.Errorf("%s: %d", deed, status)
		}
	}
	if s.page("GET", "/in-app/inbox", ann, site, &x); len(x.Messages) != 0 {
		t.Errorf("a message that was put away: %+v", x)
	}
	for _, typ := range []string{"in_app_sent", "in_app_seen", "in_app_clicked", "in_app_dismissed"} {
		var segment struct {
			ID string `json:"_id"`
		}
		ok(t, s.surfaceA("POST", "/segments", map[string]any{"name": typ, "definition": map[string]any{"kind": "activity", "event": typ, "did": true}}, &segment))
		eventually.Holds(t, typ, func() bool {
			var got struct{ Count int }
			ok(t, s.surfaceA("GET", "/segments/"+segment.ID, nil, &got))
			return got.Count == 1
		})
	}

	// A browser's key is public: using it to join one's own id with the e-mail of a person on
	// file gives no access to their inbox.
	s.event(`{"event_type":"ordered","user":{"email":"eve@example.com"},"properties":{"n":9}}`)
	var source struct {
		Key string `json:"write_key"`
	}
	s.console("POST", "/sources", fmt.Sprintf(`{"name":"Site","kind":"browser","allowed_origins":[%q]}`, site), &source)
	if status, answer := s.track(source.Key, "/v1/identify", `{"userId":"mallory","traits":{"email":"eve@example.com"}}`, "Origin", site); status != 200 {
		t.Fatal(status, answer)
	}
	if status, _ := s.page("GET", "/in-app/inbox", personToken(first.Secret, first.Issuer, "mallory", time.Hour), site, &x); status != 200 || len(x.Messages) != 0 {
		t.Errorf("a claimed inbox: %d %+v", status, x)
	}

	// Two secrets hold while one takes the place of the other; a third ends the first.
	ok(t, s.surfaceA("POST", "/in-app/secret", nil, &keys))
	for _, token := range []string{ann, personToken(keys.Secret, keys.Issuer, "ann", time.Hour)} {
		if status, _ := s.page("GET", "/in-app/inbox", token, site, nil); status != 200 {
			t.Error("while the secret is rotated:", status)
		}
	}
	ok(t, s.surfaceA("POST", "/in-app/secret", map[string]any{"overlap_hours": 0}, &keys))
	if status, _ := s.page("GET", "/in-app/inbox", ann, site, nil); status != 401 {
		t.Error("after the overlap:", status)
	}
	if len(keys.Secrets) != 1 {
		t.Errorf("%+v", keys)
	}
	// The messages are kept.
	s.kill()
	s = serve(t, dir)
	s.event(`{"event_type":"ordered","user":{"external_id":"bob"},"properties":{"n":8}}`)
	bob = personToken(keys.Secret, keys.Issuer, "bob", time.Hour)
	eventually.Holds(t, "the message of a flow", func() bool { s.page("GET", "/in-app/inbox", bob, site, &x); return len(x.Messages) == 1 })
	s.stop()
}
