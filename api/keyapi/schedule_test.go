package keyapi

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterhq/muster/internal/eventually"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver/audit"
	"github.com/musterhq/muster/resolver/campaigns"
)

// scheduled is a campaign with its schedule.
type scheduled struct {
	ID    string `json:"_id"`
	Date  string
	State string  `json:"status"`
	At    *string `json:"scheduled_at"`
	Error *string `json:"schedule_error"`
}

func (x *scheduled) is(state, at string) bool {
	return x.State == state && (x.At == nil && at == "" || x.At != nil && *x.At == at)
}

// until reads a campaign until it has a status.
func (p person) until(id, status string) (x scheduled) {
	p.t.Helper()
	eventually.Succeeds(p.t, func() error {
		if p.must("GET", "/campaigns/"+id, "", &x); x.State != status {
			return fmt.Errorf("the campaign is %s, not %s: %v", x.State, status, x.Error)
		}
		return nil
	})
	return x
}

// TestCampaignIsSentAtItsDate: a date in the future schedules a campaign, shows it, and
// has it sent once at that time; it can be changed and cancelled before.
func TestCampaignIsSentAtItsDate(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	took := map[string]int{}
	s := withMailer(t, func(m *email.Message) outcome.Result {
		mu.Lock()
		defer mu.Unlock()
		took[m.Subject]++
		return outcome.New(outcome.Accepted, "", "")
	})
	p := person{s, s.token}
	var list, x, y, z, long, dateless scheduled
	p.must("POST", "/lists", `{"name":"Readers"}`, &list)
	p.must("POST", "/lists/"+list.ID+"/contacts", `{"email":"ann@people.example"}`, nil)
	audience := `,"list_id":["` + list.ID + `"]`
	const soon, soonAt = `"2025-03-01T14:00:00+01:00"`, "2025-03-01T13:00:00.000Z" // in an hour
	p.must("POST", "/campaigns", `{"name":"x","channel":2,"type":1,"date":`+soon+`,"subject":"X","body":"<p>Hi</p>"`+audience+`}`, &x)
	p.must("POST", "/campaigns", `{"name":"y","channel":1,"date":`+soon+`,"subject":"Y","body":"<p>Hi</p>"`+audience+`}`, &y)
	p.must("POST", "/campaigns", `{"name":"z","channel":1,"date":`+soon+`,"subject":"Z","body":"<p>Hi</p>","sender":"a@elsewhere.example"`+audience+`}`, &z)
	p.must("POST", "/campaigns", `{"name":"n","channel":1,"date":`+soon+`,"subject":"N","body":"<p>Hi</p>"}`, &dateless)
	p.must("POST", "/campaigns", `{"name":"l","channel":2,"type":2,"date":`+soon+`,"body":"`+strings.Repeat("a", 1601)+`"`+audience+`}`, &long)
	// Saved before there is a provider, which takes no text as long.
	p.must("PUT", "/message-providers/sms", `{"preset":"twilio","account_sid":"AC0123456789abcdef0123456789abcdef","auth_token":"tw-secret","from":"+4930123"}`, nil)
	if !x.is("scheduled", soonAt) || !y.is("scheduled", soonAt) || !z.is("scheduled", soonAt) || !dateless.is("draft", "") {
		t.Fatalf("%+v %+v %+v %+v", x, y, z, dateless)
	}
	var stats struct{ Status string }
	if p.must("GET", "/campaigns/"+x.ID+"/stats", "", &stats); stats.Status != "scheduled" {
		t.Errorf("stats: %+v", stats)
	}
	p.must("PATCH", "/campaigns/"+x.ID, `{"subject":"X2","date":"2025-03-01T15:00:00"}`, &x)
	if !x.is("scheduled", "2025-03-01T15:00:00.000Z") {
		t.Errorf("changed: %+v", x)
	}
	p.must("DELETE", "/campaigns/"+y.ID+"/schedule", "", &y)
	if !y.is("draft", "") {
		t.Errorf("cancelled: %+v", y)
	}
	p.refused("DELETE", "/campaigns/cmp_none/schedule", "", 404, "", "no campaign")
	p.must("PATCH", "/campaigns/"+dateless.ID, `{"date":"2025-02-28"`+audience+`}`, &dateless)
	if !dateless.is("draft", "") {
		t.Errorf("in the past: %+v", dateless)
	}

	s.clock.Advance(2 * time.Hour) // 14:00: z was due, and has a sender that may not send
	if z = p.until(z.ID, "draft"); z.Error == nil || *z.Error == "" {
		t.Errorf("a sender that may not send: %+v", z)
	}
	if long = p.until(long.ID, "draft"); long.Error == nil || !strings.HasPrefix(*long.Error, "body Input should have at most 1600 characters") {
		t.Errorf("a text that no provider takes: %+v", long)
	}
	if x.State = ""; !func() bool {
		p.must("GET", "/campaigns/"+x.ID, "", &x)
		return x.is("scheduled", "2025-03-01T15:00:00.000Z")
	}() {
		t.Errorf("an hour ahead: %+v", x)
	}
	s.clock.Advance(time.Hour)
	if x = p.until(x.ID, "sent"); x.At != nil || x.Error != nil {
		t.Errorf("sent: %+v", x)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(took) != 1 || took["X2"] != 1 {
		t.Errorf("sent: %v", took)
	}
}

// editedSender has a campaign edited right before its start.
type editedSender struct {
	Campaigns
	edit func()
}

func (x *editedSender) Send(ctx context.Context, account uint64, start campaigns.Start, by audit.Author) (campaigns.Run, error) {
	x.edit()
	return x.Campaigns.Send(ctx, account, start, by)
}

// TestSendOfAnEarlierVersion: a send by hand is refused where an edit came between its look at the
// campaign and its start.
func TestSendOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	sender := new(editedSender)
	sends := sendingWith(t, func(m *email.Message) outcome.Result {
		if m.Subject != "new" {
			t.Errorf("sent: %s", m.Subject)
		}
		return outcome.New(outcome.Accepted, "", "")
	})
	s := newService(t, func(o *Options) {
		sends(o)
		sender.Campaigns = o.Campaigns
		o.Campaigns = sender
	})
	p := person{s, s.token}
	var list, x scheduled
	p.must("POST", "/lists", `{"name":"Readers"}`, &list)
	p.must("POST", "/lists/"+list.ID+"/contacts", `{"email":"ann@people.example"}`, nil)
	p.must("POST", "/campaigns", `{"name":"x","channel":2,"type":1,"date":"2024-01-01","subject":"old","body":"<p>Hi</p>","list_id":["`+list.ID+`"]}`, &x)
	sender.edit = func() { p.must("PATCH", "/campaigns/"+x.ID, `{"subject":"new"}`, nil) }
	p.refused("POST", "/campaigns/"+x.ID+"/send", `{}`, 409, "if_version", "was changed meanwhile")
	sender.edit = func() {}
	p.must("POST", "/campaigns/"+x.ID+"/send", `{}`, nil)
}
