package events

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/musterhq/muster/api/internal/evaluation"
	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/paging"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

const (
	maxRecentSeconds = 86_400
	// recentBytes bounds the properties that are kept while the newest events are sought.
	recentBytes = 4 << 20
)

func (a *API) recentEventsRoute() handler.Route {
	return handler.Route{Handle: a.recentEvents, Operation: operation.Operation{Method: "GET", Path: "/events/recent", Permission: "events:read", ID: "recentEvents", Summary: "List the latest events",
		About: "The newest first, by their own times, with those that the service records itself. It fills what a watcher of live events missed while the connection was broken. Every event that was acknowledged is in it.",
		Query: []operation.Parameter{
			operation.Query("last_seconds", shape.Integer(60, "How far back, up to a day.").With("minimum", 1).With("maximum", maxRecentSeconds).Default(60)),
			operation.Query("event_type", shape.Text("item_purchased", "Those of these types alone, separated by commas; up to 20.")),
			operation.Query("limit", shape.Integer(100, "How many at most.").With("minimum", 1).With("maximum", 1000).Default(100)),
		},
		Data: shape.Named("RecentEvents", shape.Object(
			shape.Req("events", shape.List(shape.Object(
				shape.Req("profile_id", shape.ProfileID("")), shape.Req("event_type", shape.Text("item_purchased", "")), shape.Req("timestamp", shape.Instant("")),
				shape.Req("properties", shape.FreeObject(shape.Pairs("value", 79.9), "")),
				shape.Req("identity", shape.Object(shape.Opt("email", shape.Text("ada@example.com", "")), shape.Opt("external_id", shape.Text("42", "")), shape.Opt("phone", shape.Text("+491701234567", ""))).Says("The newest identifiers that the profile has now.")),
			), "Fewer than `limit` where their properties are large.")),
			shape.Req("total", shape.Count(2, "All events of that time.")),
			shape.Req("as_of", shape.Instant("")),
		)), Also: []int{503}}}
}

// recentEvent is an event as [API.recentEvents] answers it.
type recentEvent struct {
	ProfileID  string          `json:"profile_id"`
	EventType  string          `json:"event_type"`
	Timestamp  string          `json:"timestamp"`
	Properties json.RawMessage `json:"properties"`
	Identity   liveIdentity    `json:"identity"`

	ordinal uint32
	atMs    int64
}

// recentList keeps the newest events of those that it is given.
type recentList struct {
	kept         []recentEvent
	limit, bytes int
	total        uint64
}

func (l *recentList) add(e recentEvent) {
	l.kept, l.bytes, l.total = append(l.kept, e), l.bytes+len(e.Properties), l.total+1
	if len(l.kept) >= 2*l.limit || l.bytes > 2*recentBytes {
		l.cut()
	}
}

// cut sorts the events and lets go of what is too much.
func (l *recentList) cut() {
	slices.SortStableFunc(l.kept, func(x, y recentEvent) int {
		return cmp.Or(cmp.Compare(y.atMs, x.atMs), cmp.Compare(x.EventType, y.EventType), cmp.Compare(x.ordinal, y.ordinal))
	})
	n := 0
	for l.bytes = 0; n < len(l.kept) && n < l.limit && (n == 0 || l.bytes+len(l.kept[n].Properties) <= recentBytes); n++ {
		l.bytes += len(l.kept[n].Properties)
	}
	clear(l.kept[n:])
	l.kept = l.kept[:n]
}

// recentEvents answers GET /events/recent.
func (a *API) recentEvents(c *handler.Call) (any, error) {
	args := c.QueryArgs()
	limit, err := c.Limit()
	if err != nil {
		return nil, err
	}
	seconds, valid := paging.Number(args.Peek("last_seconds"), 1, maxRecentSeconds, 60)
	if !valid {
		return nil, handler.BadField("last_seconds", "last_seconds must be a whole number from 1 to %d", maxRecentSeconds)
	}
	var wanted []string
	if text := string(args.Peek("event_type")); text != "" {
		if wanted = strings.Split(text, ","); len(wanted) > maxLiveTypes {
			return nil, handler.BadField("event_type", "event_type names %d types; at most %d are allowed", len(wanted), maxLiveTypes)
		}
	}
	var cut query.Cut
	var types []string
	var atMs, after int64
	err = c.Read(func(v *resolver.View) error {
		cut, atMs = v.Cut(), a.opts.Chain.Instant(v)
		after = atMs - int64(seconds)*1000
		for _, t := range v.EventTypes().List() {
			// What a type's events were before its last one does not matter here.
			if t.Count > 0 && (t.LastSeenMs == 0 || t.LastSeenMs > after) && (wanted == nil || slices.Contains(wanted, t.Key)) {
				types = append(types, t.Key)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	ctx, done, err := a.opts.Evaluation.Begin(c, cut)
	if err != nil {
		return nil, err
	}
	defer done()
	list := recentList{limit: limit}
	for _, t := range types {
		err := a.opts.History.Replay(ctx, query.ReplayQuery{Cut: cut, Account: c.Account, EventType: t, AfterMs: &after, Properties: true}, func(b *query.ReplayBlock) error {
			for i := range b.Ordinal {
				list.add(recentEvent{EventType: t, Properties: slices.Clone(record.Object(b.Properties.At(i))), ordinal: b.Ordinal[i], atMs: b.TimeMs[i]})
			}
			return nil
		})
		if err != nil {
			return nil, evaluation.HistoryError(err)
		}
	}
	list.cut()
	err = c.Read(func(v *resolver.View) error {
		shown := list.kept[:0]
		for _, e := range list.kept {
			id, ok, err := v.Profiles().HistoryID(e.ordinal)
			if err != nil {
				return err
			}
			if !ok {
				list.total--
				continue
			}
			p, err := v.Profiles().Get(v.Profiles().Root(e.ordinal))
			if err != nil {
				return err
			}
			e.ProfileID, e.Timestamp = id.String(), record.Time(e.atMs)
			e.Identity = liveIdentity{p.Newest(resolver.IdentityEmail), p.Newest(resolver.IdentityExternalID), p.Newest(resolver.IdentityPhone)}
			shown = append(shown, e)
		}
		list.kept = shown
		return nil
	})
	if err != nil {
		return nil, err
	}
	if list.kept == nil {
		list.kept = []recentEvent{}
	}
	if err := c.Hold(list.bytes); err != nil {
		return nil, err
	}
	return map[string]any{"events": list.kept, "total": list.total, "as_of": record.Time(atMs)}, nil
}
