package keyapi

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/resolver/contacts"
)

// TestWithdrawnBetweenAttempts: a message that was not taken is not tried again once its
// recipient has withdrawn the consent: it is skipped, and another channel is not barred by it.
func TestWithdrawnBetweenAttempts(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	x.textProvider("sms")
	x.verifiedDomain("mail.example.com")
	ada := x.contact(`{"email":"ada@x.io","phone":"+49170000001"}`)
	x.contact(`{"email":"bob@x.io","phone":"+49170000002"}`)
	var toAda, toBob atomic.Int64
	x.texts = func(body string) int {
		n := &toBob
		if strings.Contains(body, "+49170000001") {
			n = &toAda
			if _, err := x.node.Command(t.Context(), x.account, contacts.CommandConsentSet, contacts.ConsentSet{ID: ada, Channel: "sms", Status: "unsubscribed"}); err != nil {
				t.Error(err)
			}
		}
		if n.Add(1) == 1 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	}
	for i, fields := range []string{`"channel":2,"type":2,"date":"2026-01-01","body":"b"`, `"channel":1,"subject":"s","body":"b","sender":"news@mail.example.com","channels":[{"channel":"sms","body":"b"},{"channel":"email"}]`} {
		ok(t, second(x.node.Command(t.Context(), x.account, contacts.CommandConsentSet, contacts.ConsentSet{ID: ada, Channel: "sms", Status: "subscribed"})))
		toAda.Store(0)
		toBob.Store(0)
		var c record.Campaign
		x.call("success", "POST", "/campaign", `{"name":"n",`+fields+`}`, &c)
		x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, nil)
		var stats campaignStats
		x.call("success", "GET", "/campaign/"+c.ID+"/stats", nil, &stats)
		if got, want := fmt.Sprint(toAda.Load(), toBob.Load(), stats.EmailsSent, stats.Failed, stats.Skipped), []string{"1 2 1 0 map[unsubscribed:1]", "1 2 2 0 map[]"}[i]; got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
}

// TestLostAndWithdrawn: a message whose answer was lost may have been taken. It is not sent
// again after the consent was withdrawn, and counts as failed.
func TestLostAndWithdrawn(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	x.textProvider("sms")
	ada := x.contact(`{"email":"ada@x.io","phone":"+49170000001"}`)
	var tried atomic.Int64
	x.texts = func(string) int {
		tried.Add(1)
		ok(t, second(x.node.Command(t.Context(), x.account, contacts.CommandConsentSet, contacts.ConsentSet{ID: ada, Channel: "sms", Status: "unsubscribed"})))
		panic(http.ErrAbortHandler)
	}
	var c record.Campaign
	x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"type":2,"date":"2026-01-01","body":"b"}`, &c)
	x.call("failure", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, nil)
	var stats campaignStats
	x.call("success", "GET", "/campaign/"+c.ID+"/stats", nil, &stats)
	if tried.Load() != 1 || stats.EmailsSent != 0 || stats.Failed != 1 || len(stats.Skipped) != 0 {
		t.Errorf("%d times, %+v", tried.Load(), stats)
	}
}

// TestAStopHoldsForTheBatch: when the provider refuses the account, what is left of the batch
// that was claimed does not go out, and another send reaches everybody once.
func TestAStopHoldsForTheBatch(t *testing.T) {
	t.Parallel()
	x := newSending(t)
	x.textProvider("sms")
	const people = 200
	for n := range people {
		x.contact(fmt.Sprintf(`{"phone":"+491700%05d"}`, n))
	}
	var tried atomic.Int64
	x.texts = func(string) int {
		tried.Add(1)
		return http.StatusUnauthorized
	}
	var c record.Campaign
	x.call("success", "POST", "/campaign", `{"name":"n","channel":2,"type":2,"date":"2026-01-01","body":"b"}`, &c)
	x.call("failure", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true,"batch_size":200}`, nil)
	// A worker may have looked before the first refusal was on record.
	if n := tried.Load(); n > people/4 {
		t.Errorf("the provider was asked %d times", n)
	}
	var stats campaignStats
	x.call("success", "GET", "/campaign/"+c.ID+"/stats", nil, &stats)
	if n := stats.Skipped["the run was stopped"]; n == 0 || n+int(stats.Failed) != people {
		t.Errorf("%+v", stats)
	}
	x.texts = nil
	x.call("success", "POST", "/campaign/"+c.ID+"/send", `{"all_contacts":true}`, nil)
	x.call("success", "GET", "/campaign/"+c.ID+"/stats", nil, &stats)
	x.mu.Lock()
	defer x.mu.Unlock()
	if stats.EmailsSent != people || len(x.got) != people {
		t.Errorf("%d texts, %+v", len(x.got), stats)
	}
}
