package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// textProviders takes texts of two channels, by path. One says of every fourth number that
// it cannot be reached, the other of the next. Of every eighth message that it took, the
// first says so when the message comes again.
type textProviders struct {
	url string

	mu struct {
		sync.Mutex
		accepted idCounts // by channel and recipient: how often each message id came
		tried    int
	}
}

func newTextProviders(t *testing.T) *textProviders {
	t.Helper()
	s := &textProviders{}
	s.mu.accepted = idCounts{}
	s.url = fakeServer(t, s)
	return s
}

// config is the configuration of a provider of a channel.
func (s *textProviders) config(channel string) string {
	return fmt.Sprintf(`{"url":"%s/%s","format":"json","body":"{\"to\":\"{{to}}\",\"id\":\"{{id}}\"}","from":"Shop","code_path":"code","codes":{"7":"permanent"}}`, s.url, channel)
}

// personOf is the number of a person in their phone.
func personOf(phone string) (n int) {
	_, _ = fmt.Sscanf(phone, "+4917000%d", &n)
	return n
}

func (s *textProviders) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m struct{ To, ID string }
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil || json.Unmarshal(text, &m) != nil {
		return // cut off by a kill
	}
	taken := s.take(strings.TrimPrefix(r.URL.Path, "/"), m.To, m.ID)
	time.Sleep(20 * time.Millisecond) // so that a kill finds messages that were taken and not answered
	if !taken {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"code":7}`)
		return
	}
	io.WriteString(w, `{}`)
}

func (s *textProviders) take(channel, to, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.tried++
	key := channel + " " + to
	if n := personOf(to); channel == "im" && n%8 == 0 && len(s.mu.accepted[key]) > 0 || n%4 == map[string]int{"im": 1, "sms": 2}[channel] {
		return false
	}
	s.mu.accepted.add(key, id)
	return true
}

func (s *textProviders) triedSoFar() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.tried
}

// TestL1OmniChannelSurvivesKills kills the process while a campaign goes out on three
// channels, where some people are reached on the second or third alone: no person gets it
// on two channels or under two ids, and sent again it reaches those for whom a kill came
// between two channels.
func TestL1OmniChannelSurvivesKills(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	inModes(t, omniSurvivesKills)
}

func omniSurvivesKills(t *testing.T, args []string) {
	t.Parallel()
	const seed, people, unsubscribed = 7, 120, 8
	t.Logf("seed %d", seed)
	kills := rounds(3, 20)
	providers, mails := newTextProviders(t), newRelay(t)
	c := crash(t, append(args, "--allow-private-webhooks", "--checkpoint-interval", "300ms", "--smtp", mails.addr, "--smtp-tls", "none")...)
	for _, channel := range []string{"im", "sms"} {
		c.console("PUT", "/message-providers/"+channel, providers.config(channel), nil)
	}
	var made struct {
		ID string `json:"_id"`
	}
	phone := func(n int) string { return fmt.Sprintf("+4917000%05d", n) }
	mail := func(n int) string { return fmt.Sprintf("p%d@people.example", n) }
	for n := range people + unsubscribed {
		c.console("POST", "/contacts", fmt.Sprintf(`{"phone":%q,"email":%q}`, phone(n), mail(n)), &made)
		consent := func(channel string, subscribed bool) {
			c.console("POST", "/profiles/"+made.ID+"/consent", fmt.Sprintf(`{"channel":%q,"status":%q}`, channel, map[bool]string{true: "subscribed", false: "unsubscribed"}[subscribed]), nil)
		}
		consent("im", n < people && n%4 < 2)
		consent("sms", n < people && n%4 < 3)
		consent("email", n < people)
	}
	c.console("POST", "/campaigns", `{"name":"c","channel":1,"subject":"s","body":"<p>b</p>","sender":"news@muster.local","channels":[{"channel":"im","body":"b"},{"channel":"sms","body":"b"},{"channel":"email"}]}`, &made)

	ctx := t.Context()
	send := func(origin string) {
		sendCampaign(ctx, t, origin+"/api/v1/campaign/"+made.ID+"/send", c.creds.APIKey, `{"all_contacts":true,"batch_size":15,"delay_between_batches":0.1}`)
	}
	go send(c.origin) // a kill cuts the answer off
	c.killWhile(t, seed, kills, people, providers.triedSoFar)
	var stats struct {
		Data struct {
			Status     string
			EmailsSent int `json:"emails_sent"`
			Resumed    int
		}
	}
	sent := func() bool {
		c.call("GET", "/api/v1/campaign/"+made.ID+"/stats", "", &stats, "Authorization", "Bearer "+c.creds.APIKey)
		return stats.Data.Status == "sent"
	}
	eventually.Holds(t, "the campaign is sent", sent)
	if stats.Data.Resumed == 0 {
		t.Errorf("nothing was resumed: %+v", stats.Data)
	}
	// reached is by which channels a person got the campaign; again counts the texts that
	// came more than once.
	again := 0
	reached := func(n int) (channels []string) {
		providers.mu.Lock()
		defer providers.mu.Unlock()
		mails.mu.Lock()
		defer mails.mu.Unlock()
		ids := map[string]int{}
		for _, id := range mails.mu.byRecipient[mail(n)] {
			ids[id]++
		}
		for channel, ids := range map[string]map[string]int{"im": providers.mu.accepted["im "+phone(n)], "sms": providers.mu.accepted["sms "+phone(n)], "email": ids} {
			if len(ids) > 0 {
				channels = append(channels, channel)
			}
			if len(ids) > 1 {
				t.Errorf("%s came to person %d under %d ids", channel, n, len(ids))
			}
			for _, times := range ids {
				again += times - 1
			}
		}
		return channels
	}
	for n := range people {
		if got := reached(n); len(got) > 1 {
			t.Errorf("person %d was reached by %q", n, got)
		}
	}
	left := people - stats.Data.EmailsSent
	send(c.origin)
	eventually.Holds(t, "the campaign is sent again", sent)
	c.stop()
	if stats.Data.EmailsSent != people {
		t.Errorf("%+v", stats.Data)
	}
	again = 0
	for n := range people + unsubscribed {
		got, want := reached(n), []string{"im", "sms", "email", "email"}[n%4]
		switch {
		case n >= people && len(got) > 0:
			t.Errorf("person %d, who opted out, was reached by %q", n, got)
		case n < people && !slices.Contains(got, want) || len(got) > 1 && n%8 != 0:
			t.Errorf("person %d was reached by %q, expected %s", n, got, want)
		}
	}
	t.Logf("%d texts came again, %d people were reached by the second send", again, left)
}
