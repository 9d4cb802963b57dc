package api

import (
	"encoding/json"

	"github.com/musterhq/muster/query"
	"github.com/musterhq/muster/resolver"
)

// profileEvent is an event of a profile as it is answered.
type profileEvent struct {
	EventType      string          `json:"event_type"`
	Timestamp      string          `json:"timestamp"`
	Properties     json.RawMessage `json:"properties"`
	IdempotencyKey *string         `json:"idempotency_key"`
}

// timeline answers GET /profiles/{id}/events, newest first. A cursor names a
// place in the order of events; events that arrive meanwhile with a time before
// it are on the later pages.
func (a *API) timeline(c *call) (any, error) {
	id, err := profileID(c)
	if err != nil {
		return nil, err
	}
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	q := query.TimelineQuery{Account: c.account, Limit: limit + 1}
	if q.Before, err = timelineCursor(c); err != nil {
		return nil, err
	}
	err = a.read(c, func(v *resolver.View) (err error) {
		ordinal, ok := v.Resolve(id)
		if !ok {
			return missing("%s", errNoProfile)
		}
		q.Cut = v.Cut()
		q.Ordinals, err = v.Ordinals(ordinal)
		return err
	})
	if err != nil {
		return nil, err
	}
	ctx, done, err := a.beginQuestion()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := a.opts.Node.WaitHistory(ctx, q.Cut); err != nil {
		return nil, historyError(err)
	}
	entries, err := a.opts.History.Timeline(ctx, q)
	if err != nil {
		return nil, historyError(err)
	}
	next := ""
	if len(entries) > limit {
		entries = entries[:limit]
		next = encodeTimelineCursor(entries[limit-1].Key)
	}
	events := make([]profileEvent, len(entries))
	for i, e := range entries {
		events[i] = profileEvent{EventType: e.EventType, Timestamp: timeText(e.Key.TimeMs), Properties: objectOr(e.Properties)}
		if e.IdempotencyKey != "" {
			events[i].IdempotencyKey = &e.IdempotencyKey
		}
	}
	return map[string]any{"events": events, "next": cursorOrNull(next)}, nil
}
