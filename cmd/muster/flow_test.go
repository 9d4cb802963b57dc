package main

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/internal/testlevel"
)

// hookSink takes the calls of flows. Every eighth id is answered 500 at first.
type hookSink struct {
	url string

	mu struct {
		sync.Mutex
		calls map[string]map[string][]taking // by flow/step/profile/key, then by webhook-id
	}
}

// taking is one arrival of a call, and whether it was answered that it is taken.
type taking struct {
	at time.Time
	ok bool
}

func newHookSink(t *testing.T) *hookSink {
	t.Helper()
	s := &hookSink{}
	s.mu.calls = map[string]map[string][]taking{}
	s.url = fakeServer(t, s)
	return s
}

func (s *hookSink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Profile, Key string }
	if json.NewDecoder(io.LimitReader(r.Body, 1<<20)).Decode(&body) != nil {
		return // cut off by a kill
	}
	id := r.Header.Get("webhook-id")
	sum := fnv.New32a()
	io.WriteString(sum, id)
	what := strings.TrimPrefix(r.URL.Path, "/") + "/" + body.Profile + "/" + body.Key
	s.mu.Lock()
	defer s.mu.Unlock()
	byID := s.mu.calls[what]
	if byID == nil {
		byID = map[string][]taking{}
		s.mu.calls[what] = byID
	}
	refused := len(byID[id]) == 0 && sum.Sum32()%8 == 0
	byID[id] = append(byID[id], taking{time.Now(), !refused})
	if refused {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// flowPerson is a person whose every request was acknowledged.
type flowPerson struct {
	external, email, profile string
	gold                     bool
}

// TestF1L1FlowsSurviveKills kills the process while events, calls and time take
// people through flows. Everybody whose event was acknowledged is enrolled once
// (L1), each step's effect is intended once, and what comes again does so under
// its id, and only if it was not taken or a kill came just then (F1). A longer
// run with more kinds of flows is `go run ./bench crash --flows`.
func TestF1L1FlowsSurviveKills(t *testing.T) {
	testlevel.SkipQuick(t, "kills many processes")
	t.Parallel()
	inModes(t, flowsSurviveKills)
}

func flowsSurviveKills(t *testing.T, args []string) {
	t.Parallel()
	kills := 3
	if testlevel.Long() {
		kills = 30
	}
	if args != nil && kills == 3 {
		kills = 1 // the other mode has had the rest
	}
	const seed = 1
	t.Logf("seed %d", seed)
	relay, sink := newRelay(t), newHookSink(t)
	c := crash(t, append(args, "--smtp", relay.addr, "--smtp-tls", "none", "--allow-private-webhooks", "--checkpoint-interval", "300ms")...)
	c.sendToAll()
	ids := makeFlows(c.server, sink.url)

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute+time.Duration(kills)*20*time.Second)
	defer cancel()
	finish := make(chan struct{})
	load, ctx := errgroup.WithContext(ctx)
	people := make([][]flowPerson, 3)
	var came atomic.Int64
	for w := range people {
		load.Go(func() error {
			for n := 0; ; n++ {
				select {
				case <-finish:
					return nil
				default:
				}
				p, err := c.enrolPerson(ctx, ids["call"], fmt.Sprintf("p%d-%d", w, n), n%2 == 0)
				if err != nil {
					return err
				}
				people[w] = append(people[w], p)
				came.Add(1)
			}
		})
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	for i := range kills {
		time.Sleep(200*time.Millisecond + time.Duration(rng.Int64N(int64(700*time.Millisecond)))) // the moment of a kill is random
		eventually.Holds(t, "people come", func() bool { return ctx.Err() != nil || came.Load() >= int64(5*(i+1)) })
		if ctx.Err() != nil {
			break // a person's request was refused
		}
		c.crashOnce()
	}
	close(finish)
	ok(t, load.Wait())
	c.drain(ids)

	all := slices.Concat(people...)
	if len(all) < 5*kills {
		t.Errorf("only %d people came in", len(all))
	}
	checkFlows(t, c.server, relay, sink, all, ids, c.kills)
}

// makeFlows makes the flows and takes them live; it returns their ids by name.
func makeFlows(s *server, sink string) map[string]string {
	s.t.Helper()
	ids := map[string]string{}
	var made struct {
		ID string `json:"_id"`
	}
	s.console("POST", "/segments", `{"name":"carts","definition":{"kind":"activity","event":"cart_filled","window":{"last_days":1}}}`, &made)
	segment := made.ID
	hook := func(flow, next string) string {
		return fmt.Sprintf(`{"id":"hook","type":"webhook","url":"%s/%s/hook","body":{"profile":"{{profile_id}}","key":"{{event.key}}"},"next":%s}`, sink, flow, next)
	}
	for _, f := range []struct{ name, trigger, reentry, steps string }{
		{"order", `{"type":"event","event":"order_placed"}`, "once",
			`{"id":"tag","type":"tag","add":["customer"],"next":"wait"},{"id":"wait","type":"wait","seconds":1,"next":"gold"},
			{"id":"gold","type":"condition","if":{"kind":"attribute","field":"attributes.tier","op":"=","value":"gold"},"yes":"mail","no":"hook"},
			{"id":"mail","type":"email","subject":"Thank you","body":"<p>Hello</p>","next":"hook"},` + hook("order", "null")},
		{"cart", `{"type":"segment_entered","segment_id":"` + segment + `"}`, "once",
			`{"id":"wait","type":"wait","seconds":1,"next":"hook"},` + hook("cart", "null")},
		{"visit", `{"type":"event","event":"visit"}`, "after_exit", hook("visit", "null")},
		{"call", `{"type":"api"}`, "after_exit", hook("call", `"wait"`) + `,{"id":"wait","type":"wait","seconds":1,"next":null}`},
		{"follow", `{"type":"event","event":"flow_completed","where":[{"property":"flow_name","op":"=","value":"order"}]}`, "once", hook("follow", "null")},
	} {
		s.console("POST", "/flows", fmt.Sprintf(`{"name":%q,"trigger":%s,"reentry":%q,"steps":[%s]}`, f.name, f.trigger, f.reentry, f.steps), &made)
		ids[f.name] = made.ID
		var live struct{ Status string }
		if s.console("POST", "/flows/"+made.ID+"/publish", "", &live); live.Status != "live" {
			s.t.Fatalf("flow %s is %s", f.name, live.Status)
		}
	}
	return ids
}

// enrolPerson sends a person's events and calls that enrol in every flow, each until
// it is acknowledged. The second visit may find the first enrolment in progress.
func (c *crashed) enrolPerson(ctx context.Context, callFlow, name string, gold bool) (flowPerson, error) {
	p := flowPerson{external: name, email: name + "@example.com", gold: gold}
	tier := "plain"
	if gold {
		tier = "gold"
	}
	app := []string{"X-App-Id", c.creds.AppID, "X-App-Secret", c.creds.AppSecret}
	for n, typ := range []string{"visit", "order_placed", "cart_filled", "visit"} {
		key := fmt.Sprintf("%s-%d", name, n)
		body := map[string]any{
			"event_type": typ, "idempotency_key": key, "properties": map[string]string{"key": key},
			"user": map[string]any{"external_id": p.external, "email": p.email, "attributes": map[string]string{"tier": tier}},
		}
		var a struct {
			Success   bool
			ProfileID string `json:"profile_id"`
		}
		if err := c.until(ctx, 202, "/api/v1/events", body, &a, app...); err != nil {
			return p, err
		}
		if !a.Success || p.profile != "" && p.profile != a.ProfileID {
			return p, fmt.Errorf("%s was profile %s before and is %s now", name, p.profile, a.ProfileID)
		}
		p.profile = a.ProfileID
	}
	var a struct{ Status, Message string }
	body := map[string]any{"external_id": p.external, "idempotency_key": name, "data": map[string]string{"key": name}}
	err := c.until(ctx, 200, "/api/v1/custom-flows/"+callFlow+"/trigger", body, &a, "Authorization", "Bearer "+c.creds.APIKey)
	if err == nil && a.Status != "success" {
		err = fmt.Errorf("the call for %s was refused: %s", name, a.Message)
	}
	return p, err
}

// drain waits until no enrolment is in progress any more and nothing is to be sent.
func (s *server) drain(ids map[string]string) {
	s.t.Helper()
	for name, id := range ids {
		eventually.Succeeds(s.t, func() error {
			var f struct {
				Counts struct {
					InProgress int `json:"in_progress"`
				}
			}
			s.console("GET", "/flows/"+id, "", &f)
			if f.Counts.InProgress > 0 || name == "follow" && !s.idleOutbox() {
				return fmt.Errorf("%d are still in flow %s\n%s", f.Counts.InProgress, name, s.log())
			}
			return nil
		})
	}
}

func (s *server) idleOutbox() bool {
	s.t.Helper()
	res, err := http.Get(s.origin + "/metrics")
	ok(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	ok(s.t, err)
	return strings.Contains(string(b), "\nmuster_outbox_items 0\n")
}

func checkFlows(t *testing.T, s *server, relay *relay, sink *hookSink, people []flowPerson, ids map[string]string, killed []down) {
	t.Helper()
	sink.mu.Lock()
	defer sink.mu.Unlock()
	relay.mu.Lock()
	defer relay.mu.Unlock()
	intended, mails, again := 0, 0, 0
	for _, p := range people {
		for flow, id := range ids {
			var data struct {
				Enrolments []struct {
					Status string
					Path   []struct{ ID, Result string }
				}
			}
			s.console("GET", "/flows/"+id+"/enrolments/"+p.profile, "", &data)
			keys := map[string][]string{
				"order": {p.external + "-1"}, "cart": {""}, "visit": {p.external + "-0", p.external + "-3"}, "call": {p.external}, "follow": {""},
			}[flow]
			most := len(keys)
			if n := len(data.Enrolments); n < 1 || n > most {
				t.Errorf("%s is in flow %s %d times, not 1 to %d", p.external, flow, n, most)
			}
			for i, e := range data.Enrolments {
				steps := 0
				for _, v := range e.Path {
					if v.ID == "hook" && v.Result == "delivered" {
						steps++
					}
				}
				if e.Status != "completed" || steps != 1 {
					t.Errorf("%s, flow %s, enrolment %d: %+v", p.external, flow, i+1, e)
				}
			}
			got := 0
			for _, key := range keys {
				byID := sink.mu.calls[flow+"/hook/"+p.profile+"/"+key]
				if len(byID) > 1 {
					t.Errorf("%s, flow %s, key %q: one effect has the ids %v", p.external, flow, key, byID)
				}
				got += len(byID)
				for id, arrivals := range byID {
					again += len(arrivals) - 1
					checkRepeats(t, id, arrivals, killed)
				}
			}
			if got != len(data.Enrolments) {
				t.Errorf("%s, flow %s: %d effects, %d enrolments", p.external, flow, got, len(data.Enrolments))
			}
			intended += len(data.Enrolments)
		}
		messages := slices.Compact(slices.Sorted(slices.Values(relay.mu.byRecipient[p.email])))
		switch {
		case p.gold && len(messages) != 1:
			t.Errorf("%s got messages with the ids %v", p.email, messages)
		case !p.gold && len(messages) != 0:
			t.Errorf("%s got a message it must not have", p.email)
		}
		mails += len(messages)
	}
	if len(sink.mu.calls) != intended {
		t.Errorf("%d different effects arrived, %d were intended", len(sink.mu.calls), intended)
	}
	// Eight workers: that many may be in flight at a kill.
	if twice := relay.mu.received - mails; twice > 8*len(killed) {
		t.Errorf("%d messages came twice, %d may", twice, 8*len(killed))
	}
	var account struct {
		EmailCredits int `json:"email_credits"`
	}
	s.console("GET", "/credits", "", &account)
	if spent := 100_000 - account.EmailCredits; spent != mails {
		t.Errorf("%d credits were spent on %d messages", spent, mails)
	}
	t.Logf("%d kills, %d people, %d enrolments and calls, %d of them again, %d e-mails, %d again", len(killed), len(people), intended, again, mails, relay.mu.received-mails)
}

// down is the time from just before a kill until the next start is ready. What the killed
// process has sent may be taken after the kill, when the receiver gets to it.
type down struct{ from, to time.Time }

// checkRepeats checks that what came again was not taken before, or that a kill
// came just then.
func checkRepeats(t *testing.T, id string, arrivals []taking, killed []down) {
	t.Helper()
	for i := 1; i < len(arrivals); i++ {
		before, again := arrivals[i-1], arrivals[i]
		if before.ok && !slices.ContainsFunc(killed, func(k down) bool {
			return k.to.After(before.at) && k.from.Before(again.at) && k.from.Sub(before.at) < 5*time.Second
		}) {
			t.Errorf("call %s was taken at %v and came again at %v", id, before.at, again.at)
		}
	}
	if !arrivals[len(arrivals)-1].ok {
		t.Errorf("call %s was never taken", id)
	}
}
