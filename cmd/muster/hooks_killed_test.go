package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// entrySink takes deliveries of segment.entered. Every eighth is answered 500 at first.
type entrySink struct {
	url string

	mu struct {
		sync.Mutex
		ids    idCounts          // by profile: how often each webhook-id came
		taken  map[string]bool   // profiles of deliveries that were answered 200
		bodies map[string]string // by webhook-id
		fault  string
	}
}

func newEntrySink(t *testing.T) *entrySink {
	t.Helper()
	s := &entrySink{}
	s.mu.ids, s.mu.taken, s.mu.bodies = idCounts{}, map[string]bool{}, map[string]string{}
	s.url = fakeServer(t, s)
	return s
}

func (s *entrySink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Type string
		Data struct {
			ProfileID string `json:"profile_id"`
		}
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil || json.Unmarshal(text, &body) != nil {
		return // cut off by a kill
	}
	id, who := r.Header.Get("webhook-id"), body.Data.ProfileID
	sum := fnv.New32a()
	io.WriteString(sum, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if body.Type != "segment.entered" || who == "" || id == "" {
		s.mu.fault = fmt.Sprintf("%q: %s", id, text)
	}
	if old := s.mu.bodies[id]; old != "" && old != string(text) {
		s.mu.fault = fmt.Sprintf("%s came with\n%s\nand with\n%s", id, old, text)
	}
	s.mu.bodies[id] = string(text)
	if s.mu.ids.add(who, id) == 1 && sum.Sum32()%8 == 0 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	s.mu.taken[who] = true
}

func (s *entrySink) accepted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.taken)
}

// TestL1UnorderedWebhooksSurviveKills kills the process while deliveries of an endpoint
// without order are under way, refused and tried again: each event that was acknowledged
// reaches the endpoint, under one id and with one body, however often it comes.
func TestL1UnorderedWebhooksSurviveKills(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	const seed = 3
	t.Logf("seed %d", seed)
	kills := rounds(3, 20)
	sink := newEntrySink(t)
	c := crash(t, "--allow-private-webhooks", "--checkpoint-interval", "300ms")
	var made struct {
		ID string `json:"_id"`
	}
	c.console("POST", "/segments", `{"name":"carts","definition":{"kind":"activity","event":"cart_filled"}}`, &made)
	c.untilLive(made.ID)
	c.console("POST", "/webhooks", fmt.Sprintf(`{"url":%q,"events":["segment.entered"]}`, sink.url), &made)
	var hook struct {
		Ordered   bool
		Delivered int
		Waiting   int
		Failing   int
		Dropped   int
	}
	if c.console("GET", "/webhooks/"+made.ID, "", &hook); hook.Ordered {
		t.Fatal("new endpoints are ordered")
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(kills)*20*time.Second)
	defer cancel()
	finish := make(chan struct{})
	load, ctx := errgroup.WithContext(ctx)
	people := make([]map[string]bool, 3) // ids of profiles that were acknowledged
	var came atomic.Int64
	for w := range people {
		people[w] = map[string]bool{}
		load.Go(func() error {
			for n := 0; ; n++ {
				select {
				case <-finish:
					return nil
				default:
				}
				key := fmt.Sprintf("p%d-%d", w, n)
				var a struct {
					Success   bool
					ProfileID string `json:"profile_id"`
				}
				err := c.until(ctx, http.StatusAccepted, "/api/v1/events", map[string]any{"event_type": "cart_filled", "idempotency_key": key, "user": map[string]any{"external_id": key}}, &a,
					"X-App-Id", c.creds.AppID, "X-App-Secret", c.creds.AppSecret)
				if err != nil || !a.Success {
					return fmt.Errorf("%s: %+v, %w", key, a, err)
				}
				people[w][a.ProfileID] = true
				came.Add(1)
			}
		})
	}
	c.killAtRandom(ctx, t, seed, kills, "people come and are delivered", func(kill int) bool {
		return came.Load() >= int64(20*(kill+1)) && sink.accepted() >= 10*(kill+1)
	})
	close(finish)
	ok(t, load.Wait())
	eventually.Succeeds(t, func() error {
		if c.console("GET", "/webhooks/"+made.ID, "", &hook); hook.Waiting != 0 {
			return fmt.Errorf("deliveries are still waiting: %+v\n%s", hook, c.log())
		}
		return nil
	})
	if hook.Dropped != 0 {
		t.Errorf("%+v", hook)
	}
	sink.mu.Lock()
	defer sink.mu.Unlock()
	if sink.mu.fault != "" {
		t.Error(sink.mu.fault)
	}
	all, again := 0, 0
	for _, some := range people {
		for id := range some {
			all++
			if !sink.mu.taken[id] {
				t.Errorf("the entry of %s was acknowledged and never delivered", id)
			}
			if n := len(sink.mu.ids[id]); n > 1 {
				t.Errorf("the entry of %s came under %d ids", id, n)
			}
			for _, n := range sink.mu.ids[id] {
				again += n - 1
			}
		}
	}
	t.Logf("%d entries, %d deliveries came again", all, again)
	if all < 20*kills {
		t.Errorf("only %d people came in", all)
	}
	c.stop()
}
