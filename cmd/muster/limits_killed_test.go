package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// textCounter takes texts and notes when each message first came to whom.
type textCounter struct {
	sync.Mutex
	first map[string]map[string]time.Time // by recipient and id
}

func (s *textCounter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct{ To, ID string }
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil || json.Unmarshal(text, &m) != nil {
		return // cut off by a kill
	}
	s.Lock()
	if s.first[m.To] == nil {
		s.first[m.To] = map[string]time.Time{}
	}
	if s.first[m.To][m.ID].IsZero() {
		s.first[m.To][m.ID] = time.Now()
	}
	s.Unlock()
	time.Sleep(20 * time.Millisecond) // so that a kill finds messages that were taken and not answered
	_, _ = io.WriteString(w, `{}`)
}

func (s *textCounter) people() int {
	s.Lock()
	defer s.Unlock()
	return len(s.first)
}

// TestL1LimitsSurviveKills kills the process while two campaigns go out to the same people, at a
// rate, under a cap of one message a day, and while it is night for some of them: no person gets
// two messages, none goes out faster than the rate, and those whose night it is wait still.
func TestL1LimitsSurviveKills(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	inModesAndCluster(t, limitsSurviveKills)
}

func limitsSurviveKills(t *testing.T, start start) {
	t.Parallel()
	const seed, people, nightly, perMinute = 9, 100, 20, 600
	t.Logf("seed %d", seed)
	kills := rounds(3, 20)
	provider := &textCounter{first: map[string]map[string]time.Time{}}
	c := start(t, plainly, "--allow-private-webhooks", "--checkpoint-interval", "300ms")
	c.console("PUT", "/message-providers/sms", fmt.Sprintf(`{"url":%q,"format":"json","body":"{\"to\":\"{{to}}\",\"id\":\"{{id}}\"}","from":"Shop"}`, fakeServer(t, provider)), nil)
	phone := func(n int) string { return fmt.Sprintf("+4917000%05d", n) }
	for n := range people + nightly {
		c.console("POST", "/contacts", fmt.Sprintf(`{"phone":%q}`, phone(n)), nil)
		if n >= people {
			c.call("POST", "/api/v1/events", fmt.Sprintf(`{"event_type":"seen","user":{"phone":%q,"geo":{"timezone":"UTC"}}}`, phone(n)), nil, "X-App-Id", c.creds.AppID, "X-App-Secret", c.creds.AppSecret)
		}
	}
	var settings struct{ Data map[string]json.RawMessage }
	c.console("GET", "/settings", "", &settings.Data)
	now := time.Now().UTC()
	settings.Data["sending_limits"] = json.RawMessage(fmt.Sprintf(`{"timezone":"Pacific/Fiji","quiet_hours":{"from":%q,"to":%q},"frequency_caps":[{"messages":1,"hours":24}]}`,
		now.Add(-2*time.Hour).Format("15:04"), now.Add(4*time.Hour).Format("15:04")))
	body, err := json.Marshal(settings.Data)
	if err != nil {
		t.Fatal(err)
	}
	c.console("PUT", "/settings", string(body), nil)
	var ids [2]string
	for i := range ids {
		var made struct {
			ID string `json:"_id"`
		}
		c.console("POST", "/campaigns", fmt.Sprintf(`{"name":"c","channel":2,"type":2,"date":"2026-01-01","body":"b","rate":{"messages":%d,"per":"minute"}}`, perMinute), &made)
		ids[i] = made.ID
	}
	began := time.Now()
	for _, id := range ids {
		go sendCampaign(t.Context(), t, c.origin+"/api/v1/campaign/"+id+"/send", c.creds.APIKey, `{"all_contacts":true,"batch_size":15,"delay_between_batches":0.1}`)
	}
	c.killWhile(t, seed, kills, people, provider.people)
	var stats struct {
		Data struct {
			Status     string
			EmailsSent int `json:"emails_sent"`
			Waiting    int
			Skipped    map[string]int
		}
	}
	sent, capped := 0, 0
	read := func(id string) {
		c.call("GET", "/api/v1/campaign/"+id+"/stats", "", &stats, "Authorization", "Bearer "+c.creds.APIKey)
	}
	for _, id := range ids {
		eventually.Holds(t, "the campaign waits for the morning", func() bool { read(id); return stats.Data.Status == "waiting" })
	}
	took := time.Since(began)
	c.crashOnce()
	for _, id := range ids {
		read(id)
		if stats.Data.Status != "waiting" || stats.Data.Waiting != nightly {
			t.Errorf("%+v", stats.Data)
		}
		sent, capped = sent+stats.Data.EmailsSent, capped+stats.Data.Skipped["frequency_cap"]
	}
	c.console("DELETE", "/campaigns/"+ids[0]+"/schedule", "", nil)
	if read(ids[0]); stats.Data.Status != "stopped" || stats.Data.Waiting != 0 {
		t.Errorf("cancelled: %+v", stats.Data)
	}
	c.stopAll()
	if sent != people || capped != people {
		t.Errorf("%d were sent, %d were over the cap, expected %d of each", sent, capped, people)
	}
	for n := range people + nightly {
		if got := len(provider.first[phone(n)]); n < people && got != 1 || n >= people && got != 0 {
			t.Errorf("person %d got %d messages", n, got)
		}
	}
	// Two campaigns at their rates: what went out faster did so without a claim.
	if most := 2 * (int(took.Milliseconds())*perMinute/60_000 + perMinute/60 + 1); people > most {
		t.Errorf("%d messages went out in %s, of at most %d", people, took, most)
	}
}
