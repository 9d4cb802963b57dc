package keyapi

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api/keyapi/internal/analytics"
	"github.com/musterhq/muster/messaging/email"
	"github.com/musterhq/muster/messaging/outcome"
	"github.com/musterhq/muster/query"
)

type domainLines struct {
	Domains []struct {
		Domain string
		analytics.MessageCounts
	}
	Other analytics.MessageCounts
}

// domainOracle counts events of e-mails by domain, one by one.
type domainOracle map[string]*struct {
	sent, opens, bounces, complaints uint64
	openers                          map[string]bool
}

func (o domainOracle) add(domain, person, act string) {
	n := o[domain]
	if n == nil {
		n = &struct {
			sent, opens, bounces, complaints uint64
			openers                          map[string]bool
		}{openers: map[string]bool{}}
		o[domain] = n
	}
	switch act {
	case "sent":
		n.sent++
	case "opened":
		n.opens++
		n.openers[person] = true
	case "bounced":
		n.bounces++
	case "complained":
		n.complaints++
	}
}

// crowdedHistory cannot tell apart domains alone.
type crowdedHistory struct {
	rowHistory
	crowded bool
}

func (h *crowdedHistory) Series(ctx context.Context, q query.SeriesQuery) ([]query.SeriesRow, error) {
	if h.crowded && len(q.By) > 0 && q.By[0] == "domain" && len(q.Where) == 0 {
		return nil, query.ErrSeriesTooLarge
	}
	return h.rowHistory.Series(ctx, q)
}

// TestAnalyticsByDomain: the numbers are those of the events of each domain, of the 50
// that most was sent to; all others are counted together, each person once.
func TestAnalyticsByDomain(t *testing.T) {
	t.Parallel()
	h := &crowdedHistory{}
	s := newServiceWith(t, h, nil)
	rng := rand.New(rand.NewPCG(3, 3))
	oracle := domainOracle{}
	for i := range 600 {
		// Few of the domains have most of the events.
		domain := fmt.Sprintf("d%d.example", rng.IntN(1+rng.IntN(70)))
		person := fmt.Sprintf("u%d@x.io", i%40)
		act := []string{"sent", "sent", "sent", "opened", "bounced", "complained"}[rng.IntN(6)]
		s.happen(person, "email_"+act, fmt.Sprintf(`{"domain":%q}`, domain))
		oracle.add(domain, person, act)
	}
	for i := range 3 { // of before events had the domain, of machines, of another channel
		s.happen(fmt.Sprintf("old%d@x.io", i), "email_sent", `{}`)
		oracle.add("", "", "sent")
		s.happen("m@x.io", "email_opened", `{"domain":"d0.example","agent":"machine"}`)
		s.happen("m@x.io", "sms_sent", `{"domain":"d0.example"}`)
		s.happen(fmt.Sprintf("left%d@x.io", i), "unsubscribed", `{"channel":"email","domain":"d0.example","campaign_id":"cmp_1"}`)
		s.happen(fmt.Sprintf("form%d@x.io", i), "unsubscribed", `{"channel":"email","domain":"d0.example"}`)
	}
	s.clock.Advance(time.Millisecond)
	var order []string
	for domain, n := range oracle {
		if domain != "" && n.sent+n.bounces > 0 {
			order = append(order, domain)
		}
	}
	slices.SortFunc(order, func(x, y string) int {
		return cmp.Or(cmp.Compare(oracle[y].sent+oracle[y].bounces, oracle[x].sent+oracle[x].bounces), strings.Compare(x, y))
	})
	if len(order) <= 50 {
		t.Fatalf("%d domains try nothing", len(order))
	}
	var all struct{ Messages analytics.MessageCounts }
	s.a("GET", "/analytics/overview", "", &all)
	check := func(want []string) {
		t.Helper()
		var have domainLines
		s.a("GET", "/analytics/domains", "", &have)
		sum, listed := have.Other, map[string]bool{}
		for i, l := range have.Domains {
			n := oracle[l.Domain]
			if listed[l.Domain] || want != nil && l.Domain != want[i] {
				t.Fatalf("line %d is of %s", i, l.Domain)
			}
			listed[l.Domain] = true
			if l.Sent != n.sent || l.Opens != n.opens || l.UniqueOpens != uint64(len(n.openers)) || l.Bounces != n.bounces || l.Complaints != n.complaints ||
				*l.BounceRateOK != (analytics.Share(n.bounces, n.sent+n.bounces) < 0.02) || *l.ComplaintRateOK != (analytics.Share(n.complaints, n.sent) < 0.001) {
				t.Errorf("%s: %+v, want %+v", l.Domain, l, n)
			}
			sum.Sent, sum.Opens, sum.Bounces, sum.Complaints = sum.Sent+l.Sent, sum.Opens+l.Opens, sum.Bounces+l.Bounces, sum.Complaints+l.Complaints
		}
		if want != nil && len(have.Domains) != len(want) || len(have.Domains) > 50 {
			t.Errorf("%d domains, want %d", len(have.Domains), len(want))
		}
		m := all.Messages
		if sum.Sent != m.Sent || sum.Opens != m.Opens || sum.Bounces != m.Bounces || sum.Complaints != m.Complaints || have.Other.Unsubscribes != m.Unsubscribes || m.Unsubscribes != 3 {
			t.Errorf("together %+v, e-mail is %+v", sum, m)
		}
		openers := map[string]bool{}
		for domain, n := range oracle {
			for who := range n.openers {
				openers[who] = openers[who] || !listed[domain]
			}
		}
		unique := uint64(0)
		for _, other := range openers {
			if other {
				unique++
			}
		}
		if have.Other.UniqueOpens != unique {
			t.Errorf("%d people opened others, want %d", have.Other.UniqueOpens, unique)
		}
	}
	check(order[:50])
	h.crowded = true
	check(nil)
	res, b := s.with(s.creds.APIKey, "GET", "/api/v1/analytics/domains?campaign_id=none", "")
	if says := failureOf(t, res.StatusCode, b); !strings.Contains(says, "no such campaign") {
		t.Error(says)
	}
}

// TestEmailEventsHaveTheDomain: what a campaign sends is counted for the domain of its
// recipients.
func TestEmailEventsHaveTheDomain(t *testing.T) {
	t.Parallel()
	h := &rowHistory{}
	s := newServiceWith(t, h, sendingWith(t, func(m *email.Message) outcome.Result {
		if strings.HasPrefix(m.To.Addr, "dead") {
			return outcome.Result{Class: outcome.Permanent, Hard: true, Text: "no such person"}
		}
		return outcome.New(outcome.Accepted, "", "")
	}))
	p := person{s, s.token}
	var list, x struct {
		ID string `json:"_id"`
	}
	p.must("POST", "/lists", `{"name":"Readers"}`, &list)
	for _, address := range []string{"a@One.example", "b@one.example", "dead@one.example", "c@two.example"} {
		p.must("POST", "/contacts", fmt.Sprintf(`{"list_id":%q,"email":%q}`, list.ID, address), nil)
	}
	p.must("POST", "/campaigns", fmt.Sprintf(`{"name":"n","channel":1,"subject":"S","body":"<p>B</p>","list_id":[%q]}`, list.ID), &x)
	p.must("POST", "/campaigns/"+x.ID+"/send", "", nil)
	s.clock.Advance(time.Millisecond)
	for _, query := range []string{"", "?campaign_id=" + x.ID} {
		var have domainLines
		s.a("GET", "/analytics/domains"+query, "", &have)
		if len(have.Domains) != 2 || have.Domains[0].Domain != "one.example" || have.Domains[0].Sent != 2 || have.Domains[0].Bounces != 1 || *have.Domains[0].BounceRateOK ||
			have.Domains[1].Domain != "two.example" || have.Domains[1].Sent != 1 || !*have.Domains[1].BounceRateOK || have.Other.Sent != 0 {
			t.Errorf("%s: %+v", query, have)
		}
	}
}
