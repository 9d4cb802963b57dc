package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api/internal/messages"
	"github.com/musterhq/muster/messaging/webhook"
)

func (s *service) deliveries(hook, query string) (list []messages.Delivery, next *string) {
	s.t.Helper()
	status, a := s.do("GET", "/webhooks/"+hook+"/deliveries"+query, "")
	if a.into(s.t, &list); status != 200 {
		s.t.Fatalf("%d %s", status, a.Message)
	}
	return list, a.Next
}

// TestRefusedEventHoldsUpNothing: what a receiver refuses is tried again by itself,
// while the events behind it are delivered.
func TestRefusedEventHoldsUpNothing(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, func(o *Options) { o.AllowPrivate = true })
	to := newReceiver(t)
	to.refuse = "u0@x.io"
	h := s.hook(to.URL, "contact.created")
	defer s.carryOut(t)()
	for i := range 30 {
		s.addContact(fmt.Sprintf("u%d@x.io", i))
	}
	s.until(h.ID, func(h hookAnswer) bool { return h.Delivered == 29 && h.Failures == 1 && h.Waiting == 1 })

	list, _ := s.deliveries(h.ID, "?status=waiting")
	if len(list) != 1 || list[0].Event != "contact.created" || list[0].LastAttempt.StatusCode == nil || *list[0].LastAttempt.StatusCode != 500 || list[0].NextAttemptAt == nil || list[0].Attempts != 1 {
		t.Fatalf("%+v", list)
	}
	s.clock.Advance(10 * time.Second)
	s.until(h.ID, func(h hookAnswer) bool { return h.Failures == 2 })
	var d messages.DeliveryDetails
	s.want("GET", "/webhooks/"+h.ID+"/deliveries/"+list[0].ID, "", &d)
	if len(d.Log) != 2 || d.Log[1].Number != 2 || *d.Log[1].Answer != "no thanks" || d.Log[1].Error != "the receiver answered 500" || !strings.Contains(d.Body, `"email":"u0@x.io"`) || d.BodyBytes != len(d.Body) {
		t.Fatalf("%+v", d)
	}
	first, next := s.deliveries(h.ID, "?limit=20")
	rest, end := s.deliveries(h.ID, "?limit=20&cursor="+*next)
	seen := map[string]bool{}
	for _, x := range append(first, rest...) {
		seen[x.ID] = true
	}
	if len(first) != 20 || len(rest) != 10 || end != nil || len(seen) != 30 {
		t.Fatalf("%d and %d deliveries, %d in all", len(first), len(rest), len(seen))
	}

	// It is sent again at once, under the same id, and so is one that was delivered.
	to.mu.Lock()
	to.refuse = ""
	to.mu.Unlock()
	s.want("POST", "/webhooks/"+h.ID+"/deliveries/"+list[0].ID+"/redeliver", "", nil)
	s.until(h.ID, func(h hookAnswer) bool { return h.Delivered == 30 && h.Waiting == 0 })
	s.want("POST", "/webhooks/"+h.ID+"/deliveries/"+list[0].ID+"/redeliver", "", nil)
	s.until(h.ID, func(h hookAnswer) bool { return h.Delivered == 31 })
	n := 0
	for _, x := range to.wait(t, 33) {
		if x.id == list[0].ID {
			n++
			if x.body != d.Body {
				t.Errorf("another body: %s", x.body)
			}
		}
	}
	if n != 4 {
		t.Errorf("%d attempts under the id, expected 4", n)
	}
	s.want("GET", "/webhooks/"+h.ID+"/deliveries/"+list[0].ID, "", &d)
	if d.Status != "delivered" || d.Attempts != 4 || d.NextAttemptAt != nil {
		t.Errorf("%+v", d)
	}
	if status, a := s.do("GET", "/webhooks/"+h.ID+"/deliveries?status=dead", ""); status != 400 || a.field() != "status" {
		t.Errorf("%d %s", status, a.Message)
	}
	// A user who may only read settings sees no bodies.
	s.newUser("reader@x.io", "settings:read")
	reader := s.as("reader@x.io", "long enough password")
	reader.deliveries(h.ID, "")
	if status, _ := reader.do("GET", "/webhooks/"+h.ID+"/deliveries/"+list[0].ID, ""); status != 403 {
		t.Errorf("a reader sees a body: %d", status)
	}
}

// TestFailingEndpointPauses: an endpoint gets a few deliveries at once, and one at a
// time with pauses when it does not work, however much is queued.
func TestFailingEndpointPauses(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, func(o *Options) { o.AllowPrivate = true })
	to := newReceiver(t)
	hold := make(chan struct{})
	to.hold = hold
	to.status = func(int) int { return 503 }
	h := s.hook(to.URL, "contact.created")
	for i := range 50 {
		s.addContact(fmt.Sprintf("u%d@x.io", i))
	}
	defer s.carryOut(t)()
	to.wait(t, 4)
	to.mu.Lock()
	to.hold = nil
	to.mu.Unlock()
	close(hold)
	got := s.until(h.ID, func(h hookAnswer) bool { return h.Failures >= 5 })
	to.mu.Lock()
	if to.most != 4 {
		t.Errorf("%d deliveries at once, expected 4", to.most)
	}
	to.mu.Unlock()
	// Ten looks at what is due later no more than those under way have come.
	s.addContact("later@x.io")
	if got = s.until(h.ID, func(h hookAnswer) bool { return h.Waiting == 51 }); got.Failures > 8 {
		t.Errorf("%d attempts at an endpoint that does not work", got.Failures)
	}
	to.mu.Lock()
	to.status = func(int) int { return 200 }
	to.mu.Unlock()
	// An attempt that was under way may fail after the clock is advanced: its pause
	// begins then.
	failures := got.Failures
	s.clock.Advance(time.Minute)
	s.until(h.ID, func(h hookAnswer) bool {
		if h.Failures != failures {
			failures = h.Failures
			s.clock.Advance(time.Minute)
		}
		return h.Delivered == 51 && h.Waiting == 0
	})
}

// TestDeadLetterIsRedelivered: the log and the dead letters are of the same deliveries.
func TestDeadLetterIsRedelivered(t *testing.T) {
	t.Parallel()
	s := newService(t, &memHistory{}, func(o *Options) { o.AllowPrivate = true })
	to := newReceiver(t)
	to.refuse = "u0@x.io"
	h := s.hook(to.URL, "contact.created")
	defer s.carryOut(t)()
	s.addContact("u0@x.io")
	for attempt := 1; attempt <= webhook.MaxAttempts; attempt++ {
		s.until(h.ID, func(h hookAnswer) bool { return h.Failures == uint64(attempt) })
		s.clock.Advance(13 * time.Hour)
	}
	s.until(h.ID, func(h hookAnswer) bool { return h.DeadLetters == 1 && h.Waiting == 0 })
	list, _ := s.deliveries(h.ID, "?status=failed")
	var dead []messages.DeadLetter
	s.want("GET", "/webhooks/"+h.ID+"/dead-letters", "", &dead)
	if len(list) != 1 || list[0].DeadLetter == nil || *list[0].DeadLetter != dead[0].Seq || list[0].ID != dead[0].WebhookID || list[0].Attempts != webhook.MaxAttempts {
		t.Fatalf("%+v, %+v", list, dead)
	}
	to.mu.Lock()
	to.refuse = ""
	to.mu.Unlock()
	s.want("POST", "/webhooks/"+h.ID+"/deliveries/"+list[0].ID+"/redeliver", "", nil)
	s.until(h.ID, func(h hookAnswer) bool { return h.DeadLetters == 0 && h.Delivered == 1 })
	if list, _ = s.deliveries(h.ID, ""); len(list) != 1 || list[0].Status != "delivered" || list[0].DeadLetter != nil || list[0].Attempts != webhook.MaxAttempts+1 {
		t.Fatalf("%+v", list)
	}
}
