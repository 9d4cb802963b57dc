package keyapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/musterhq/muster/messaging"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/resolver/node"
)

// sendAnswer is an answer to POST /campaign/{id}/send.
type sendAnswer struct {
	Status, Message string
	Data            struct {
		Success bool
		Message string
		Total   int      `json:"total_members"`
		Sent    int      `json:"emails_sent"`
		Errors  []string `json:"errors"`
		Started string   `json:"started_at"`
	}
}

// TestUnsentCampaignIsAFailure: a run that was stopped, or that sent nothing though
// there were recipients, is a failure with its numbers; one that sent to some is a
// success with its errors. A relay that takes nothing stops also a run of a few, and
// the campaign can be sent again.
func TestUnsentCampaignIsAFailure(t *testing.T) {
	t.Parallel()
	var relay atomic.Value // func(to string) outcome.Result
	s := newService(t, func(o *Options) {
		o.PerMinute = 10_000
		d, err := messaging.New(t.Context(), messaging.Options{
			Node: o.Node.(*node.Node), PublicURL: "http://127.0.0.1:8080", Now: o.Now, Metrics: metrics.NewSet(),
			Mailer: messaging.MailerFunc(func(m *email.Message) outcome.Result { return relay.Load().(func(string) outcome.Result)(m.To.Addr) }),
			Sleep:  func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		})
		ok(t, err)
		t.Cleanup(d.Close)
		o.Campaigns = d
	})
	key := s.newKey("contacts:write", "contacts:read", "lists:write", "campaigns:write", "campaigns:read").Key
	post := func(path, body string) (data struct {
		ID string `json:"_id"`
	}) {
		t.Helper()
		_, b := s.with(key, "POST", "/api/v1"+path, body)
		var a struct {
			Status string
			Data   json.RawMessage
		}
		ok(t, json.Unmarshal([]byte(b), &a))
		if a.Status != "success" {
			t.Fatalf("%s %s: %s", path, body, b)
		}
		ok(t, json.Unmarshal(a.Data, &data))
		return data
	}
	list := post("/lists", `{"name":"L"}`).ID
	for i := range 3 {
		post("/lists/"+list+"/contacts", fmt.Sprintf(`{"email":"p%d@people.example"}`, i))
	}
	campaign := func() string {
		return post("/campaign", `{"name":"C","channel":2,"type":1,"date":"2026-01-01","subject":"S","body":"<p>B</p>","sender":"a@muster.local"}`).ID
	}
	send := func(id string) (a sendAnswer) {
		t.Helper()
		res, b := s.with(key, "POST", "/api/v1/campaign/"+id+"/send", `{"list_id":["`+list+`"],"delay_between_batches":0.1}`)
		ok(t, json.Unmarshal([]byte(b), &a))
		if res.StatusCode != 200 || a.Data.Started == "" || a.Data.Success != (a.Status == "success") {
			t.Errorf("%d %s", res.StatusCode, b)
		}
		return a
	}
	status := func(id string) string {
		_, b := s.with(key, "GET", "/api/v1/campaign/"+id, "")
		var a struct{ Data struct{ Status string } }
		ok(t, json.Unmarshal([]byte(b), &a))
		return a.Data.Status
	}
	down := func(string) outcome.Result {
		return outcome.Failed(outcome.Temporary, "network", errors.New("connect: connection refused"))
	}
	up := func(string) outcome.Result { return outcome.New(outcome.Accepted, "", "") }
	refuse := func(who string) func(string) outcome.Result {
		return func(to string) outcome.Result {
			if strings.HasPrefix(to, who) {
				return outcome.New(outcome.Permanent, "550", "not this message")
			}
			return up(to)
		}
	}

	first := campaign()
	relay.Store(down)
	if a := send(first); a.Status != "failure" || !strings.Contains(a.Message, "connection refused") || a.Data.Total != 3 || a.Data.Sent != 0 || len(a.Data.Errors) == 0 || a.Data.Message != a.Message {
		t.Errorf("with the relay down: %+v", a)
	}
	if got := status(first); got != "stopped" {
		t.Errorf("with the relay down the campaign is %s", got)
	}
	relay.Store(up)
	if a := send(first); a.Status != "success" || a.Data.Sent != 3 || a.Data.Message != "sent" || status(first) != "sent" {
		t.Errorf("sent again: %+v", a)
	}

	relay.Store(refuse("p"))
	if a := send(campaign()); a.Status != "failure" || !strings.Contains(a.Message, "not this message") || a.Data.Sent != 0 {
		t.Errorf("all failed: %+v", a)
	}
	relay.Store(refuse("p1"))
	last := campaign()
	if a := send(last); a.Status != "success" || a.Message != "" || a.Data.Sent != 2 || len(a.Data.Errors) != 1 {
		t.Errorf("one of three failed: %+v", a)
	}
	// Each person counts once, by what became of the message in the end.
	counts := func() string {
		_, b := s.with(key, "GET", "/api/v1/campaign/"+last+"/stats", "")
		var a struct {
			Data struct {
				Sent   int `json:"emails_sent"`
				Failed int
			}
		}
		ok(t, json.Unmarshal([]byte(b), &a))
		_, b = s.with(key, "GET", "/api/v1/campaign/"+last+"/recipients/activity", "")
		return fmt.Sprint(a.Data.Sent, a.Data.Failed, strings.Count(b, `"sent":true`), strings.Count(b, `"failed":true`))
	}
	if got := counts(); got != "2 1 2 1" {
		t.Errorf("one of three failed: %s", got)
	}
	relay.Store(up)
	if a := send(last); a.Status != "success" {
		t.Errorf("sent again: %+v", a)
	}
	if got := counts(); got != "3 0 3 0" {
		t.Errorf("reached by the second send: %s", got)
	}
}
