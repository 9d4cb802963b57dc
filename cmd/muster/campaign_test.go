package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/mail"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// relay is a real SMTP server that takes everything.
type relay struct {
	addr string

	mu struct {
		sync.Mutex
		byRecipient map[string][]string // Message-IDs
		received    int
	}
}

func newRelay(t *testing.T) *relay {
	t.Helper()
	r := &relay{}
	r.mu.byRecipient = map[string][]string{}
	r.addr = serveSMTP(t, func() smtp.Session { return &mailSession{take: r.take} })
	return r
}

// mailSession takes mails; take says what becomes of each.
type mailSession struct {
	to   string
	take func(to string, header mail.Header) error
}

func (s *mailSession) Mail(string, *smtp.MailOptions) error      { return nil }
func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error { s.to = to; return nil }
func (s *mailSession) Reset()                                    {}
func (s *mailSession) Logout() error                             { return nil }

func (s *mailSession) Data(in io.Reader) error {
	m, err := mail.ReadMessage(in)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, m.Body); err != nil {
		return err
	}
	return s.take(s.to, m.Header)
}

func (r *relay) take(to string, header mail.Header) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.received++
	r.mu.byRecipient[to] = append(r.mu.byRecipient[to], header.Get("Message-Id"))
	return nil
}

func (r *relay) received() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.received
}

// surfaceA calls the API with the first key; data is that of a success.
func (s *server) surfaceA(method, path string, body, data any) error {
	var in bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&in).Encode(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequest(method, s.origin+"/api/v1"+path, &in)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.creds.APIKey)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var e struct {
		Status, Message string
		Data            json.RawMessage
	}
	if err := json.NewDecoder(res.Body).Decode(&e); err != nil {
		return err
	}
	if res.StatusCode != 200 || e.Status != "success" {
		return fmt.Errorf("%s %s: %d %s %s", method, path, res.StatusCode, e.Status, e.Message)
	}
	if data == nil {
		return nil
	}
	return json.Unmarshal(e.Data, data)
}

// TestL1CampaignSurvivesKills sends a campaign through a real relay, with the
// process killed in the middle: everybody gets it, and only messages that were
// in flight may come twice, with the same Message-ID.
func TestL1CampaignSurvivesKills(t *testing.T) {
	testlevel.SkipQuick(t, "starts several servers")
	t.Parallel()
	people, kills := 1500, 2
	if testlevel.Long() {
		people, kills = 100_000, 3
	}
	if testlevel.Quick() {
		people, kills = 300, 1
	}
	dir := t.TempDir()
	relay := newRelay(t)
	args := []string{"--smtp", relay.addr, "--smtp-tls", "none"}
	s := serve(t, dir, args...)
	s.sendToAll()
	var session struct {
		Captured []string `json:"captured_channels"`
	}
	s.console("GET", "/session", "", &session)
	if have := strings.Join(session.Captured, " "); have != "sms whatsapp im push" {
		t.Errorf("with a relay %q are captured", have)
	}

	var rows bytes.Buffer
	for i := range people {
		fmt.Fprintf(&rows, `{"event_type":"signed_up","timestamp":%d,"user":{"email":"u%d@example.com","first_name":"P%d"}}`+"\n", time.Now().UnixMilli()-1000, i, i)
	}
	file := filepath.Join(dir, "people.jsonl")
	ok(t, os.WriteFile(file, rows.Bytes(), 0o600))
	if code, _, stderr := muster(t, "", "import", "--to", s.origin, "--credentials", filepath.Join(dir, "credentials.json"), file); code != 0 {
		t.Fatalf("import: %s", stderr)
	}
	var segment struct {
		ID string `json:"_id"`
	}
	s.console("POST", "/segments", `{"name":"all","definition":{"kind":"attribute","field":"email","op":"exists"}}`, &segment)
	eventually.Holds(t, "the segment is live", func() bool {
		var x struct{ Status string }
		s.console("GET", "/segments/"+segment.ID, "", &x)
		return x.Status == "live"
	})
	var campaign struct {
		ID string `json:"_id"`
	}
	ok(t, s.surfaceA("POST", "/campaign", map[string]any{
		"name": "news", "channel": 2, "type": 1, "date": "2026-01-01T00:00:00Z", "subject": "Hello {{first_name}}",
		"body": `<p>Hi {{first_name|friend}}, <a href="https://example.com/a?u={{email}}">look</a></p>`, "sender": "news@muster.local",
	}, &campaign))
	send := func() <-chan error {
		out := make(chan error, 1)
		go func() {
			out <- s.surfaceA("POST", "/campaign/"+campaign.ID+"/send", map[string]any{"segment_ids": []string{segment.ID}, "batch_size": 1000, "delay_between_batches": 0.1}, nil)
		}()
		return out
	}
	sent := send()
	for kill := range kills {
		for wanted := (kill + 1) * people / (kills + 1); relay.received() < wanted; {
			before := relay.received()
			eventually.Holds(t, "more messages come", func() bool {
				select {
				case err := <-sent:
					t.Fatalf("the send answered early: %v\n%s", err, s.log())
				default:
				}
				return relay.received() > before
			})
		}
		t.Logf("kill after %d messages, peak memory %s", relay.received(), s.peakMemory())
		s.kill()
		if kill == 0 {
			<-sent // the requests after it reached no server
		}
		s = serve(t, dir, args...)
	}
	var stats struct {
		Status     string
		EmailsSent int `json:"emails_sent"`
		Failed     int
		Resumed    int
		Remaining  int
	}
	for stats.Status != "sent" {
		before := relay.received()
		eventually.Holds(t, "more messages come, or the campaign is sent", func() bool {
			s.console("GET", "/campaigns/"+campaign.ID, "", &stats) // a key may ask 120 times a minute only
			return stats.Status == "sent" || relay.received() > before
		})
	}
	ok(t, s.surfaceA("GET", "/campaign/"+campaign.ID+"/stats", nil, &stats))
	t.Logf("%d messages to %d people, peak memory %s", relay.received(), people, s.peakMemory())
	if stats.EmailsSent != people || stats.Failed != 0 || stats.Resumed != kills {
		t.Errorf("stats %+v", stats)
	}
	relay.mu.Lock()
	defer relay.mu.Unlock()
	if len(relay.mu.byRecipient) != people {
		t.Errorf("%d of %d people got the message", len(relay.mu.byRecipient), people)
	}
	for to, ids := range relay.mu.byRecipient {
		for _, id := range ids {
			if id != ids[0] || id == "" {
				t.Errorf("%s got messages with the ids %v", to, ids)
			}
		}
	}
	// Eight workers: that many may be in flight at a kill.
	if twice := relay.mu.received - people; twice > 8*kills {
		t.Errorf("%d messages came twice, %d may", twice, 8*kills)
	}
}

// TestL1ScheduledCampaignSurvivesAKill: a campaign that falls due while the process is
// dead is sent after the next start, once.
func TestL1ScheduledCampaignSurvivesAKill(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	dir := t.TempDir()
	relay := newRelay(t)
	args := []string{"--smtp", relay.addr, "--smtp-tls", "none"}
	s := serve(t, dir, args...)
	var list, campaign struct {
		ID     string `json:"_id"`
		Status string
	}
	ok(t, s.surfaceA("POST", "/lists", map[string]any{"name": "readers"}, &list))
	ok(t, s.surfaceA("POST", "/lists/"+list.ID+"/contacts", map[string]any{"email": "ann@example.com"}, nil))
	at := time.Now().Add(8 * time.Second)
	ok(t, s.surfaceA("POST", "/campaign", map[string]any{
		"name": "news", "channel": 2, "type": 1, "date": at.Format(time.RFC3339Nano), "subject": "Hello", "body": "<p>Hi</p>", "list_id": []string{list.ID},
	}, &campaign))
	s.kill()
	if campaign.Status != "scheduled" || time.Now().After(at) || relay.received() != 0 {
		t.Fatalf("%+v, %d messages at the kill", campaign, relay.received())
	}
	<-time.After(time.Until(at)) // it falls due while the process is dead
	s = serve(t, dir, args...)
	eventually.Succeeds(t, func() error {
		if s.console("GET", "/campaigns/"+campaign.ID, "", &campaign); campaign.Status != "sent" {
			return fmt.Errorf("the campaign is %s\n%s", campaign.Status, s.log())
		}
		return nil
	})
	s.stop()
	s = serve(t, dir, args...)
	ok(t, s.surfaceA("GET", "/campaign/"+campaign.ID, nil, &campaign))
	if campaign.Status != "sent" || relay.received() != 1 {
		t.Errorf("%+v, %d messages", campaign, relay.received())
	}
	s.stop()
}

var highWater = regexp.MustCompile(`VmHWM:\s*(\d+ kB)`)

// peakMemory is the server's, where the system tells.
func (s *server) peakMemory() string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Cmd.Process.Pid))
	if err != nil {
		return "unknown"
	}
	if m := highWater.FindSubmatch(b); m != nil {
		return strings.TrimSpace(string(m[1]))
	}
	return "unknown"
}

// sendToAll lets the company send to people who never subscribed, such as those whom
// events and imports make.
func (s *server) sendToAll() {
	s.t.Helper()
	settings := map[string]any{}
	s.console("GET", "/settings", "", &settings)
	settings["require_opt_in"] = false
	b, err := json.Marshal(settings)
	ok(s.t, err)
	s.console("PUT", "/settings", string(b), nil)
}
