package keyapi

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterhq/muster/api/keyapi/internal/analytics"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/contacts"
	"github.com/musterhq/muster/segment"
)

// rowHistory is a history in memory that looks at every row.
type rowHistory struct {
	emptyHistory
	rows  []historyRow
	moves []query.Transition
}

type historyRow struct {
	account    uint64
	ordinal    uint32
	key        query.TimelineKey
	typ, props string
}

func (h *rowHistory) Append(ctx context.Context, b *query.Batch) error {
	h.mu.Lock()
	position := h.position[b.Partition]
	for i := range b.Rows() {
		if b.Offset[i] >= position {
			h.rows = append(h.rows, historyRow{b.Account[i], b.Ordinal[i], query.TimelineKey{TimeMs: b.TimeMs[i], Offset: b.Offset[i], Index: b.Index[i]},
				string(b.EventType.At(i)), string(b.Properties.At(i))})
		}
	}
	for _, t := range b.Transitions {
		if t.Key.Offset >= position {
			h.moves = append(h.moves, t)
		}
	}
	h.mu.Unlock()
	return h.emptyHistory.Append(ctx, b)
}

func (h *rowHistory) match(account uint64, types []string, where []segment.Predicate) (out []historyRow) {
	for _, r := range h.rows {
		if r.account == account && (len(types) == 0 || slices.Contains(types, r.typ)) &&
			!slices.ContainsFunc(where, func(p segment.Predicate) bool { return !p.Match([]byte(r.props), 0) }) {
			out = append(out, r)
		}
	}
	return out
}

func property(props string, by []string) string {
	var m map[string]any
	if len(by) == 0 || json.Unmarshal([]byte(props), &m) != nil {
		return ""
	}
	s, _ := m[by[0]].(string)
	return s
}

func (h *rowHistory) Series(_ context.Context, q query.SeriesQuery) (out []query.SeriesRow, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	people := map[query.SeriesRow]map[uint32]uint64{}
	for _, r := range h.match(q.Account, q.Types, q.Where) {
		if r.key.TimeMs >= q.FromMs && r.key.TimeMs < q.ToMs {
			k := query.SeriesRow{Type: r.typ, Value: property(r.props, q.By), StartMs: q.Granularity.Start(r.key.TimeMs)}
			if people[k] == nil {
				people[k] = map[uint32]uint64{}
			}
			people[k][r.ordinal]++
		}
	}
	for k, who := range people {
		k.Profiles = uint64(len(who))
		for _, n := range who {
			k.Events += n
		}
		out = append(out, k)
	}
	slices.SortFunc(out, func(a, b query.SeriesRow) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Value, b.Value), cmp.Compare(a.StartMs, b.StartMs))
	})
	return out, nil
}

func (h *rowHistory) Deeds(_ context.Context, q query.DeedsQuery) (out []query.Deed, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.match(q.Account, q.Types, q.Where) {
		if slices.Contains(q.Ordinals, r.ordinal) {
			out = append(out, query.Deed{Ordinal: r.ordinal, Type: r.typ, Value: property(r.props, q.By), Events: 1, FirstMs: r.key.TimeMs, LastMs: r.key.TimeMs})
		}
	}
	return out, nil
}

func (h *rowHistory) Moves(_ context.Context, q query.MovesQuery) (out []query.MovesRow, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.moves {
		if t.Account != q.Account || t.AtMs < q.FromMs || t.AtMs >= q.ToMs {
			continue
		}
		r := query.MovesRow{Segment: t.Segment, Exits: 1}
		if t.Entered {
			r = query.MovesRow{Segment: t.Segment, Entered: 1}
		}
		if i := slices.IndexFunc(out, func(x query.MovesRow) bool { return x.Segment == t.Segment }); i >= 0 {
			out[i].Entered, out[i].Exits = out[i].Entered+r.Entered, out[i].Exits+r.Exits
			continue
		}
		out = append(out, r)
	}
	return out, nil
}

func (h *rowHistory) Timeline(_ context.Context, q query.TimelineQuery) (out []query.TimelineEntry, _ error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.match(q.Account, nil, nil) {
		if slices.Contains(q.Ordinals, r.ordinal) {
			out = append(out, query.TimelineEntry{Key: r.key, EventType: r.typ, Properties: r.props})
		}
	}
	slices.Reverse(out)
	return out, nil
}

func (h *rowHistory) Erase(_ context.Context, q query.EraseQuery) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rows = slices.DeleteFunc(h.rows, func(r historyRow) bool {
		return r.account == q.Account && slices.Contains(q.Ordinals, r.ordinal) && r.key.Offset < q.Cut.UpTo
	})
	return nil
}

// happen sends an event of a person.
func (s *service) happen(email, typ, properties string) {
	s.t.Helper()
	res, b := s.send("POST", "/api/v1/events", fmt.Sprintf(`{"event_type":%q,"user":{"email":%q},"properties":%s}`, typ, email, properties),
		"X-App-Id", s.creds.AppID, "X-App-Secret", s.creds.AppSecret)
	if res.StatusCode != 202 || !strings.Contains(b, `"success":true`) {
		s.t.Fatalf("event: %d %s", res.StatusCode, b)
	}
}

// a makes a call of Surface A that must succeed, and reads its data.
func (s *service) a(method, path, body string, data any) {
	s.t.Helper()
	_, b := s.with(s.creds.APIKey, method, "/api/v1"+path, body)
	var x struct {
		Status, Message string
		Data            json.RawMessage
	}
	ok(s.t, json.Unmarshal([]byte(b), &x))
	if x.Status != "success" {
		s.t.Fatalf("%s %s: %s", method, path, b)
	}
	if data != nil {
		ok(s.t, json.Unmarshal(x.Data, data))
	}
}

// TestAnalytics: what happened is counted by span, people once, machines not at
// all, with the rates and the thresholds of the guidance.
func TestAnalytics(t *testing.T) {
	t.Parallel()
	s := newServiceWith(t, &rowHistory{}, nil)
	var c struct {
		ID string `json:"_id"`
	}
	s.a("POST", "/campaign", `{"name":"n","channel":1}`, &c)
	mine := fmt.Sprintf(`{"campaign_id":%q}`, c.ID)
	for i := range 100 { // on 2025-03-01
		s.happen(fmt.Sprintf("u%d@x.io", i), "email_sent", mine)
	}
	s.clock.Advance(24 * time.Hour)
	s.happen("u1@x.io", "email_opened", mine)
	s.happen("u1@x.io", "email_opened", mine)
	s.happen("u2@x.io", "email_opened", `{"agent":"machine"}`)
	s.happen("u3@x.io", "email_clicked", `{}`)
	s.happen("u4@x.io", "email_bounced", `{}`)
	s.happen("u5@x.io", "email_bounced", `{}`)
	s.happen("u6@x.io", "email_bounced", `{}`)
	s.happen("u7@x.io", "email_unsubscribed", `{}`)
	// The clock stands still: what was acknowledged in this millisecond counts, too.
	s.a("POST", "/contacts", `{"email":"new@x.io"}`, nil)

	var o struct {
		Contacts                          struct{ Total, New, Subscribed uint64 }
		Lists, Segments, Campaigns, Flows int
		Events                            uint64
		Messages                          analytics.MessageCounts
	}
	s.a("GET", "/analytics/overview?from=2025-03-02", "", &o)
	if o.Contacts.Total != 101 || o.Contacts.New != 1 || o.Contacts.Subscribed != 1 || o.Campaigns != 1 || o.Events != 9 {
		t.Errorf("overview of a day: %+v", o)
	}
	s.a("GET", "/analytics/overview", "", &o)
	m := o.Messages
	if m.Sent != 100 || m.Opens != 2 || m.UniqueOpens != 1 || m.Clicks != 1 || m.Bounces != 3 || m.Unsubscribes != 1 || told(m.OpenRate) != 0.01 || *m.BounceRateOK || !*m.ComplaintRateOK || o.Contacts.New != 101 {
		t.Errorf("overview: %+v", o)
	}
	var p struct {
		Totals analytics.MessageCounts
		Series []struct {
			Start string
			analytics.MessageCounts
		}
	}
	s.a("GET", "/analytics/performance?from=2025-02-28&to=2025-03-03&granularity=day", "", &p)
	if len(p.Series) != 3 || p.Series[0].Sent != 0 || p.Series[1].Sent != 100 || p.Series[1].Opens != 0 || p.Series[2].Opens != 2 || p.Series[2].Start != "2025-03-02T00:00:00.000Z" || p.Totals.Sent != 100 {
		t.Errorf("performance: %+v", p)
	}
	var lines []struct {
		ID string `json:"campaign_id"`
		analytics.MessageCounts
	}
	s.a("GET", "/analytics/campaigns", "", &lines)
	if len(lines) != 1 || lines[0].ID != c.ID || lines[0].Sent != 100 || lines[0].Opens != 2 || lines[0].Clicks != 0 {
		t.Errorf("campaigns: %+v", lines)
	}
	var e struct {
		Events []struct {
			EventType        string `json:"event_type"`
			Events, Contacts uint64
			Series           []struct{ Events uint64 }
		}
	}
	s.a("GET", "/analytics/events?event_type=email_opened", "", &e)
	if len(e.Events) != 1 || e.Events[0].Events != 3 || e.Events[0].Contacts != 2 || len(e.Events[0].Series) != 1 {
		t.Errorf("events: %+v", e)
	}
	var g struct {
		New, Total uint64
		Series     []struct{ New, Total uint64 }
	}
	s.a("GET", "/analytics/contacts?from=2025-02-28&to=2025-03-03", "", &g)
	if g.New != 101 || g.Total != 101 || len(g.Series) != 3 || g.Series[0].Total != 0 || g.Series[1].New != 100 || g.Series[2].New != 1 || g.Series[2].Total != 101 {
		t.Errorf("contacts: %+v", g)
	}
	var f struct{ Total, Live int }
	s.a("GET", "/analytics/flows/overview", "", &f)
	for query, says := range map[string]string{
		"from=yesterday": "from Input should be", "to=2025-13-01": "to Input should be", "from=2025-03-02&to=2025-03-02": "from Input should be before to",
		"granularity=year": "granularity Input should be", "granularity=hour&from=2020-01-01": "granularity Input should be coarser",
	} {
		res, b := s.with(s.creds.APIKey, "GET", "/api/v1/analytics/performance?"+query, "")
		if res.StatusCode != 200 || !strings.HasPrefix(failureOf(t, res.StatusCode, b), says) {
			t.Errorf("%s: %d %s", query, res.StatusCode, b)
		}
	}
}

// TestAnalyticsByChannel: what happens to messages of other channels changes no number
// of e-mail, and the thresholds are those of e-mail.
func TestAnalyticsByChannel(t *testing.T) {
	t.Parallel()
	s := newServiceWith(t, &rowHistory{}, nil)
	var c struct {
		ID string `json:"_id"`
	}
	s.a("POST", "/campaign", `{"name":"n","channel":2,"type":2,"date":"2025-01-01"}`, &c)
	for i := range 100 {
		s.happen(fmt.Sprintf("u%d@x.io", i), "email_sent", `{}`)
	}
	s.happen("u1@x.io", "email_bounced", `{}`)
	mine := fmt.Sprintf(`{"campaign_id":%q}`, c.ID)
	for i := range 10 {
		s.happen(fmt.Sprintf("u%d@x.io", i), "sms_sent", mine)
		s.happen(fmt.Sprintf("u%d@x.io", i), "sms_bounced", mine)
		s.happen(fmt.Sprintf("u%d@x.io", i), "push_failed", `{}`)
	}
	s.happen("u1@x.io", "email_clicked", `{}`)
	s.happen("u1@x.io", "sms_clicked", mine)
	s.happen("u2@x.io", "unsubscribed", `{"channel":"sms"}`)
	s.happen("u3@x.io", "unsubscribed", `{"channel":"push"}`)
	s.happen("u4@x.io", "unsubscribed", `{"channel":"carrier pigeon"}`)
	s.happen("u5@x.io", "unsubscribed", fmt.Sprintf(`{"channel":"sms","campaign_id":%q}`, c.ID))
	s.clock.Advance(time.Millisecond)
	var o struct {
		Messages analytics.MessageCounts
		Channels map[string]analytics.MessageCounts
		Webhooks analytics.WebhookCounts
	}
	s.a("GET", "/analytics/overview", "", &o)
	if m := o.Messages; m.Sent != 100 || m.Bounces != 1 || m.Clicks != 1 || m.Unsubscribes != 0 || !*m.BounceRateOK || !*m.ComplaintRateOK || len(o.Channels) != 6 || o.Channels["email"].Sent != 100 {
		t.Errorf("e-mail: %+v", o)
	}
	if m := o.Channels["sms"]; m.Sent != 10 || m.Bounces != 10 || told(m.BounceRate) != 0.5 || m.UniqueClicks != 1 || m.Unsubscribes != 1 || m.BounceRateOK != nil || m.ComplaintRateOK != nil {
		t.Errorf("SMS: %+v", m)
	}
	if m := o.Channels["push"]; m.Sent != 0 || m.Failed != 10 || m.Unsubscribes != 0 || m.BounceRateOK != nil {
		t.Errorf("push: %+v", m)
	}
	for query, want := range map[string]struct {
		channel                     string
		sent, bounces, unsubscribes uint64
	}{
		"": {"email", 100, 1, 0}, "?channel=sms": {"sms", 10, 10, 1}, "?channel=whatsapp": {"whatsapp", 0, 0, 0},
		"?campaign_id=" + c.ID: {"sms", 10, 10, 1}, "?channel=email&campaign_id=" + c.ID: {"email", 0, 0, 0},
	} {
		var p struct {
			Channel string
			Totals  analytics.MessageCounts
			Series  []analytics.MessageCounts
		}
		s.a("GET", "/analytics/performance"+query, "", &p)
		var sum analytics.MessageCounts
		for _, x := range p.Series {
			sum.Sent, sum.Bounces, sum.Unsubscribes = sum.Sent+x.Sent, sum.Bounces+x.Bounces, sum.Unsubscribes+x.Unsubscribes
		}
		for _, n := range []analytics.MessageCounts{p.Totals, sum} {
			if p.Channel != want.channel || n.Sent != want.sent || n.Bounces != want.bounces || n.Unsubscribes != want.unsubscribes {
				t.Errorf("performance%s: %s %+v", query, p.Channel, n)
			}
		}
		if (p.Totals.BounceRateOK != nil) != (want.channel == "email") {
			t.Errorf("performance%s: thresholds %+v", query, p.Totals)
		}
	}
	var lines []struct {
		Channel string
		analytics.MessageCounts
	}
	s.a("GET", "/analytics/campaigns", "", &lines)
	if len(lines) != 1 || lines[0].Channel != "sms" || lines[0].Sent != 10 || lines[0].Bounces != 10 || lines[0].Unsubscribes != 1 || lines[0].BounceRateOK != nil {
		t.Errorf("campaigns: %+v", lines)
	}
	res, b := s.with(s.creds.APIKey, "GET", "/api/v1/analytics/performance?channel=fax", "")
	if says := failureOf(t, res.StatusCode, b); !strings.HasPrefix(says, "channel Input should be") {
		t.Error(says)
	}
}

// TestAnalyticsOfSegments: entries and exits in the range, and the size now.
func TestAnalyticsOfSegments(t *testing.T) {
	t.Parallel()
	s := newServiceWith(t, &rowHistory{}, nil)
	var g struct {
		ID string `json:"_id"`
	}
	s.console1("POST", "/segments", `{"name":"s","definition":{"kind":"activity","event":"bought","window":{"last_days":1}}}`, &g)
	s.happen("a@x.io", "bought", `{}`)
	s.happen("b@x.io", "bought", `{}`)
	s.clock.Advance(36 * time.Hour)
	s.happen("b@x.io", "bought", `{}`)
	var lines []struct {
		ID                    string `json:"segment_id"`
		Size, Entered, Exited uint64
	}
	s.clock.Advance(time.Minute)
	s.a("GET", "/analytics/segments", "", &lines)
	if len(lines) != 1 || lines[0].ID != g.ID || lines[0].Size != 1 || lines[0].Entered != 3 || lines[0].Exited != 2 {
		t.Errorf("%+v", lines)
	}
	s.a("GET", "/analytics/segments?from=2025-03-02T18:00:00Z", "", &lines)
	if lines[0].Entered != 1 || lines[0].Exited != 0 {
		t.Errorf("later: %+v", lines)
	}
}

// TestEraseAndExport: a contact is exported with all that is known; erased, it
// answers as none and cannot come back.
func TestEraseAndExport(t *testing.T) {
	t.Parallel()
	s := newServiceWith(t, &rowHistory{}, nil)
	var x struct {
		ID string `json:"_id"`
	}
	s.a("POST", "/contacts", `{"email":"a@x.io","phone":"+49301"}`, &x)
	s.happen("a@x.io", "bought", `{"value":7}`)
	var e struct {
		Contact    struct{ Email string }
		Identities map[string][]string
		Consents   []struct{ Channel, Status string }
		Events     []struct {
			EventType  string `json:"event_type"`
			Properties map[string]any
		}
		Complete bool `json:"events_complete"`
	}
	s.a("GET", "/contacts/"+x.ID+"/export", "", &e)
	if e.Contact.Email != "a@x.io" || e.Identities["phone"][0] != "+49301" || len(e.Consents) != 2 || !e.Complete ||
		len(e.Events) != 3 || e.Events[0].EventType != "bought" || e.Events[0].Properties["value"] != 7.0 {
		t.Errorf("export: %+v", e)
	}
	s.a("DELETE", "/contacts/"+x.ID, "", nil)
	for _, call := range []string{"GET /contacts/" + x.ID, "DELETE /contacts/" + x.ID, "GET /contacts/" + x.ID + "/export"} {
		method, path, _ := strings.Cut(call, " ")
		res, b := s.with(s.creds.APIKey, method, "/api/v1"+path, "")
		if says := failureOf(t, res.StatusCode, b); !strings.Contains(says, "here is no contact with this id") {
			t.Errorf("%s: %s", call, b)
		}
	}
	res, b := s.with(s.creds.APIKey, "POST", "/api/v1/contacts", `{"email":"A@X.io"}`)
	if says := failureOf(t, res.StatusCode, b); says != "email: this person was erased and may not be stored again" {
		t.Errorf("%s", b)
	}
}

// TestOverviewSubscribed: the overview counts as subscribed whom a segment on `subscribed`
// has, and not those who are suppressed.
func TestOverviewSubscribed(t *testing.T) {
	t.Parallel()
	s := newServiceWith(t, &rowHistory{}, nil)
	k := keyCaller{s}
	for i := range 4 {
		k.must("POST", "/contacts", fmt.Sprintf(`{"email":"u%d@x.io"}`, i), nil)
	}
	for i, reason := range []string{"complained", "bounced"} {
		var id string
		ok(t, s.node.Read(t.Context(), s.account, func(v *resolver.View) error {
			o, _ := v.Profiles().Find(resolver.IdentityEmail, fmt.Sprintf("u%d@x.io", i))
			p, err := v.Profiles().Get(o)
			id = p.ID.String()
			return err
		}))
		_, err := s.node.Command(t.Context(), s.account, contacts.CommandSuppressionSet, contacts.SuppressionSet{ID: id, Channel: "email", Reason: reason})
		ok(t, err)
	}
	var o struct {
		Contacts struct{ Total, Subscribed uint64 }
	}
	s.a("GET", "/analytics/overview", "", &o)
	if o.Contacts.Total != 4 || o.Contacts.Subscribed != 2 {
		t.Errorf("%+v", o)
	}
}

// TestAnalyticsOfSeveralChannels: the numbers of a campaign on several channels are of all of
// them, or of the one that is asked for.
func TestAnalyticsOfSeveralChannels(t *testing.T) {
	t.Parallel()
	s := newServiceWith(t, &rowHistory{}, nil)
	var c struct {
		ID string `json:"_id"`
	}
	s.a("POST", "/campaign", `{"name":"n","channel":1,"channels":[{"channel":"push"},{"channel":"sms"}]}`, &c)
	mine := fmt.Sprintf(`{"campaign_id":%q}`, c.ID)
	for i, event := range []string{"push_sent", "push_sent", "push_sent", "sms_sent", "sms_sent", "sms_clicked"} {
		s.happen(fmt.Sprintf("u%d@x.io", i), event, mine)
	}
	s.happen("u9@x.io", "push_sent", `{}`)
	s.clock.Advance(time.Millisecond)
	var lines []struct {
		Channel string
		analytics.MessageCounts
	}
	if s.a("GET", "/analytics/campaigns", "", &lines); len(lines) != 1 || lines[0].Channel != "omni" || lines[0].Sent != 5 || lines[0].Clicks != 1 {
		t.Errorf("campaigns: %+v", lines)
	}
	for query, want := range map[string]string{"": "omni 5", "&channel=sms": "sms 2"} {
		var p struct {
			Channel string
			Totals  analytics.MessageCounts
		}
		if s.a("GET", "/analytics/performance?campaign_id="+c.ID+query, "", &p); fmt.Sprint(p.Channel, " ", p.Totals.Sent) != want {
			t.Errorf("performance%s: %+v", query, p)
		}
	}
}
