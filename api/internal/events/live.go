package events

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/musterhq/muster/api/internal/handler"
	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/api/operation"
	"github.com/musterhq/muster/api/shape"
	"github.com/musterhq/muster/resolver"
	"github.com/musterhq/muster/resolver/node/live"
)

// The outcomes of live events.
const (
	liveAccepted  = "accepted"
	liveDuplicate = "duplicate"
	liveRefused   = "refused"
)

// maxLiveTypes bounds the types of events that a watcher names.
const maxLiveTypes = 20

func (a *API) liveRoute() handler.Route {
	word := shape.Text("item_purchased", "")
	return handler.Route{Handle: a.live, Operation: operation.Operation{Method: "GET", Path: "/events/live", Permission: "events:read", ID: "liveEvents", Summary: "Stream events",
		About: "A stream of server-sent events: `event` for each event as it is applied, with the identifiers it gave and the segments that its profile entered or left by it; `refused` for each one that was not stored, with the `reason` and the `body` as it was sent, up to 4 KiB, without values of keys that speak of secrets; both with `source_id`, `source_name` and `call` where an SDK sent the event; " +
			"`dropped` with the number missed when the watcher was too slow, `end` before it ends. Comments are signs of life. The newest 100 refused events come first; they are kept in memory alone.",
		Query: []operation.Parameter{
			operation.Query("event_type", word.Says("Those of these types alone, separated by commas; up to 20.")),
			operation.Query("identity", shape.Text("ada@example.com", "Those that give this identifier, or are of the profile with this id.")),
			operation.Query("segment_id", shape.Text("seg_2b1f0e5c9d7a4c38", "Those by which their profile entered or left this segment.")),
			operation.Query("outcome", shape.Text("accepted,refused", "Which of `accepted`, `duplicate` and `refused`, separated by commas. Left out, `accepted` and `refused`.")),
		},
		Other: shape.Pairs("200", operation.Plain("Events as they are applied.", "text/event-stream",
			": watching\n\nevent: event\ndata: {\"profile_id\":\"prf_cdc5eaeb89bc0ed9f653e1d1d46aa533\",\"event_type\":\"item_purchased\",\"timestamp\":\"2026-01-31T09:00:00.000Z\",\"properties\":{\"value\":79.9},\"outcome\":\"accepted\",\"identity\":{\"email\":\"ada@example.com\"},\"transitions\":[]}\n\n"+
				"event: refused\ndata: {\"event_type\":\"\",\"timestamp\":\"2026-01-31T09:00:01.000Z\",\"outcome\":\"refused\",\"identity\":{},\"reason\":\"event_type is missing\",\"body\":\"{}\",\"body_bytes\":2}\n\n", nil))}}
}

// liveEvent is an event as a watcher sees it.
type liveEvent struct {
	ProfileID   string           `json:"profile_id"`
	EventType   string           `json:"event_type"`
	Timestamp   string           `json:"timestamp"`
	Properties  json.RawMessage  `json:"properties"`
	Outcome     string           `json:"outcome"`
	Identity    liveIdentity     `json:"identity"`
	Transitions []liveTransition `json:"transitions"`
	liveFrom
}

// liveFrom is the source of an event of the tracking API.
type liveFrom struct {
	SourceID   string `json:"source_id,omitempty"`
	SourceName string `json:"source_name,omitempty"`
	Call       string `json:"call,omitempty"`
}

// liveIdentity is the identifiers that an event gave.
type liveIdentity struct {
	Email      string `json:"email,omitempty"`
	ExternalID string `json:"external_id,omitempty"`
	Phone      string `json:"phone,omitempty"`
}

type liveTransition struct {
	SegmentID string `json:"segment_id"`
	Change    string `json:"change"` // entered or left
}

// refusedEvent is an event that was not stored, as a watcher sees it.
type refusedEvent struct {
	EventType string       `json:"event_type"`
	Timestamp string       `json:"timestamp"`
	Outcome   string       `json:"outcome"`
	Identity  liveIdentity `json:"identity"`
	Reason    string       `json:"reason"`
	Body      string       `json:"body"`
	BodyBytes int          `json:"body_bytes"`
	liveFrom
}

// liveFilter says which events a watcher wants.
type liveFilter struct {
	types    []string // nil for all
	identity string   // "" for any
	segment  string   // "" for any; else the segment that the event moved its profile into or out of
	outcomes []string
}

func parseLiveFilter(c *handler.Call) (f liveFilter, err error) {
	args := c.QueryArgs()
	if text := string(args.Peek("event_type")); text != "" {
		if f.types = strings.Split(text, ","); len(f.types) > maxLiveTypes {
			return f, handler.BadField("event_type", "event_type names %d types; at most %d are allowed", len(f.types), maxLiveTypes)
		}
	}
	f.identity = strings.TrimSpace(string(args.Peek("identity")))
	f.segment = strings.TrimSpace(string(args.Peek("segment_id")))
	f.outcomes = []string{liveAccepted, liveRefused}
	if text := string(args.Peek("outcome")); text != "" {
		f.outcomes = strings.Split(text, ",")
	}
	for _, x := range f.outcomes {
		if x != liveAccepted && x != liveDuplicate && x != liveRefused {
			return f, handler.BadField("outcome", "outcome Input should be accepted, duplicate or refused, or several of them separated by commas")
		}
	}
	return f, nil
}

func (f *liveFilter) wants(outcome, typ, profile string, idents [resolver.IdentityKinds]string, moves []liveTransition) bool {
	if f.segment != "" && !slices.ContainsFunc(moves, func(m liveTransition) bool { return m.SegmentID == f.segment }) {
		return false
	}
	if !slices.Contains(f.outcomes, outcome) || f.types != nil && !slices.Contains(f.types, typ) {
		return false
	}
	return f.identity == "" || f.identity == profile || slices.ContainsFunc(idents[:], func(x string) bool { return strings.EqualFold(strings.TrimSpace(x), f.identity) })
}

// live answers GET /events/live: server-sent events named "event", one for each
// event as it is applied, "refused" for those that are not stored, and "dropped" with
// the number missed so far when the watcher was too slow.
func (a *API) live(c *handler.Call) (any, error) {
	f, err := parseLiveFilter(c)
	if err != nil {
		return nil, err
	}
	w, ok := a.opts.Node.Watch(c.Account)
	if !ok {
		return nil, handler.Busy("too many people are watching live events")
	}
	s := &liveSource{watcher: w, filter: f}
	hello := &handler.Stream{Pending: []byte(": watching\n\n")}
	for _, e := range a.opts.Node.Refused(c.Account) {
		s.show(hello, &live.Event{Refused: &e})
	}
	return c.Stream(s, string(hello.Pending)), nil
}

// liveSource is a stream of events.
type liveSource struct {
	watcher *live.Watcher
	filter  liveFilter
	dropped uint64
}

func (l *liveSource) Next(s *handler.Stream) bool {
	// What the watcher does not want is passed over until there is something to send.
	for len(s.Pending) == 0 {
		select {
		case e := <-l.watcher.Events:
			if !l.show(s, e) {
				return false
			}
		case <-s.Beat.C:
			if !s.Alive() {
				return false
			}
		case <-l.watcher.Ended(): // the account is another node's by now
			return s.End()
		case <-s.Stopping():
			return s.End()
		}
		if d := l.watcher.Dropped(); d != l.dropped {
			l.dropped = d
			s.Message("dropped", fmt.Appendf(nil, "{\"count\":%d}", d))
		}
	}
	return true
}

// show appends an event that the watcher wants; false when it cannot be written.
func (l *liveSource) show(s *handler.Stream, e *live.Event) bool {
	name, data := "event", any(nil)
	switch r := e.Refused; {
	case r != nil:
		if !l.filter.wants(liveRefused, r.EventType, "", r.Idents, nil) {
			return true
		}
		name, data = "refused", refusedEvent{r.EventType, record.Time(r.AtMs), liveRefused, newLiveIdentity(r.Idents), r.Reason, r.Body, r.BodyBytes, liveFrom{r.SourceID, r.SourceName, r.Call}}
	default:
		x := newLiveEvent(e)
		if !l.filter.wants(x.Outcome, e.EventType, x.ProfileID, e.Idents, x.Transitions) {
			return true
		}
		data = x
	}
	b, err := json.Marshal(data)
	if err != nil {
		return false
	}
	s.Message(name, b)
	return true
}

func (l *liveSource) Close() { l.watcher.Close() }

func newLiveEvent(e *live.Event) liveEvent {
	out := liveEvent{
		ProfileID:   e.Profile.String(),
		EventType:   e.EventType,
		Timestamp:   record.Time(e.TimeMs),
		Properties:  record.Object(e.Properties),
		Outcome:     liveAccepted,
		Identity:    newLiveIdentity(e.Idents),
		Transitions: []liveTransition{},
		liveFrom:    liveFrom{e.SourceID, e.SourceName, e.Call},
	}
	if e.Duplicate {
		out.Outcome = liveDuplicate
	}
	for _, t := range e.Transitions {
		change := "left"
		if t.Entered {
			change = "entered"
		}
		out.Transitions = append(out.Transitions, liveTransition{t.Segment, change})
	}
	return out
}

func newLiveIdentity(idents [resolver.IdentityKinds]string) liveIdentity {
	return liveIdentity{idents[resolver.IdentityEmail], idents[resolver.IdentityExternalID], idents[resolver.IdentityPhone]}
}
