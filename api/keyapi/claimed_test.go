package keyapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
)

// TestClaimedRecipientsAreAskedAgain: people of a batch that is being sent who unsubscribe,
// complain or are erased are passed over when it is their turn. The others of the batch get
// the campaign.
func TestClaimedRecipientsAreAskedAgain(t *testing.T) {
	t.Parallel()
	const people = 20 // more than are sent to at once
	var mu sync.Mutex
	var got []string
	busy, changed := make(chan struct{}, people), make(chan struct{})
	s := withMailer(t, func(m *email.Message) outcome.Result {
		busy <- struct{}{}
		<-changed
		mu.Lock()
		defer mu.Unlock()
		got = append(got, m.To.Addr)
		return outcome.New(outcome.Accepted, "", "")
	})
	p := person{s, s.token}
	var x struct {
		ID string `json:"_id"`
	}
	p.must("POST", "/lists", `{"name":"News"}`, &x)
	list := x.ID
	ids := make([]string, people)
	for i := range people {
		p.must("POST", "/contacts", fmt.Sprintf(`{"email":"p%02d@x.io","list_id":%q}`, i, list), &x)
		ids[i] = x.ID
	}
	p.must("POST", "/campaigns", `{"name":"n","channel":1,"subject":"S","body":"<p>B</p>","list_id":["`+list+`"]}`, &x)
	campaign := "/campaigns/" + x.ID
	sent := make(chan string, 1)
	go func() {
		_, b := s.send("POST", "/console/api/v1"+campaign+"/send", `{"batch_size":1000}`, "Authorization", "Bearer "+s.token)
		sent <- b
	}()
	<-busy
	p.must("POST", "/profiles/"+ids[people-1]+"/consent", `{"channel":"email","status":"unsubscribed"}`, nil)
	p.must("POST", "/profiles/"+ids[people-2]+"/suppression", `{"channel":"email","reason":"complained"}`, nil)
	p.must("DELETE", "/profiles/"+ids[people-3], "", nil)
	close(changed)
	if b := <-sent; !strings.Contains(b, fmt.Sprintf(`"emails_sent":%d,`, people-3)) {
		t.Errorf("the answer is %s", b)
	}
	var want []string
	for i := range people - 3 {
		want = append(want, fmt.Sprintf("p%02d@x.io", i))
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("sent to %q, want %q", got, want)
	}
	var stats campaignStats
	p.must("GET", campaign+"/stats", "", &stats)
	if stats.Status != "sent" || stats.Failed != 0 || !maps.Equal(stats.Skipped, map[string]int{"unsubscribed": 1, "complained": 1}) {
		t.Errorf("the statistics are %+v", stats)
	}
}
