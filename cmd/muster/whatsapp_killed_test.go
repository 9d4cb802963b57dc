package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/api"
	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// whatsAppCloud takes templates as Meta's Cloud API does. Every eighth is answered with an
// error that passes at first.
type whatsAppCloud struct {
	url string

	mu struct {
		sync.Mutex
		ids   idCounts // by recipient and template: how often each message id came
		fault string
	}
}

func newWhatsAppCloud(t *testing.T) *whatsAppCloud {
	t.Helper()
	s := &whatsAppCloud{}
	s.mu.ids = idCounts{}
	s.url = fakeServer(t, s)
	return s
}

func (s *whatsAppCloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct {
		To       string
		Type     string
		ID       string `json:"biz_opaque_callback_data"`
		Template struct{ Name string }
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil || json.Unmarshal(text, &m) != nil {
		return // cut off by a kill
	}
	sum := fnv.New32a()
	io.WriteString(sum, m.ID)
	time.Sleep(3 * time.Millisecond) // so that a kill finds messages under way
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.Type != "template" || m.ID == "" || r.URL.Path != "/v21.0/1062840/messages" || r.Header.Get("Authorization") != "Bearer cloud-token" {
		s.mu.fault = fmt.Sprintf("%s: %s", r.URL.Path, text)
	}
	key := m.To + " " + m.Template.Name
	if s.mu.ids.add(key, m.ID) == 1 && sum.Sum32()%8 == 0 {
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, `{"error":{"message":"try again","code":131000}}`)
		return
	}
	io.WriteString(w, `{"messaging_product":"whatsapp","messages":[{"id":"wamid.1"}]}`)
}

// reached is how many messages went to an address.
func (s *whatsAppCloud) reached() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.ids)
}

// TestL1WhatsAppSurvivesKills kills the process while a campaign and a flow send WhatsApp
// messages: each reaches all subscribers and no other person, and what comes again
// does so under its id.
func TestL1WhatsAppSurvivesKills(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	inModes(t, whatsAppSurvivesKills)
}

func whatsAppSurvivesKills(t *testing.T, args []string) {
	t.Parallel()
	const seed, people, unsubscribed = 5, 150, 10
	t.Logf("seed %d", seed)
	kills := rounds(3, 20)
	cloud := newWhatsAppCloud(t)
	c := crash(t, append(args, "--allow-private-webhooks", "--checkpoint-interval", "300ms")...)
	c.console("PUT", "/message-providers/whatsapp", fmt.Sprintf(`{"preset":"whatsapp_cloud","version":"v21.0","phone_number_id":"1062840","token":"cloud-token","base_url":%q}`, cloud.url), nil)
	var made struct {
		ID string `json:"_id"`
	}
	phone := func(n int) string { return fmt.Sprintf("+4917000%05d", n) }
	for n := range people + unsubscribed {
		c.console("POST", "/contacts", fmt.Sprintf(`{"phone":%q}`, phone(n)), &made)
		c.console("POST", "/profiles/"+made.ID+"/consent", fmt.Sprintf(`{"channel":"whatsapp","status":%q}`, map[bool]string{true: "subscribed", false: "unsubscribed"}[n < people]), nil)
	}
	c.console("POST", "/flows", `{"name":"f","trigger":{"type":"event","event":"paid"},"steps":[{"id":"w","type":"whatsapp","template":"receipt","language":"en"}]}`, &made)
	c.console("POST", "/flows/"+made.ID+"/publish", "", nil)
	c.console("POST", "/campaigns", `{"name":"c","channel":2,"type":3,"service":"whatsapp","date":"2026-01-01","whatsapp":{"template":"sale","language":"en"}}`, &made)

	ctx := t.Context()
	go sendCampaign(ctx, t, c.origin+api.Prefix+"/campaigns/"+made.ID+"/send", c.token, `{"all_contacts":true,"batch_size":20,"delay_between_batches":0.1}`)
	paid := make(chan error, 1)
	go func() {
		for n := range people + unsubscribed {
			var a struct{ Success bool }
			err := c.until(ctx, http.StatusAccepted, "/api/v1/events", map[string]any{"event_type": "paid", "idempotency_key": phone(n), "user": map[string]any{"phone": phone(n)}}, &a, "X-App-Id", c.creds.AppID, "X-App-Secret", c.creds.AppSecret)
			if err != nil {
				paid <- err
				return
			}
		}
		paid <- nil
	}()
	c.killWhile(t, seed, kills, people, cloud.reached)
	ok(t, <-paid)
	var stats struct {
		Data struct {
			Status     string
			EmailsSent int `json:"emails_sent"`
			Resumed    int
			Skipped    map[string]int
		}
	}
	eventually.Holds(t, "the campaign is sent", func() bool {
		c.call("GET", "/api/v1/campaign/"+made.ID+"/stats", "", &stats, "Authorization", "Bearer "+c.creds.APIKey)
		return stats.Data.Status == "sent"
	})
	eventually.Holds(t, "all messages went out", func() bool { return cloud.reached() == 2*people })
	c.stop()
	if x := stats.Data; x.EmailsSent != people || x.Skipped["unsubscribed"] != unsubscribed || x.Resumed == 0 {
		t.Errorf("%+v", x)
	}
	cloud.mu.Lock()
	defer cloud.mu.Unlock()
	if cloud.mu.fault != "" {
		t.Error(cloud.mu.fault)
	}
	again, holder := 0, map[string]string{}
	for n := range people {
		for _, template := range []string{"sale", "receipt"} {
			key := phone(n) + " " + template
			if len(cloud.mu.ids[key]) != 1 {
				t.Errorf("%s came under %d ids", key, len(cloud.mu.ids[key]))
			}
			for id, times := range cloud.mu.ids[key] {
				again += times - 1
				if other := holder[id]; other != "" {
					t.Errorf("%s and %s have one id", key, other)
				}
				holder[id] = key
			}
		}
	}
	t.Logf("%d messages came again", again)
}
