package analytics

import (
	"errors"
	"slices"
	"time"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/internal/shapes"
	"github.com/musterhq/muster/api/keyapi/internal/keycall"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/campaigns"
	"github.com/musterhq/muster/segment"
)

const (
	// defaultRange is what is looked at unless the query says otherwise.
	defaultRange = 30 * 24 * time.Hour
	// maxSpans is how many spans of time an answer may have.
	maxSpans = 2000
)

// Operations are the calls about statistics.
func Operations() keycall.Group {
	return keycall.Group{Group: operation.Group{Surface: operation.SurfaceA, Tag: "Analytics", Title: "Analytics",
		About: "Statistics from history, over a range of time. Opens and clicks of machines do not count."}, Routes: append(flowRoutes(), []keycall.Route{
		{Handle: overview, Operation: operation.Operation{Method: "GET", Path: "/analytics/overview", Permission: "analytics:read", Timeout: keycall.HistoryTimeout, ID: "analyticsOverview", Summary: "All of the account", About: "`messages` are e-mail alone, as `channels.email`.", Query: spanQueryShape(),
			Data: shape.Object(shape.Req("range", timeRangeShape),
				shape.Req("contacts", shape.Object(shape.Req("total", shape.Count(1204, "Profiles there are now.")), shape.Req("new", shape.Count(31, "Made in the range.")),
					shape.Req("subscribed", shape.Count(1100, "Subscribed to e-mail now, confirmed and not suppressed: those who are `subscribed` in a segment.")))),
				shape.Req("lists", shape.Count(4, "")), shape.Req("segments", shape.Count(9, "")), shape.Req("campaigns", shape.Count(12, "")), shape.Req("flows", shape.Count(3, "")),
				shape.Req("events", shape.Count(20412, "Events in the range.")), shape.Req("messages", messageCountsShape), shape.Req("channels", channelCountsShape), shape.Req("webhooks", webhookCountsShape)),
			Fails: []string{"from Input should be before to"}}},
		{Handle: performance, Operation: operation.Operation{Method: "GET", Path: "/analytics/performance", Permission: "analytics:read", Timeout: keycall.HistoryTimeout, ID: "analyticsPerformance", Summary: "Messages over time", About: "Of one channel.",
			Query: append(spanQueryShape(), operation.Query("campaign_id", shape.CampaignID("Those of a campaign alone.")), operation.Query("channel", ChannelShape("Default: the campaign's, or email."))),
			Data:  shape.Object(shape.Req("range", timeRangeShape), shape.Req("channel", campaignChannelShape("`omni` for all channels of a campaign of several.")), shape.Req("totals", messageCountsShape), shape.Req("series", shape.List(messageCountsShape.Plus(spanStartShape()), "One entry for each span, also for those without messages."))),
			Fails: []string{"granularity Input should be 'hour', 'day', 'week' or 'month'"}}},
		{Handle: byCampaign, Operation: operation.Operation{Method: "GET", Path: "/analytics/campaigns", Permission: "analytics:read", Timeout: keycall.HistoryTimeout, ID: "analyticsCampaigns", Summary: "Messages by campaign", About: "The oldest campaign first.", Query: spanQueryShape(),
			Data: shape.List(messageCountsShape.Plus(shape.Req("campaign_id", shape.CampaignID("")), shape.Req("name", shape.Text("January sale", "")), shape.Req("status", shapes.CampaignStatus()), shape.Req("channel", campaignChannelShape("On which the campaign is sent; `omni` for several."))), ""), Paged: true}},
		domainsRoute(),
		{Handle: byEventType, Operation: operation.Operation{Method: "GET", Path: "/analytics/events", Permission: "analytics:read", Timeout: keycall.HistoryTimeout, ID: "analyticsEvents", Summary: "Events by type",
			Query: append(spanQueryShape(), operation.Query("event_type", shape.Text("item_purchased", "Those of a type alone."))),
			Data: shape.Object(shape.Req("range", timeRangeShape), shape.Req("events", shape.List(shape.Object(
				shape.Req("event_type", shape.Text("item_purchased", "")), shape.Req("events", shape.Count(210, "")), shape.Req("contacts", shape.Count(180, "People who did it.")),
				shape.Req("series", shape.List(shape.Object(spanStartShape(), shape.Req("events", shape.Count(12, "")), shape.Req("contacts", shape.Count(11, ""))), "Spans with events.")),
			), "")))}},
		{Handle: membersOfSegments, Operation: operation.Operation{Method: "GET", Path: "/analytics/segments", Permission: "analytics:read", Timeout: keycall.HistoryTimeout, ID: "analyticsSegments", Summary: "Segments: members, entries and exits", Query: spanQueryShape(),
			Data: shape.List(shape.Object(shape.Req("segment_id", shape.SegmentID("")), shape.Req("name", shape.Text("Customers", "")),
				shape.Req("size", shape.Count(512, "Members now; null while the segment is being built.").OrNull()),
				shape.Req("entered", shape.Count(40, "Entries in the range.")), shape.Req("exited", shape.Count(7, "Exits in the range."))), ""), Paged: true}},
		{Handle: growth, Operation: operation.Operation{Method: "GET", Path: "/analytics/contacts", Permission: "analytics:read", Timeout: keycall.HistoryTimeout, ID: "analyticsContacts", Summary: "Growth of contacts", About: "Of those there are now; at most 800 spans.", Query: spanQueryShape(),
			Data: shape.Object(shape.Req("range", timeRangeShape), shape.Req("new", shape.Count(31, "Made in the range.")), shape.Req("total", shape.Count(1204, "At its end.")),
				shape.Req("series", shape.List(shape.Object(spanStartShape(), shape.Req("new", shape.Count(3, "")), shape.Req("total", shape.Count(1204, "At the end of the span."))), "")))}},
	}...)}
}

// span is the time that an answer is about: from ≤ t < to.
type span struct {
	fromMs, toMs int64
	granularity  query.Granularity
}

// rangeBody is a span as it is answered.
type rangeBody struct {
	From        string `json:"from"`
	To          string `json:"to"`
	Granularity string `json:"granularity"`
}

func (s *span) body() rangeBody {
	return rangeBody{record.Time(s.fromMs), record.Time(s.toMs), string(s.granularity)}
}

// timeRangeOf reads from and to of the query.
func timeRangeOf(c *keycall.Call) (s span, err error) {
	args := c.QueryArgs()
	// What was acknowledged in this very millisecond belongs to the present, too.
	to, err := instant("to", string(args.Peek("to")), c.Now.Add(time.Millisecond))
	if err != nil {
		return s, err
	}
	from, err := instant("from", string(args.Peek("from")), to.Add(-defaultRange))
	if err != nil {
		return s, err
	}
	if !from.Before(to) {
		return s, keycall.Fail("from Input should be before to")
	}
	return span{fromMs: from.UnixMilli(), toMs: to.UnixMilli(), granularity: query.Day}, nil
}

// spanOf reads from, to and granularity of the query.
func spanOf(c *keycall.Call) (s span, err error) {
	if s, err = timeRangeOf(c); err != nil {
		return s, err
	}
	if g := string(c.QueryArgs().Peek("granularity")); g != "" {
		switch s.granularity = query.Granularity(g); s.granularity {
		case query.Hour, query.Day, query.Week, query.Month:
		default:
			return s, keycall.Fail("granularity Input should be 'hour', 'day', 'week' or 'month'")
		}
	}
	if len(s.starts(maxSpans+1)) > maxSpans {
		return s, keycall.Fail("granularity Input should be coarser: from %s to %s there would be more than %d spans", record.Time(s.fromMs), record.Time(s.toMs), maxSpans)
	}
	return s, nil
}

// instant reads a time of the query, in ISO 8601: a date, or a date and a time
// with its zone.
func instant(name, text string, absent time.Time) (time.Time, error) {
	if text == "" {
		return absent, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			if t.Year() < 1970 || t.Year() > 2200 {
				break
			}
			return t, nil
		}
	}
	return absent, keycall.Fail("%s Input should be a time in ISO 8601 such as 2025-01-31 or 2025-01-31T08:00:00Z", name)
}

// starts are when the spans begin, limit at most.
func (s *span) starts(limit int) []int64 {
	var out []int64
	for at := s.granularity.Start(s.fromMs); at < s.toMs && len(out) < limit; at = s.granularity.Next(at) {
		out = append(out, at)
	}
	return out
}

// askSeries asks history.
func askSeries(c *keycall.Call, q query.SeriesQuery) ([]query.SeriesRow, error) {
	q.Account = c.Key.Account
	rows, err := c.Backend.History.Series(c.Ctx, q)
	if errors.Is(err, query.ErrSeriesTooLarge) {
		return nil, keycall.Fail("granularity Input should be coarser, or the time shorter: the answer would have more than %d rows", query.MaxSeriesRows)
	}
	return rows, err
}

// wholeAndSpans asks for the whole time, and for each span of it. Both, since
// people who did something in two spans count once for the whole.
func wholeAndSpans(c *keycall.Call, q query.SeriesQuery, s *span) (whole, spans []query.SeriesRow, err error) {
	if whole, err = askSeries(c, q); err != nil {
		return nil, nil, err
	}
	q.Granularity = s.granularity
	spans, err = askSeries(c, q)
	return whole, spans, err
}

// overview answers GET /analytics/overview.
func overview(c *keycall.Call) (any, error) {
	s, err := spanOf(c)
	if err != nil {
		return nil, err
	}
	var contacts struct {
		Total      uint64 `json:"total"`
		New        uint64 `json:"new"`
		Subscribed uint64 `json:"subscribed"`
	}
	var lists, segments, campaigns, flows int
	var webhooks WebhookCounts
	cut, err := c.Cut(func(v *resolver.View) error {
		contacts.Total, contacts.Subscribed = v.Profiles().Count(), v.Reach().SubscribedToEmail()
		lists, segments, campaigns, flows = len(v.Contacts().Lists()), len(v.Segments().All()), len(v.Campaigns().All()), len(v.Flows().Saved())
		webhooks.count(v)
		before, err := v.Profiles().CountBefore(s.fromMs)
		if err != nil {
			return err
		}
		until, err := v.Profiles().CountBefore(s.toMs)
		contacts.New = until - min(before, until)
		return err
	})
	if err != nil {
		return nil, err
	}
	all, err := askSeries(c, query.SeriesQuery{Cut: cut, FromMs: s.fromMs, ToMs: s.toMs})
	if err != nil {
		return nil, err
	}
	events := uint64(0)
	for i := range all {
		events += all[i].Events
	}
	rows, err := messageRows(c, query.SeriesQuery{Cut: cut, FromMs: s.fromMs, ToMs: s.toMs})
	if err != nil {
		return nil, err
	}
	tallies := map[string]*tally{}
	for _, m := range Media {
		tallies[m] = &tally{}
	}
	for i := range rows {
		tallies[rows[i].medium].add(&rows[i])
	}
	channels := map[string]MessageCounts{}
	for m, t := range tallies {
		channels[m] = t.body(m)
	}
	return map[string]any{"range": s.body(), "contacts": contacts, "lists": lists, "segments": segments, "campaigns": campaigns,
		"flows": flows, "events": events, "messages": channels[MediumEmail], "channels": channels, "webhooks": webhooks}, nil
}

// performance answers GET /analytics/performance.
func performance(c *keycall.Call) (any, error) {
	s, err := spanOf(c)
	if err != nil {
		return nil, err
	}
	q := query.SeriesQuery{FromMs: s.fromMs, ToMs: s.toMs}
	medium := string(c.QueryArgs().Peek("channel"))
	if medium != "" && !slices.Contains(Media, medium) {
		return nil, keycall.Fail("channel Input should be 'email', 'sms', 'whatsapp', 'im' or 'push'")
	}
	id := string(c.QueryArgs().Peek("campaign_id"))
	if id != "" {
		q.Where = append(q.Where, segment.Predicate{Path: []string{"campaign_id"}, Op: segment.OpEq, Values: []segment.Value{{Kind: segment.ValueString, Str: id}}})
	}
	q.Cut, err = c.Cut(func(v *resolver.View) error {
		x, ok := v.Campaigns().Campaign(id)
		switch {
		case !ok && id != "":
			return keycall.FailWith(keycall.CodeNotFound, "campaign_id: there is no such campaign")
		case medium != "":
		case ok:
			medium = x.Medium()
		default:
			medium = MediumEmail
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	whole, err := messageRows(c, q)
	if err != nil {
		return nil, err
	}
	q.Granularity = s.granularity
	rows, err := messageRows(c, q)
	if err != nil {
		return nil, err
	}
	var totals tally
	for i := range whole {
		if counts(medium, whole[i].medium) {
			totals.add(&whole[i])
		}
	}
	spans := map[int64]*tally{}
	for i := range rows {
		if !counts(medium, rows[i].medium) {
			continue
		}
		t := spans[rows[i].StartMs]
		if t == nil {
			t = &tally{}
			spans[rows[i].StartMs] = t
		}
		t.add(&rows[i])
	}
	type point struct {
		Start string `json:"start"`
		MessageCounts
	}
	series := []point{}
	for _, at := range s.starts(maxSpans) {
		t := spans[at]
		if t == nil {
			t = &tally{}
		}
		series = append(series, point{record.Time(at), t.body(medium)})
	}
	return map[string]any{"range": s.body(), "channel": medium, "totals": totals.body(medium), "series": series}, nil
}

// byCampaign answers GET /analytics/campaigns: what happened in the
// range, by campaign, the oldest campaign first.
func byCampaign(c *keycall.Call) (any, error) {
	s, err := spanOf(c)
	if err != nil {
		return nil, err
	}
	type line struct {
		ID      string `json:"campaign_id"`
		Name    string `json:"name"`
		Status  string `json:"status"`
		Channel string `json:"channel"`
		MessageCounts
	}
	among := segment.Predicate{Path: []string{"campaign_id"}, Op: segment.OpIn}
	var cut query.Cut
	read := func(fn func(*resolver.View) error) (err error) { cut, err = c.Cut(fn); return err }
	out, next, err := keycall.CampaignPage(c, read, func(v *resolver.View, x *campaigns.Campaign) line {
		among.Values = append(among.Values, segment.Value{Kind: segment.ValueString, Str: x.ID})
		return line{ID: x.ID, Name: x.Name, Status: record.CampaignStatus(v, x), Channel: x.Medium()}
	})
	if err != nil || len(out) == 0 {
		return keycall.Reply{Data: out}, err
	}
	rows, err := messageRows(c, query.SeriesQuery{Cut: cut, FromMs: s.fromMs, ToMs: s.toMs, Where: []segment.Predicate{among}, By: among.Path})
	if err != nil {
		return nil, err
	}
	for i := range out {
		var t tally
		for k := range rows {
			if r := &rows[k]; r.Value == out[i].ID && (counts(out[i].Channel, r.medium) || r.medium == "") {
				t.add(r)
			}
		}
		out[i].MessageCounts = t.body(out[i].Channel)
	}
	return keycall.Reply{Data: out, Next: next}, nil
}

// byEventType answers GET /analytics/events: events by type and span, of
// all types or of the event_type in the query.
func byEventType(c *keycall.Call) (any, error) {
	s, err := spanOf(c)
	if err != nil {
		return nil, err
	}
	q := query.SeriesQuery{FromMs: s.fromMs, ToMs: s.toMs}
	if typ := string(c.QueryArgs().Peek("event_type")); typ != "" {
		q.Types = []string{typ}
	}
	if q.Cut, err = c.Cut(nil); err != nil {
		return nil, err
	}
	whole, rows, err := wholeAndSpans(c, q, &s)
	if err != nil {
		return nil, err
	}
	type point struct {
		Start    string `json:"start"`
		Events   uint64 `json:"events"`
		Contacts uint64 `json:"contacts"`
	}
	type line struct {
		EventType string `json:"event_type"`
		Events    uint64 `json:"events"`
		Contacts  uint64 `json:"contacts"`
		// Series leaves out spans without events.
		Series []point `json:"series"`
	}
	out := []line{}
	at := map[string]int{}
	for _, r := range whole {
		at[r.Type] = len(out)
		out = append(out, line{r.Type, r.Events, r.Profiles, []point{}})
	}
	for _, r := range rows {
		l := &out[at[r.Type]]
		l.Series = append(l.Series, point{record.Time(r.StartMs), r.Events, r.Profiles})
	}
	return map[string]any{"range": s.body(), "events": out}, nil
}

// membersOfSegments answers GET /analytics/segments: how many are in a segment
// now, and how many entered and left it in the range.
func membersOfSegments(c *keycall.Call) (any, error) {
	s, err := spanOf(c)
	if err != nil {
		return nil, err
	}
	type line struct {
		ID   string `json:"segment_id"`
		Name string `json:"name"`
		// Size is null while the segment is being built.
		Size    *uint64 `json:"size"`
		Entered uint64  `json:"entered"`
		Exited  uint64  `json:"exited"`
	}
	var cut query.Cut
	read := func(fn func(*resolver.View) error) (err error) { cut, err = c.Cut(fn); return err }
	out, next, err := keycall.SegmentPage(c, read, func(v *resolver.View, x *resolver.Segment) line {
		l := line{ID: x.ID, Name: x.Name}
		if n, live := v.Segments().Count(x.ID, c.Now.UnixMilli()); live {
			l.Size = &n
		}
		return l
	})
	if err != nil || len(out) == 0 {
		return keycall.Reply{Data: out}, err
	}
	moves, err := c.Backend.History.Moves(c.Ctx, query.MovesQuery{Cut: cut, Account: c.Key.Account, FromMs: s.fromMs, ToMs: s.toMs})
	if err != nil {
		return nil, err
	}
	for i := range out {
		for _, m := range moves {
			if m.Segment == out[i].ID {
				out[i].Entered, out[i].Exited = m.Entered, m.Exits
			}
		}
	}
	return keycall.Reply{Data: out, Next: next}, nil
}

// maxGrowthSpans bounds the spans of a growth series: each takes a few looks at
// the state.
const maxGrowthSpans = 800

// growth answers GET /analytics/contacts: how many contacts were
// made in each span, and how many there were at its end, of those there are now.
func growth(c *keycall.Call) (any, error) {
	s, err := spanOf(c)
	if err != nil {
		return nil, err
	}
	starts := s.starts(maxGrowthSpans + 1)
	if len(starts) > maxGrowthSpans {
		return nil, keycall.Fail("granularity Input should be coarser: there would be more than %d spans", maxGrowthSpans)
	}
	// Each look is a read of its own, so that the state is not held up.
	count := func(atMs int64) (n uint64, err error) {
		err = c.Read(func(v *resolver.View) (err error) {
			n, err = v.Profiles().CountBefore(atMs)
			return err
		})
		return n, err
	}
	type point struct {
		Start string `json:"start"`
		New   uint64 `json:"new"`
		Total uint64 `json:"total"`
	}
	series := []point{}
	before, err := count(s.fromMs)
	if err != nil {
		return nil, err
	}
	last := before
	for i, at := range starts {
		end := s.toMs
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		n, err := count(end)
		if err != nil {
			return nil, err
		}
		n = max(n, last)
		series = append(series, point{record.Time(at), n - last, n})
		last = n
	}
	return map[string]any{"range": s.body(), "new": last - before, "total": last, "series": series}, nil
}

// counts reports whether a message on a medium is of those that a channel stands for: those
// of a campaign of several are all.
func counts(channel, medium string) bool {
	return channel == medium || channel == campaigns.MediumOmni && medium != ""
}
