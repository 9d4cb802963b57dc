package keyapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/musterhq/muster/api/keyapi/internal/analytics"
)

// TestUnsubscribesOfMessages: of those sent, those who unsubscribed by a message are
// counted. People who withdraw consent by a form, a call or an import did not answer
// one; and a rate that cannot be told, since what happened is about messages of before,
// is null.
func TestUnsubscribesOfMessages(t *testing.T) {
	t.Parallel()
	s := newServiceWith(t, &rowHistory{}, nil)
	k := keyCaller{s}
	var c struct {
		ID string `json:"_id"`
	}
	s.a("POST", "/campaign", `{"name":"n","channel":1}`, &c)
	mine := fmt.Sprintf(`{"campaign_id":%q,"domain":"x.io"}`, c.ID)
	for i := range 4 {
		email := fmt.Sprintf("u%d@x.io", i)
		s.happen(email, "email_sent", mine)
		if i == 0 { // by the link and the header of one message
			s.happen(email, "email_unsubscribed", mine)
			s.happen(email, "email_unsubscribed", mine)
		}
	}
	for i := range 12 {
		var x consented
		k.must("POST", "/contacts", fmt.Sprintf(`{"email":"form%d@x.io"}`, i), &x)
		k.must("PATCH", "/contacts/"+x.ID, `{"subscribed":false}`, nil)
	}
	// A campaign that is named is what led to it.
	s.happen("u1@x.io", "unsubscribed", fmt.Sprintf(`{"channel":"email","campaign_id":%q}`, c.ID))
	s.clock.Advance(time.Millisecond)

	check := func(what string, m analytics.MessageCounts, sent, unsubscribes uint64, rate any) {
		t.Helper()
		if m.Sent != sent || m.Unsubscribes != unsubscribes || told(m.UnsubscribeRate) != rate {
			t.Errorf("%s: %d of %d unsubscribed, rate %v; want %d of %d, %v", what, m.Unsubscribes, m.Sent, told(m.UnsubscribeRate), unsubscribes, sent, rate)
		}
	}
	var o struct {
		Messages analytics.MessageCounts
		Channels map[string]analytics.MessageCounts
	}
	s.a("GET", "/analytics/overview", "", &o)
	check("overview", o.Messages, 4, 3, 0.5)
	check("overview by channel", o.Channels["email"], 4, 3, 0.5)
	for _, query := range []string{"", "?campaign_id=" + c.ID} {
		var p struct {
			Totals analytics.MessageCounts
			Series []analytics.MessageCounts
		}
		s.a("GET", "/analytics/performance"+query, "", &p)
		check("performance"+query, p.Totals, 4, 3, 0.5)
		check("last of the series"+query, p.Series[len(p.Series)-1], 4, 3, 0.5)
	}
	var lines []analytics.MessageCounts
	s.a("GET", "/analytics/campaigns", "", &lines)
	check("campaigns", lines[0], 4, 3, 0.5)
	var d struct {
		Domains []analytics.MessageCounts
		Other   analytics.MessageCounts
	}
	s.a("GET", "/analytics/domains", "", &d)
	check("domain", d.Domains[0], 4, 2, 0.25)
	check("other domains", d.Other, 0, 1, nil)

	// A day on which people answer what was sent on the day before.
	s.clock.Advance(24 * time.Hour)
	s.happen("u9@x.io", "email_sent", mine)
	for i := range 4 {
		for _, act := range []string{"delivered", "opened", "clicked", "complained", "unsubscribed"} {
			s.happen(fmt.Sprintf("u%d@x.io", i), "email_"+act, mine)
		}
	}
	s.clock.Advance(time.Millisecond)
	s.a("GET", "/analytics/overview?from=2025-03-02", "", &o)
	m := o.Messages
	check("the next day", m, 1, 4, nil)
	if m.DeliveryRate != nil || m.OpenRate != nil || m.ClickRate != nil || m.ComplaintRate != nil || *m.ComplaintRateOK || told(m.BounceRate) != 0. || !*m.BounceRateOK {
		t.Errorf("the next day: %+v", m)
	}
	s.a("GET", "/analytics/overview?from=2025-02-01&to=2025-02-02", "", &o)
	check("a day without messages", o.Messages, 0, 0, nil)
	if m = o.Messages; m.OpenRate != nil || m.BounceRate != nil || !*m.BounceRateOK || !*m.ComplaintRateOK {
		t.Errorf("a day without messages: %+v", m)
	}
}

// told is what a rate says, nil for null.
func told(rate *float64) any {
	if rate == nil {
		return nil
	}
	return *rate
}
