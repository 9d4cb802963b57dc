package api

import (
	"encoding/json"
	"fmt"

	"github.com/musterhq/muster/api/internal/record"
	"github.com/musterhq/muster/resolver"
)

// liveEvent is an event as a watcher sees it.
type liveEvent struct {
	ProfileID  string          `json:"profile_id"`
	EventType  string          `json:"event_type"`
	Timestamp  string          `json:"timestamp"`
	Properties json.RawMessage `json:"properties"`
}

// live answers GET /events/live: server-sent events named "event", one for each
// event as it is applied, and "dropped" with the number missed so far when the
// watcher was too slow.
func (a *API) live(c *call) (any, error) {
	w, ok := a.opts.Node.Watch(c.account)
	if !ok {
		return nil, busy("too many people are watching live events")
	}
	return a.stream(c, &liveSource{watcher: w}, ": watching\n\n"), nil
}

// liveSource is a stream of events.
type liveSource struct {
	watcher *resolver.Watcher
	dropped uint64
}

func (l *liveSource) next(s *stream) bool {
	select {
	case e := <-l.watcher.Events:
		b, err := json.Marshal(newLiveEvent(e))
		if err != nil {
			return false
		}
		s.message("event", b)
	case <-s.beat.C:
		if !s.alive() {
			return false
		}
	case <-l.watcher.Ended(): // the account is another node's by now
		return s.end()
	case <-s.api.stop:
		return s.end()
	}
	if d := l.watcher.Dropped(); d != l.dropped {
		l.dropped = d
		s.message("dropped", fmt.Appendf(nil, "{\"count\":%d}", d))
	}
	return true
}

func (l *liveSource) close() { l.watcher.Close() }

func newLiveEvent(e resolver.LiveEvent) liveEvent {
	return liveEvent{
		ProfileID:  e.Profile.String(),
		EventType:  e.EventType,
		Timestamp:  record.Time(e.TimeMs),
		Properties: record.Object(e.Properties),
	}
}
